package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
)

// dialect is where the databases differ.
type dialect interface {
	// bind replaces ? by the database's placeholders.
	bind(query string) string
	// types replaces $ID, $KEY, $TEXT, $BYTES, $OPTIONS, $UNLIKE and $IF in a statement of the
	// schema, and whatever else this database writes differently.
	types() *strings.Replacer
	// now is an expression for the database's clock, in milliseconds.
	now() string
	// upsert is what follows VALUES (…), so that columns of a row that exists by its key are replaced. Without columns
	// the row stays as it is.
	upsert(key, columns []string) string
	// arrays reports whether unnest makes rows of arrays.
	arrays() bool
	// pairs is a list of so many pairs of arguments, which follows IN.
	pairs(n int) string
	// text is a type that a key's values can be cast to.
	text() string
	// seeks reports whether a subquery that takes a value from around it begins where an index has
	// that value and the next column's bound.
	seeks() bool
	// use follows a table's name, so that the database reads the table by an index.
	use(index string) string
	// led is a table expression that reads the rows of w by an index, before anything else is asked
	// of them; args are its arguments.
	led(table, index string, w *where) (text string, args []any)
	// contains is the condition that a column's text contains an argument, letter by letter.
	contains(column string) string
	// locks follows a SELECT, so that nobody else may change its rows.
	locks() string
	// primary is the name of a table's primary key.
	primary(table string) string
	// alone reports whether one transaction writes at a time, whatever it writes.
	alone() bool
	// rewritesIndexes reports whether an upsert writes all indexes anew that have a column which it
	// replaces, also where its value stays.
	rewritesIndexes() bool
	// given follows the columns of an INSERT that says itself what the database otherwise numbers.
	given() string
	// numbersOn makes the database number the rows of a table behind those that were given; empty: it does so by itself.
	numbersOn(table, column string) (statement string)
	// row is what finds a row of a log at once: its key, or something better.
	row(key string) string
	// lock is taken by the gateway that changes the schema. It may outlast the transaction, until unlock.
	lock(ctx context.Context, conn *sql.Conn) error
	unlock(ctx context.Context, conn *sql.Conn) error
}

// schemaLock names the lock; the number is that of PostgreSQL's advisory lock.
const (
	schemaLock       = "kubecast-history-schema"
	schemaLockNumber = 0x6b756265636173
)

type sqlite struct{}

func (sqlite) bind(query string) string { return query }

func (sqlite) types() *strings.Replacer {
	return strings.NewReplacer("$ID", "INTEGER PRIMARY KEY", "$KEY", "TEXT", "$TEXT", "TEXT", "$BYTES", "BLOB", "ADD COLUMN IF NOT EXISTS", "ADD COLUMN", "$OPTIONS", "", "$UNLIKE", "", "$IF", "WHERE")
}

func (sqlite) now() string { return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)" }

func (sqlite) upsert(key, columns []string) string { return onConflict(key, columns) }

func (sqlite) use(index string) string { return " INDEXED BY " + index }

func (sqlite) contains(column string) string { return "INSTR(" + column + ", ?) > 0" }

func (d sqlite) led(table, index string, _ *where) (string, []any) { return table + d.use(index), nil }

func (sqlite) given() string { return "" }

func (sqlite) numbersOn(string, string) string { return "" }

func (sqlite) alone() bool { return true }

func (sqlite) locks() string { return "" }

func (sqlite) arrays() bool { return false }

func (sqlite) rewritesIndexes() bool { return true }

func (sqlite) pairs(n int) string { return "(VALUES " + listOfPairs(n) + ")" }

func (sqlite) seeks() bool { return true }

func (sqlite) text() string { return "TEXT" }

func (sqlite) primary(table string) string { return "sqlite_autoindex_" + table + "_1" }

// The key's index would have the row's number.
func (sqlite) row(string) string { return "rowid" }

// In SQLite every transaction takes the file's only lock for writers at its beginning.
func (sqlite) lock(context.Context, *sql.Conn) error { return nil }

func (sqlite) unlock(context.Context, *sql.Conn) error { return nil }

type postgres struct{}

func (postgres) bind(query string) string {
	var b strings.Builder
	n := 0
	for {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
		query = after
	}
}

// PostgreSQL looks for entries that are alike whenever a page of an index is full; where there are
// none, a tenth of the time of writing went there.
func (postgres) types() *strings.Replacer {
	return strings.NewReplacer("$ID", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "$KEY", `TEXT COLLATE "C"`, "$TEXT", "TEXT", "$BYTES", "BYTEA", "$OPTIONS", "",
		"$UNLIKE", "WITH (deduplicate_items = off)", "$IF", "WHERE")
}

func (postgres) now() string { return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)" }

func (postgres) upsert(key, columns []string) string { return onConflict(key, columns) }

// PostgreSQL takes no hints: it chooses by statistics.
func (postgres) use(string) string { return "" }

func (postgres) contains(column string) string { return "STRPOS(" + column + ", ?) > 0" }

