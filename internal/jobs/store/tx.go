package store

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"time"
)

// Tx is a transaction: the history's own, or one of a package that keeps tables of its own beside the history's.
// Statements have ? for each argument, and must be understood by all the databases.
type Tx struct {
	dialect dialect
	tx      *sql.Tx
	ends    time.Time // when its turn ends; zero: when it does
}

// within bounds a statement by the end of the transaction's turn.
func (t *Tx) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if at, ok := ctx.Deadline(); t.ends.IsZero() || ok && !at.After(t.ends) {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, t.ends)
}

// Transact does something in a transaction, which is undone if it returns an error. It waits for
// its quotaOwner's turn to write. If the database undoes the transaction, because it and another
// waited for each other, it is done again. So it must change nothing but the database.
func (s *Store) Transact(ctx context.Context, do func(tx *Tx) error) error {
	return again(ctx, func() error { return s.transact(ctx, do) })
}

// Each reads rows outside of any transaction. Each row's columns are read by the scan that it is given.
func (s *Store) Each(ctx context.Context, row func(scan Scan) error, query string, args ...any) error {
	if s.asked != nil {
		s.asked(query, args)
	}
	db, release, err := s.toRead(ctx)
	if err != nil {
		return err
	}
	defer release()
	rows, err := db.QueryContext(ctx, s.dialect.bind(query), args...)
	return scanEach(rows, err, row)
}

// Scan copies a row's columns, as sql.Rows.Scan does.
type Scan func(into ...any) error

func scanEach(rows *sql.Rows, err error, row func(Scan) error) (failed error) {
	if err != nil {
		return err
	}
	defer func() {
		if closed := rows.Close(); failed == nil {
			failed = closed
		}
	}()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Row is one row that is read when it is scanned. The error is sql.ErrNoRows if there is none.
type Row struct{ Scan Scan }

// QueryRow reads one row outside of any transaction.
func (s *Store) QueryRow(ctx context.Context, query string, args ...any) Row {
	return Row{func(into ...any) error {
		if s.asked != nil {
			s.asked(query, args)
		}
		db, release, err := s.toRead(ctx)
		if err != nil {
			return err
		}
		defer release()
		return db.QueryRowContext(ctx, s.dialect.bind(query), args...).Scan(into...)
	}}
}

// Exec executes a statement, and returns how many rows it has changed. MariaDB does not count rows
// that stay as they are.
func (t *Tx) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	ctx, done := t.within(ctx)
	defer done()
	result, err := t.tx.ExecContext(ctx, t.dialect.bind(statement), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Each reads rows within the transaction, as Store.Each does outside.
func (t *Tx) Each(ctx context.Context, row func(scan Scan) error, query string, args ...any) error {
	ctx, done := t.within(ctx)
	defer done()
	rows, err := t.tx.QueryContext(ctx, t.dialect.bind(query), args...)
	return scanEach(rows, err, row)
}

// QueryRow reads one row within the transaction.
func (t *Tx) QueryRow(ctx context.Context, query string, args ...any) Row {
	return Row{func(into ...any) error {
		ctx, done := t.within(ctx)
		defer done()
		return t.tx.QueryRowContext(ctx, t.dialect.bind(query), args...).Scan(into...)
	}}
}

// Insert inserts rows. A row that exists by its key gets new values in the columns to be replaced;
// if there are none, it stays as it is. Without a key a row that exists is an error.
func (t *Tx) Insert(ctx context.Context, table string, columns []string, rows [][]any, key, replaced []string) error {
	suffix := ""
	if len(key) > 0 {
		suffix = t.dialect.upsert(key, replaced)
	}
	return t.insert(ctx, table, columns, rows, suffix)
}

// numberOn makes the database number the rows of a table behind those that were given.
func (t *Tx) numberOn(ctx context.Context, table, column string) error {
	statement := t.dialect.numbersOn(table, column)
	if statement == "" {
		return nil
	}
	_, err := t.Exec(ctx, statement)
	return err
}

// Locks follows a SELECT whose rows nobody else may change before the end of the transaction. In
// SQLite nobody can anyway.
func (t *Tx) Locks() string { return t.dialect.locks() }

// Now is an expression for the database's clock, in milliseconds since 1970.
func (s *Store) Now() string { return s.dialect.now() }

// Now is Store.Now.
func (t *Tx) Now() string { return t.dialect.now() }

// attempts is how often a transaction is done that the database undoes each time.
const attempts = 5

// again does something in a transaction, and does it again if the database has undone that because of a deadlock.
func again(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		if err == nil || n == attempts || !isDeadlock(err) || ctx.Err() != nil {
			return err
		}
		time.Sleep(rand.N(time.Duration(n) * 10 * time.Millisecond))
	}
}
