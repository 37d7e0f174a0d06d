package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// contractions are the versions whose migrations took away or changed something that gateways of
// earlier versions need. All other migrations only expand: they add tables, columns that may be
// NULL, and indexes, so that earlier gateways go on reading and writing. What a release does not
// need any more is taken away two releases later at the earliest: until then an update, and its
// rollback, have gateways of both side by side. 15 is where this begins: gateways from before do
// not look at it, and refuse each schema that is newer than theirs.
var contractions = []int{15}

var (
	// ErrNewer means that a newer gateway has changed the schema so that this one must not use it.
	ErrNewer = errors.New("the database's schema is newer than this gateway can use")
	// ErrOlder means that the schema has to be brought up to date first.
	ErrOlder = errors.New("the database's schema is older than this gateway needs, or there is none")
)

// schema is what the database says of its schema.
type schema struct {
	version      int
	readableFrom int    // gateways use it that know this version, or a later one
	release      string // whose gateway has changed it last; empty: it did not say so
}

// Migrate brings the schema up to date, which takes no right where it is already. If several
// replicas start at once, one of them does it. The error is ErrNewer if this gateway must not use
// the schema.
func (s *Store) Migrate(ctx context.Context) (err error) {
	if err := s.Check(ctx); !errors.Is(err, ErrOlder) {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	return s.Check(ctx)
}

func (s *Store) migrate(ctx context.Context) (err error) {
	conn, err := s.writes.Conn(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer conn.Close()
	if err := s.dialect.lock(ctx, conn); err != nil {
		return fmt.Errorf("migrate: lock: %w", err)
	}
	defer func() {
		// If the lock stayed, no other gateway could migrate. A connection that is gone holds no lock.
		if unlock := s.dialect.unlock(context.WithoutCancel(ctx), conn); err == nil && unlock != nil {
			err = fmt.Errorf("migrate: unlock: %w", unlock)
		}
	}()
	if err := s.create(ctx, conn); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for done := false; !done; {
		// It locks several tables, and gateways that go on recording have locked some of them in another order.
		if err := again(ctx, func() (err error) {
			done, err = s.migrateOnce(ctx, conn)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) create(ctx context.Context, conn *sql.Conn) error {
	for _, statement := range []string{
		`CREATE TABLE IF NOT EXISTS history_schema (id BIGINT PRIMARY KEY, version BIGINT NOT NULL) $OPTIONS`,
		// Gateways of before do not know these, so they may be NULL.
		`ALTER TABLE history_schema ADD COLUMN IF NOT EXISTS readable_from BIGINT`,
		`ALTER TABLE history_schema ADD COLUMN IF NOT EXISTS changed_by $KEY`,
		`INSERT INTO history_schema (id, version) VALUES (1, 0)` + s.dialect.upsert([]string{"id"}, nil),
	} {
		if _, err := conn.ExecContext(ctx, s.dialect.types().Replace(statement)); err != nil && !isThere(err) {
			return err
		}
	}
	return nil
}

// migrateOnce does one migration, in a transaction if the database has transactions for schemas.
func (s *Store) migrateOnce(ctx context.Context, conn *sql.Conn) (done bool, err error) {
	begun, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("migrate: %w", err)
	}
	defer begun.Rollback() //nolint:errcheck // nothing to do where it was committed
	tx := &Tx{dialect: s.dialect, tx: begun}
	var version int
	if err := tx.QueryRow(ctx, `SELECT version FROM history_schema WHERE id = 1`).Scan(&version); err != nil {
		return false, fmt.Errorf("migrate: %w", err)
	}
	if version >= s.known() {
		return true, nil
	}
	for _, statement := range migrations[version] {
		if _, err := tx.Exec(ctx, s.dialect.types().Replace(statement)); err != nil && !isThere(err) {
			return false, fmt.Errorf("migrate to version %d: %w", version+1, err)
		}
	}
	if _, err := tx.Exec(ctx, `UPDATE history_schema SET version = ?, readable_from = ?, changed_by = ? WHERE id = 1`, version+1, readableFrom(version+1), s.release); err != nil {
		return false, fmt.Errorf("migrate to version %d: %w", version+1, err)
	}
	if err := begun.Commit(); err != nil {
		return false, fmt.Errorf("migrate to version %d: %w", version+1, err)
	}
	return false, nil
}

// readableFrom is what a gateway must know to use a schema of a version.
func readableFrom(version int) int {
	for _, contraction := range slices.Backward(contractions) {
		if contraction <= version {
			return contraction
		}
	}
	return version
}

// Check reports whether the schema is one that this gateway can use: nil, ErrNewer, ErrOlder, or an
// error of reading it. It makes nothing, no file either.
func (s *Store) Check(ctx context.Context) error {
	found, err := s.schema(ctx)
	if err == nil {
		err = s.fits(found)
	}
	if err == nil || errors.Is(err, ErrNewer) || errors.Is(err, ErrOlder) {
		s.refused.Store(&err)
	}
	return err
}

// Refused is why this gateway must not use the schema, as Check has found it last; nil: it may, or it is not known.
func (s *Store) Refused() error {
	if err := s.refused.Load(); err != nil {
		return *err
	}
	return nil
}

// schema reads what the database says of its schema. Only one that is newer is asked for more than
// its version: it has the columns for that.
func (s *Store) schema(ctx context.Context) (found schema, err error) {
	if s.file != "" {
		if _, err := os.Stat(s.file); errors.Is(err, fs.ErrNotExist) {
			return found, ErrOlder
		}
	}
	err = s.recorders.QueryRowContext(ctx, `SELECT version FROM history_schema WHERE id = 1`).Scan(&found.version)
	if found.readableFrom = found.version; err == nil && found.version > s.known() {
		err = s.recorders.QueryRowContext(ctx, `SELECT readable_from, changed_by FROM history_schema WHERE id = 1`).Scan(&found.readableFrom, &found.release)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows), isMissingTable(err):
		return found, ErrOlder
	case err != nil:
		return found, fmt.Errorf("check the schema: %w", err)
	}
	return found, nil
}

// known is the newest version of the schema that this gateway knows.
func (s *Store) known() int {
	if s.knows > 0 {
		return s.knows
	}
	return len(migrations)
}

func (s *Store) fits(found schema) error {
	switch {
	case found.readableFrom > s.known():
		needed := "the release that has changed it, or a later one"
		if found.release != "" {
			needed = "release " + found.release + " or a later one"
		}
		return fmt.Errorf("%w: it has version %d, for gateways that know %d or more, and this one knows %d: run %s", ErrNewer, found.version, found.readableFrom, s.known(), needed)
	case found.version < s.known():
		return fmt.Errorf("%w: it has version %d, this gateway needs %d", ErrOlder, found.version, s.known())
	}
	return nil
}
