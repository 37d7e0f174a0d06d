package store

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"time"
)

// Tx is a transaction of packages that keep tables of their own beside the history's. Their statements have ? for each
// argument, and must be understood by all the databases.
type Tx struct {
	store *Store
	tx    *sql.Tx
}

// Transact does something in a transaction, which is undone if it returns an error. In SQLite there is one transaction that writes
// at a time, and others wait. If the database undoes the transaction, because it and another waited for each other, it is done
// again. So it must change nothing but the database.
func (s *Store) Transact(ctx context.Context, do func(tx *Tx) error) error {
	return again(ctx, func() error { return s.transact(ctx, do) })
}

func (s *Store) transact(ctx context.Context, do func(tx *Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing to do where it was committed
	if err := do(&Tx{s, tx}); err != nil {
		return err
	}
	return tx.Commit()
}

// Each reads rows outside of any transaction. Each row's columns are read by the scan that it is given.
func (s *Store) Each(ctx context.Context, row func(scan Scan) error, query string, args ...any) error {
	if s.asked != nil {
		s.asked(query, args)
	}
	rows, err := s.db.QueryContext(ctx, s.dialect.bind(query), args...)
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

// QueryRow reads one row outside of any transaction.
func (s *Store) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	if s.asked != nil {
		s.asked(query, args)
	}
	return s.db.QueryRowContext(ctx, s.dialect.bind(query), args...)
}

// Exec executes a statement, and returns how many rows it has changed. MariaDB does not count rows that stay as they are.
func (t *Tx) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	result, err := t.store.exec(ctx, t.tx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Each reads rows within the transaction, as Store.Each does outside.
func (t *Tx) Each(ctx context.Context, row func(scan Scan) error, query string, args ...any) error {
	rows, err := t.tx.QueryContext(ctx, t.store.dialect.bind(query), args...)
	return scanEach(rows, err, row)
}

// QueryRow reads one row within the transaction.
func (t *Tx) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(ctx, t.store.dialect.bind(query), args...)
}

// Insert inserts rows. A row that exists by its key gets new values in the columns to be replaced; if there are none, it stays as
// it is. Without a key a row that exists is an error.
func (t *Tx) Insert(ctx context.Context, table string, columns []string, rows [][]any, key, replaced []string) error {
	suffix := ""
	if len(key) > 0 {
		suffix = t.store.dialect.upsert(key, replaced)
	}
	return t.store.insert(ctx, t.tx, table, columns, rows, suffix)
}

// Locks follows a SELECT whose rows nobody else may change before the end of the transaction. In SQLite nobody can anyway.
func (t *Tx) Locks() string { return t.store.dialect.locks() }

// Now is an expression for the database's clock, in milliseconds since 1970.
func (s *Store) Now() string { return s.dialect.now() }

// Now is Store.Now.
func (t *Tx) Now() string { return t.store.dialect.now() }

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
