package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// errUndo ends a transaction that was only to be tried.
var errUndo = errors.New("undone")

// Missing are the rights at its tables that a gateway needs and has not, such as "INSERT ON inbox".
// It changes nothing: each right is tried with a statement that finds no row.
func (s *Store) Missing(ctx context.Context) (missing []string, err error) {
	try := func(right, statement string) error {
		err := s.Transact(ctx, func(tx *Tx) error {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
			return errUndo
		})
		switch {
		case errors.Is(err, errUndo):
			return nil
		case isForbidden(err):
			missing = append(missing, right)
			return nil
		}
		return fmt.Errorf("try %s: %w", right, err)
	}
	if err := try("SELECT ON "+schemaTable, "SELECT id FROM "+schemaTable+" WHERE 1 = 0"); err != nil {
		return nil, err
	}
	for _, t := range Tables() {
		// What is written is a constant, for which no right to read is needed.
		columns, values := []string{}, []string{}
		for _, c := range t.Columns {
			if t.generated && c.Name == t.Key[0] {
				continue
			}
			value := "''"
			if c.number {
				value = "0"
			}
			columns, values = append(columns, c.Name), append(values, value)
		}
		last := len(columns) - 1
		for _, tried := range [][2]string{
			{"SELECT", "SELECT " + columns[last] + " FROM " + t.Name + " WHERE 1 = 0"},
			{"INSERT", "INSERT INTO " + t.Name + " (" + strings.Join(columns, ", ") + ") SELECT " + strings.Join(values, ", ") + " FROM (SELECT 1 AS one) AS nothing WHERE one = 0"},
			{"UPDATE", "UPDATE " + t.Name + " SET " + columns[last] + " = " + values[last] + " WHERE 1 = 0"},
			{"DELETE", "DELETE FROM " + t.Name + " WHERE 1 = 0"},
		} {
			if err := try(tried[0]+" ON "+t.Name, tried[1]); err != nil {
				return nil, err
			}
		}
	}
	return missing, nil
}

// Ahead is by how much the database's clock is ahead of this one at least; 0 if they may agree.
func (s *Store) Ahead(ctx context.Context) (time.Duration, error) {
	asked := time.Now()
	var now int64
	if err := s.QueryRow(ctx, "SELECT "+s.Now()).Scan(&now); err != nil {
		return 0, err
	}
	at := time.UnixMilli(now)
	if ahead := at.Sub(time.Now().Round(0)); ahead > 0 {
		return ahead, nil
	}
	return min(at.Add(time.Millisecond).Sub(asked.Round(0)), 0), nil
}

// isForbidden reports whether the database refuses a right.
func isForbidden(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	return errors.As(err, &pg) && pg.Code == "42501" || errors.As(err, &my) && (my.Number == 1142 || my.Number == 1143)
}
