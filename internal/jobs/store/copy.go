package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// copyAtOnce is how many rows are copied in one transaction.
const copyAtOnce = 500

var (
	// ErrOtherData means that the target of a copy has rows that are not the source's.
	ErrOtherData = errors.New("the target has other data than the source")
	// ErrInUse means that a gateway records to a database that is to be copied.
	ErrInUse = errors.New("a gateway records to it; end all gateways, and wait until their leases have run out")
)

// Copy copies all rows of a database to another one, whose schema has the same version and which
// has no rows. If it broke off before, it goes on where it did. At the end it compares how many
// rows there are. It tells of each table how many that are.
//
// Nobody may write to either meanwhile. So Copy refuses to begin while a gateway has a lease in one
// of them, and compares at the end the rows that every gateway changes that writes.
func Copy(ctx context.Context, from, to *Store, told func(table string, rows int)) error {
	both := []struct {
		name string
		*Store
	}{{"source", from}, {"target", to}}
	for _, s := range both {
		if err := s.unused(ctx); err != nil {
			return fmt.Errorf("the %s: %w", s.name, err)
		}
	}
	for _, t := range Tables() {
		if err := copyTable(ctx, from, to, &t); err != nil {
			return fmt.Errorf("copy %s: %w", t.Name, err)
		}
	}
	for _, t := range Tables() {
		var counts [2]int
		for i, s := range []*Store{from, to} {
			if err := s.QueryRow(ctx, "SELECT COUNT(*) FROM "+t.Name).Scan(&counts[i]); err != nil {
				return fmt.Errorf("count %s: %w", t.Name, err)
			}
		}
		if counts[0] != counts[1] {
			return fmt.Errorf("%s: %w: %d rows, and %d", t.Name, ErrOtherData, counts[1], counts[0])
		}
		if slices.Contains(moving, t.Name) {
			if err := same(ctx, from, to, &t); err != nil {
				return err
			}
		}
		told(t.Name, counts[0])
	}
	return nil
}

// moving are the tables of which a gateway changes a row whenever it writes, whatever that is:
// leases and positions, and the count of what was written to inboxes. They are small.
var moving = []string{"logs", "webhooks", "inbox_news"}

// unused reports whether all of a database can be copied, or be written: this gateway knows all of
// its schema, and no gateway has a lease.
func (s *Store) unused(ctx context.Context) error {
	found, err := s.schema(ctx)
	if err == nil {
		err = s.fits(found)
	}
	switch {
	case err != nil:
		return err
	case found.version > s.known():
		return fmt.Errorf("%w: it has version %d, of which this gateway knows %d: copy it with release %s", ErrNewer, found.version, s.known(), found.release)
	}
	for _, table := range []string{"logs", "webhooks"} {
		var held int
		if err := s.QueryRow(ctx, "SELECT COUNT(*) FROM "+table+" WHERE lease > "+s.Now()).Scan(&held); err != nil {
			return err
		}
		if held > 0 {
			return ErrInUse
		}
	}
	return nil
}

// same reports whether a small table has the same rows in both databases.
func same(ctx context.Context, from, to *Store, t *Table) error {
	var after []any
	for {
		had, err := from.rowsAfter(ctx, t, after)
		if err != nil {
			return err
		}
		has, err := to.rowsAfter(ctx, t, after)
		switch {
		case err != nil:
			return err
		case !reflect.DeepEqual(had, has):
			return fmt.Errorf("%s was changed while it was copied: %w", t.Name, ErrInUse)
		case len(had) < copyAtOnce:
			return nil
		}
		after = t.keyOf(had[len(had)-1])
	}
}

// copyTable copies one table, in the order of its key. What the target has already must be what the source begins with.
func copyTable(ctx context.Context, from, to *Store, t *Table) error {
	var after []any
	there := !t.seeded // what a migration has made is replaced
	for {
		rows, err := from.rowsAfter(ctx, t, after)
		if err != nil {
			return err
		}
		if there {
			old, err := to.rowsAfter(ctx, t, after)
			switch {
			case err != nil:
				return err
			case len(old) > len(rows) || len(old) > 0 && !reflect.DeepEqual(old, rows[:len(old)]):
				return ErrOtherData
			case len(old) == len(rows) && len(rows) == copyAtOnce:
				after = t.keyOf(rows[len(rows)-1])
				continue
			}
			there = false
			rows = rows[len(old):]
			if len(rows) == 0 {
				break
			}
		}
		if len(rows) == 0 {
			break
		}
		if err := to.Transact(ctx, func(tx *Tx) error { return insertCopied(ctx, tx, t, rows) }); err != nil {
			return err
		}
		after = t.keyOf(rows[len(rows)-1])
	}
	if !t.generated {
		return nil
	}
	return to.Transact(ctx, func(tx *Tx) error { return tx.numberOn(ctx, t.Name, t.Key[0]) })
}

func insertCopied(ctx context.Context, tx *Tx, t *Table, rows [][]any) error {
	suffix := ""
	if t.seeded {
		suffix = tx.dialect.upsert(t.Key, t.names())
	}
	into := "INSERT INTO " + t.Name + " (" + strings.Join(t.names(), ", ") + ") "
	if t.generated {
		into += tx.dialect.given()
	}
	return tx.insertValues(ctx, into, len(t.Columns), rows, suffix)
}

// rowsAfter are rows that follow a key, in its order.
func (s *Store) rowsAfter(ctx context.Context, t *Table, after []any) (rows [][]any, err error) {
	where, args := "", []any(nil)
	if after != nil {
		where, args = " WHERE "+following(t.Key), followingArgs(after)
	}
	err = s.Each(ctx, func(scan Scan) error {
		row, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		for i, c := range t.Columns {
			switch {
			case c.number:
				into[i] = new(sql.NullInt64)
			case c.bytes:
				into[i] = new([]byte)
			default:
				into[i] = new(sql.NullString)
			}
		}
		if err := scan(into...); err != nil {
			return err
		}
		for i := range into {
			switch v := into[i].(type) {
			case *sql.NullInt64:
				if v.Valid {
					row[i] = v.Int64
				}
			case *sql.NullString:
				if v.Valid {
					row[i] = v.String
				}
			case *[]byte:
				row[i] = *v
			}
		}
		rows = append(rows, row)
		return nil
	}, fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT %d", strings.Join(t.names(), ", "), t.Name, where, strings.Join(t.Key, ", "), copyAtOnce), args...)
	return rows, err
}

// following is the condition that a row's key follows another. Databases read it along the key's index.
func following(key []string) string {
	if len(key) == 1 {
		return key[0] + " > ?"
	}
	return key[0] + " >= ? AND (" + key[0] + " > ? OR " + following(key[1:]) + ")"
}

func followingArgs(key []any) []any {
	if len(key) == 1 {
		return key
	}
	return append([]any{key[0], key[0]}, followingArgs(key[1:])...)
}

func (t *Table) keyOf(row []any) (key []any) {
	for _, name := range t.Key {
		for i, c := range t.Columns {
			if c.Name == name {
				key = append(key, row[i])
			}
		}
	}
	return key
}
