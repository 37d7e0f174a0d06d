// Package conn owns the connections on which answers are written. It has a stream's connection, which can be written
// to without waiting; writers that wait for a client as long as it takes anything; and the detection of clients that
// leave.
//
// What it promises: a client that takes nothing is disconnected after the writer's patience, and one that takes a
// little is not. An answer that is broken off never looks complete.
//
// What it refuses: to queue. Bytes that a connection does not take stay with the caller.
package conn
