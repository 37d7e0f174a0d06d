// Package recorder writes the history of the jobs of one kind and cluster. It reads the ring as a browser does. Its
// position stands in the database, and moves in the transaction that writes what was read.
//
// So if there are several recorders of one log, each stretch of it is written by one of them. A
// recorder that was killed goes on from the position in the database. It reads from the ring, or
// from the API server's own history. If neither has that stretch any more, the objects are compared
// with the jobs, and the differences are written as late. The same is done at the first start, and
// when versions went back.
//
// Any error ends a term. What is in memory is then forgotten, and read again once the database and the API server
// answer. Nothing is read while the database is away, since the ring and the API server hold what comes.
package recorder
