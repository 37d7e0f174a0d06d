package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// Whatever right is taken away of those that are granted, it is named, and no other; and nothing is
// changed by trying them.
func TestTheRightThatIsMissingAtTheDatabaseIsNamed(t *testing.T) {
	for name, server := range map[string]*dbtest.Server{"PostgreSQL": dbtest.PostgreSQL, "MariaDB": dbtest.Maria} {
		t.Run(name, func(t *testing.T) {
			address := server.Database(t)
			owner := migrated(t, address)
			role, as := server.Role(t, "someone", address)
			grants, err := Grants(Options{Address: address}, "someone")
			if err != nil {
				t.Fatal(err)
			}
			say := func(statement string) {
				t.Helper()
				if _, err := owner.execute(t.Context(), statement); err != nil {
					t.Fatal(statement, err)
				}
			}
			for _, statement := range grants {
				say(statement)
			}
			s := openAt(t, as)
			missing := func(want ...string) {
				t.Helper()
				if got, err := s.Missing(t.Context()); err != nil || !slices.Equal(got, want) {
					t.Errorf("%q, not %q: %v", got, want, err)
				}
			}
			missing()
			rights := strings.Split(rights, ", ")
			for i, table := range Tables() { // each table, and each right several times
				right := rights[i%len(rights)]
				say("REVOKE " + right + " ON " + table.Name + " FROM " + role)
				missing(right + " ON " + table.Name)
				say("GRANT " + right + " ON " + table.Name + " TO " + role)
			}
			say("REVOKE UPDATE ON logs FROM " + role)
			if _, err := s.Take(t.Context(), jobLog, "default", "a", 1); err == nil || CauseOf(err) != CauseRights || errors.Is(err, ErrHeld) {
				t.Errorf("%v is %s", err, CauseOf(err))
			}
			if ahead, err := s.Ahead(t.Context()); err != nil || ahead.Abs() > time.Minute {
				t.Error(ahead, err)
			}
			for _, table := range Tables() {
				var n int
				if err := owner.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table.Name).Scan(&n); err != nil || n > 0 && !table.seeded {
					t.Errorf("%s has %d rows: %v", table.Name, n, err)
				}
			}
		})
	}
}
