// Package recorder writes the history of the jobs of one kind and cluster: it reads the ring as a browser does, and its
// position stands in the database, where it moves in the transaction that writes what was read.
//
// From that follows: of several recorders of one log, each stretch is written by one; whoever is killed goes on where the
// database stands, from the ring, or from the API server's own history. Only where that is gone (and at the first start, and
// when versions went back) the objects are compared with the jobs, and what differs is written as late.
//
// Any error ends a tenure: what is in memory is forgotten, and read again once the database and the API server answer. So a
// database that is away is waited for, and meanwhile nothing is read: the ring and the API server hold what comes.
package recorder
