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

// migrations bring a schema from each version to the next. One that was released is never changed.
//
// MySQL and MariaDB end a transaction at each statement that changes a schema. So each statement can be repeated, and a
// migration that broke off in the middle begins again.
var migrations = [][]string{{
	`CREATE TABLE IF NOT EXISTS logs (
		id $ID,
		cluster $KEY NOT NULL,
		resource $KEY NOT NULL,
		name $KEY NOT NULL,
		version BIGINT NOT NULL,
		seq BIGINT NOT NULL,
		expired BIGINT NOT NULL,
		holder $KEY NOT NULL,
		lease BIGINT NOT NULL,
		moved BIGINT NOT NULL,
		UNIQUE (cluster, resource)
	) $OPTIONS`,
	`CREATE TABLE IF NOT EXISTS jobs (
		log BIGINT NOT NULL,
		uid $KEY NOT NULL,
		namespace $KEY NOT NULL,
		name $KEY NOT NULL,
		owner $KEY NOT NULL,
		queue $KEY NOT NULL,
		state $KEY NOT NULL,
		since BIGINT NOT NULL,
		reason $TEXT NOT NULL,
		message $TEXT NOT NULL,
		attempt BIGINT NOT NULL,
		version BIGINT NOT NULL,
		created BIGINT NOT NULL,
		started BIGINT NOT NULL,
		ended BIGINT NOT NULL,
		deleted BIGINT NOT NULL,
		spent $TEXT NOT NULL,
		requests $TEXT NOT NULL,
		lived BIGINT NOT NULL,
		PRIMARY KEY (log, uid)
	) $OPTIONS`,
	// Behind what orders them, indexes have the other columns that are asked for, so that a row
	// that does not fit is not read. No two entries are alike in such an index.
	`CREATE INDEX IF NOT EXISTS jobs_created ON jobs (log, created, uid, namespace, owner, queue, state, since) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS jobs_namespace ON jobs (log, namespace, created, uid, owner, queue, state, since) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS jobs_name ON jobs (log, name, created, uid, namespace, owner, queue, state, since) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS jobs_owner ON jobs (log, owner, created, uid, namespace, queue, state, since) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS jobs_queue ON jobs (log, queue, created, uid, namespace, owner, state, since) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS jobs_state ON jobs (log, state, created, uid, namespace, owner, queue, since) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS jobs_lived ON jobs (log, lived, created, uid, namespace, owner, queue, state, since, name) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS jobs_deleted ON jobs (log, deleted)`,
	`CREATE TABLE IF NOT EXISTS transitions (
		log BIGINT NOT NULL,
		seq BIGINT NOT NULL,
		uid $KEY NOT NULL,
		namespace $KEY NOT NULL,
		name $KEY NOT NULL,
		version BIGINT NOT NULL,
		from_state $KEY NOT NULL,
		to_state $KEY NOT NULL,
		at BIGINT NOT NULL,
		observed BIGINT NOT NULL,
		late BIGINT NOT NULL,
		attempt BIGINT NOT NULL,
		reason $TEXT NOT NULL,
		message $TEXT NOT NULL,
		owner $KEY NOT NULL,
		queue $KEY NOT NULL,
		PRIMARY KEY (log, seq)
	) $OPTIONS`,
	`CREATE INDEX IF NOT EXISTS transitions_uid ON transitions (log, uid, seq) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS transitions_namespace ON transitions (log, namespace, seq, owner, queue, to_state, at) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS transitions_name ON transitions (log, name, seq, namespace, owner, queue, to_state, at) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS transitions_owner ON transitions (log, owner, seq, namespace, queue, to_state, at) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS transitions_queue ON transitions (log, queue, seq, namespace, owner, to_state, at) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS transitions_to_state ON transitions (log, to_state, seq, namespace, owner, queue, at) $UNLIKE`,
	`CREATE INDEX IF NOT EXISTS transitions_at ON transitions (log, at, seq) $UNLIKE`,
	`CREATE TABLE IF NOT EXISTS spans (
		log BIGINT NOT NULL,
		block BIGINT NOT NULL,
		least BIGINT NOT NULL,
		most BIGINT NOT NULL,
		PRIMARY KEY (log, block)
	) $OPTIONS`,
}, {
	// MySQL gives such columns no default. So nothing is written to existing rows, however many there are.
	`ALTER TABLE jobs ADD COLUMN IF NOT EXISTS reasons $TEXT`,
	`ALTER TABLE jobs ADD COLUMN IF NOT EXISTS ran_until BIGINT`,
	`CREATE INDEX IF NOT EXISTS jobs_ran ON jobs (log, ran_until, created)`,
},
	inboxTables,
	outboxTables,
	namespaceColumns,
	outboxNamespaces,
	{
		`ALTER TABLE jobs ADD COLUMN IF NOT EXISTS counts $TEXT`,
	},
	inboxNamespaces,
	secretTables,
	slices.Concat(runTables, totalTables),
	parentColumns,
	progressColumns,
	keptTables,
	{
		`ALTER TABLE jobs ADD COLUMN IF NOT EXISTS cause $TEXT`,
		`ALTER TABLE transitions ADD COLUMN IF NOT EXISTS cause $TEXT`,
		`ALTER TABLE jobs ADD COLUMN IF NOT EXISTS cause_reason $KEY`,
		`ALTER TABLE transitions ADD COLUMN IF NOT EXISTS cause_reason $KEY`,
		`CREATE INDEX IF NOT EXISTS jobs_cause_reason ON jobs (log, cause_reason, created, uid, namespace, owner, queue, state, since, name) $UNLIKE $IF cause_reason IS NOT NULL`,
		`CREATE INDEX IF NOT EXISTS transitions_cause_reason ON transitions (log, cause_reason, seq, namespace, owner, queue, to_state, at, name, uid) $UNLIKE $IF cause_reason IS NOT NULL`,
	},
	budgetTables,
	{
		`ALTER TABLE runs ADD COLUMN IF NOT EXISTS end_version BIGINT`,
	},
	{
		// Columns of their own: a gateway of before writes all of a column that it knows, and would take from it what it does not know.
		`ALTER TABLE jobs ADD COLUMN IF NOT EXISTS began_late BIGINT`,
		`ALTER TABLE jobs ADD COLUMN IF NOT EXISTS stopped_late BIGINT`,
	},
}

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
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("migrate: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing to do where it was committed
	var version int
	if err := tx.QueryRowContext(ctx, `SELECT version FROM history_schema WHERE id = 1`).Scan(&version); err != nil {
		return false, fmt.Errorf("migrate: %w", err)
	}
	if version >= s.known() {
		return true, nil
	}
	for _, statement := range migrations[version] {
		if _, err := tx.ExecContext(ctx, s.dialect.types().Replace(statement)); err != nil && !isThere(err) {
			return false, fmt.Errorf("migrate to version %d: %w", version+1, err)
		}
	}
	if _, err := tx.ExecContext(ctx, s.dialect.bind(`UPDATE history_schema SET version = ?, readable_from = ?, changed_by = ? WHERE id = 1`), version+1, readableFrom(version+1), s.release); err != nil {
		return false, fmt.Errorf("migrate to version %d: %w", version+1, err)
	}
	if err := tx.Commit(); err != nil {
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
