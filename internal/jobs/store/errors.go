package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Cause is what is wrong with the database, as a metric's label: one of a few words.
type Cause string

// The causes.
const (
	CauseMoved    Cause = "moved"    // another recorder has written
	CausePassword Cause = "password" // the database refuses this name and password
	CauseRights   Cause = "rights"   // the database does not let this name do it
	CauseSchema   Cause = "schema"   // the schema is not the one that this gateway knows
	CauseFull     Cause = "full"
	CauseReadOnly Cause = "readonly"
	CauseBusy     Cause = "busy" // no turn could be had in time
	CauseAway     Cause = "away" // the database cannot be reached, or the connection broke
	CauseOther    Cause = "other"
)

// Causes are all of them.
func Causes() []Cause {
	return []Cause{CauseMoved, CausePassword, CauseRights, CauseSchema, CauseFull, CauseReadOnly, CauseBusy, CauseAway, CauseOther}
}

// Named is an error with its cause before it, for the log: all that is known of an error is under one key.
func Named(err error) error { return fmt.Errorf("%s: %w", CauseOf(err), err) }

// CauseOf says what an error of a Store's method comes from.
func CauseOf(err error) Cause {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	var lite *driver.Error
	switch {
	case errors.Is(err, ErrMoved):
		return CauseMoved
	case errors.Is(err, ErrBusy):
		return CauseBusy
	case errors.Is(err, ErrNewer), errors.Is(err, ErrOlder), isMissingTable(err):
		return CauseSchema
	case isForbidden(err):
		return CauseRights
	case errors.As(err, &pg):
		switch {
		case strings.HasPrefix(pg.Code, "28"):
			return CausePassword
		case strings.HasPrefix(pg.Code, "53") && pg.Code != "53300":
			return CauseFull
		case pg.Code == "25006":
			return CauseReadOnly
		case strings.HasPrefix(pg.Code, "57P"), strings.HasPrefix(pg.Code, "08"), pg.Code == "53300":
			return CauseAway
		}
		return CauseOther
	case errors.As(err, &my):
		switch my.Number {
		case 1044, 1045, 1698:
			return CausePassword
		case 1021, 1114, 3:
			return CauseFull
		case 1290, 1792, 1836:
			return CauseReadOnly
		case 1040, 1053, 1205:
			return CauseAway
		}
		return CauseOther
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_FULL:
			return CauseFull
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
			return CauseReadOnly
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
			return CauseAway
		}
		return CauseOther
	}
	return CauseAway // all others are errors of the connection
}

// isDeadlock reports whether the database has undone a transaction because it and another waited for each other.
func isDeadlock(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	return errors.As(err, &pg) && (pg.Code == "40P01" || pg.Code == "40001") || errors.As(err, &my) && my.Number == 1213
}

// isMissingTable reports whether there is no schema at all.
func isMissingTable(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	return errors.As(err, &pg) && pg.Code == "42P01" || errors.As(err, &my) && my.Number == 1146 ||
		err != nil && strings.Contains(err.Error(), "no such table")
}

// isThere reports whether an error says that an index or a column exists already, because a migration broke off after
// making it. MySQL has no IF NOT EXISTS for them, and SQLite none for columns.
func isThere(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && (my.Number == 1061 || my.Number == 1060) || err != nil && strings.Contains(err.Error(), "duplicate column name")
}