// PostgreSQL plans a subquery with an OFFSET by itself.
func (postgres) led(table, _ string, w *where) (string, []any) {
	return "(SELECT * FROM " + table + " " + w.String() + " OFFSET 0) AS led", w.args
}

func (postgres) given() string { return "OVERRIDING SYSTEM VALUE " }

func (postgres) numbersOn(table, column string) string {
	return "SELECT setval(pg_get_serial_sequence('" + table + "', '" + column + "'), MAX(" + column + ")) FROM " + table
}

func (postgres) alone() bool { return false }

func (postgres) locks() string { return " FOR UPDATE" }

func (postgres) arrays() bool { return true }

// PostgreSQL writes all indexes of a row anew of which one has changed, whatever the statement names.
func (postgres) rewritesIndexes() bool { return false }

// PostgreSQL looks up rows of VALUES by their hash, and would try the pairs of a list one by one.
func (postgres) pairs(n int) string { return "(VALUES " + listOfPairs(n) + ")" }

func (postgres) seeks() bool { return true }

func (postgres) text() string { return "TEXT" }

func (postgres) primary(table string) string { return table + "_pkey" }

func (postgres) row(key string) string { return key }

func (postgres) lock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock("+strconv.Itoa(schemaLockNumber)+")")
	return err
}

func (postgres) unlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock("+strconv.Itoa(schemaLockNumber)+")")
	return err
}

// mariadb is MySQL's dialect, too.
type mariadb struct{}

func (mariadb) bind(query string) string { return query }

// Binary types: every collation either folds letters or ignores spaces at the end, so that another
// owner's name would be as good as one's own.
func (mariadb) types() *strings.Replacer {
	return strings.NewReplacer("$ID", "BIGINT AUTO_INCREMENT PRIMARY KEY", "$KEY", "VARBINARY(256)", "$TEXT", "MEDIUMBLOB", "$BYTES", "MEDIUMBLOB", "CREATE INDEX IF NOT EXISTS", "CREATE INDEX",
		"ADD COLUMN IF NOT EXISTS", "ADD COLUMN", "$OPTIONS", "ENGINE=InnoDB ROW_FORMAT=DYNAMIC", "$UNLIKE", "",
		"$IF parent_uid IS NOT NULL", "", "$IF cause_reason IS NOT NULL", "") // its indexes have all rows
}

func (mariadb) now() string { return "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)" }

func (mariadb) upsert(key, columns []string) string {
	if len(columns) == 0 {
		return " ON DUPLICATE KEY UPDATE " + key[0] + " = " + key[0]
	}
	sets := make([]string, len(columns))
	for i, c := range columns {
		sets[i] = c + " = VALUES(" + c + ")"
	}
	return " ON DUPLICATE KEY UPDATE " + strings.Join(sets, ", ")
}

func (mariadb) use(index string) string { return " FORCE INDEX (" + index + ")" }

// Texts are binary there, so letters count as they are.
func (mariadb) contains(column string) string { return "INSTR(" + column + ", ?) > 0" }

func (d mariadb) led(table, index string, _ *where) (string, []any) { return table + d.use(index), nil }

func (mariadb) given() string { return "" }

func (mariadb) numbersOn(string, string) string { return "" }

func (mariadb) alone() bool { return false }

func (mariadb) locks() string { return " FOR UPDATE" }

func (mariadb) arrays() bool { return false }

func (mariadb) rewritesIndexes() bool { return false }

func (mariadb) pairs(n int) string { return "(" + listOfPairs(n) + ")" }

// MariaDB looks up such a value by the index, and then passes over all that is beyond the bound:
// millions of rows, for a page far back.
func (mariadb) seeks() bool { return false }

func (mariadb) text() string { return "BINARY" }

func (mariadb) primary(string) string { return "PRIMARY" }

func (mariadb) row(key string) string { return key }

func (mariadb) lock(ctx context.Context, conn *sql.Conn) error {
	for {
		// MariaDB knows no endless wait: a negative time gives NULL at once.
		var got sql.NullInt64
		if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK('"+schemaLock+"', 60)").Scan(&got); err != nil {
			return err
		}
		switch {
		case !got.Valid:
			return errors.New("the database gives no lock")
		case got.Int64 == 1:
			return nil
		}
	}
}

func (mariadb) unlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT RELEASE_LOCK('"+schemaLock+"')")
	return err
}

func onConflict(key, columns []string) string {
	if len(columns) == 0 {
		return " ON CONFLICT (" + strings.Join(key, ", ") + ") DO NOTHING"
	}
	sets := make([]string, len(columns))
	for i, c := range columns {
		sets[i] = c + " = excluded." + c
	}
	return " ON CONFLICT (" + strings.Join(key, ", ") + ") DO UPDATE SET " + strings.Join(sets, ", ")
}

func listOfPairs(n int) string { return "(?, ?)" + strings.Repeat(", (?, ?)", n-1) }
