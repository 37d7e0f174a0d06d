// Package conn owns connections as those who answer on them need them: a stream's connection, which can be written to
// without waiting, answers that wait for a client as long as it takes anything, and who has left.
//
// What it promises: a client that takes nothing is cut after the patience that its writer was given, and one that takes a
// little is not. What is ended before its end never looks complete.
//
// What it refuses: to queue. What a connection does not take stays with whoever wrote it.
package conn
