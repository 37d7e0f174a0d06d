// Package store keeps the history of jobs in a database: SQLite, PostgreSQL, MySQL or MariaDB, with one schema and one set of
// queries.
//
// A log is what happened to one kind of one cluster. Its row says up to which version it has been read and how many
// transitions it has; whoever writes moves both from where they found them, in the transaction that writes, or writes nothing
// (ErrMoved). So what lies between two versions is written once, however many write, and numbers have no gaps and become
// visible in their order. The lease in that row only spares others the work.
//
// Times are milliseconds since 1970; names and texts are compared byte by byte.
package store
