// Package store keeps the history of jobs in a database: SQLite, PostgreSQL, MySQL or MariaDB, with
// one schema and one set of queries.
//
// A log is what happened to one kind of one cluster. Its row says up to which version it has been read, and how many
// transitions it has. A writer moves both from where it found them, in the transaction that writes. If they are not
// there any more, it writes nothing (ErrMoved). So what lies between two versions is written once, however many writers
// there are. Numbers have no gaps, and become visible in their order. The lease in that row only spares other writers
// the work.
//
// Times are milliseconds since 1970; names and texts are compared byte by byte.
package store
