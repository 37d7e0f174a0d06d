package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// What is copied and granted is read from the migrations, and is what databases make of them.
func TestTablesAreThoseOfTheDatabase(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		query := "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position"
		switch s.dialect.(type) {
		case sqlite:
			query = "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY m.name, c.cid"
		case mariadb:
			query = strings.Replace(query, "current_schema()", "DATABASE()", 1)
		}
		found := map[string][]string{}
		if err := s.Each(t.Context(), func(scan Scan) error {
			var table, column string
			err := scan(&table, &column)
			found[table] = append(found[table], column)
			return err
		}, query); err != nil {
			t.Fatal(err)
		}
		known := map[string][]string{schemaTable: {"id", "version", "readable_from", "changed_by"}}
		for _, table := range Tables() {
			known[table.Name] = table.names()
			if len(table.Key) == 0 {
				t.Errorf("%s has no key", table.Name)
			}
		}
		if !reflect.DeepEqual(found, known) {
			t.Errorf("the database has %v, and the list %v", found, known)
		}
	})
}

// filled puts rows into every table: what recorders write, and where that is not all, rows made by their columns.
func filled(t *testing.T, s *Store) {
	t.Helper()
	log := take(t, s, "a")
	log = write(t, s, log, seen(5, "n", "o", numbered("u", 700), jobs.Pending, jobs.Running))
	if err := s.Release(t.Context(), log.LogName, "a"); err != nil {
		t.Fatal(err)
	}
	for _, table := range Tables() {
		var n int
		if err := s.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table.Name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 && !table.seeded {
			continue
		}
		rows := make([][]any, 1)
		if !table.seeded {
			rows = make([][]any, 1200)
		}
		for i := range rows {
			for _, c := range table.Columns {
				switch {
				case c.number:
					rows[i] = append(rows[i], int64(i+1))
				case c.bytes:
					rows[i] = append(rows[i], []byte{0, 0xff, '\'', '\\', byte(i)})
				default:
					rows[i] = append(rows[i], fmt.Sprintf("%04d ä'\"\\?\n\r$1;", i))
				}
			}
		}
		if err := s.Transact(t.Context(), func(tx *Tx) error {
			return tx.Insert(t.Context(), table.Name, table.names(), rows, table.Key, table.names())
		}); err != nil {
			t.Fatal(table.Name, err)
		}
	}
}

// everything is all rows of all tables.
func everything(t *testing.T, s *Store) map[string][][]any {
	t.Helper()
	all := map[string][][]any{}
	for _, table := range Tables() {
		var after []any
		for {
			rows, err := s.rowsAfter(t.Context(), &table, after)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 {
				break
			}
			all[table.Name] = append(all[table.Name], rows...)
			after = table.keyOf(rows[len(rows)-1])
		}
	}
	return all
}

// A history that moves takes along what its tables have, all of them, wherever it moves.
func TestAMovedHistoryHasAllThatItHad(t *testing.T) {
	for source, sourceAddress := range dbtest.Addresses {
		for target, targetAddress := range dbtest.Addresses {
			if (source == "SQLite") == (target == "SQLite") && source != "PostgreSQL" {
				continue
			}
			t.Run(source+" to "+target, func(t *testing.T) {
				from, to := openAt(t, sourceAddress(t)), openAt(t, targetAddress(t))
				if err := Copy(t.Context(), from, to, func(string, int) {}); !errors.Is(err, ErrOlder) {
					t.Fatal(err)
				}
				if err := errors.Join(from.Migrate(t.Context()), to.Migrate(t.Context())); err != nil {
					t.Fatal(err)
				}
				filled(t, from)
				var told []string
				if err := Copy(t.Context(), from, to, func(table string, rows int) { told = append(told, table) }); err != nil {
					t.Fatal(err)
				}
				had := everything(t, from)
				if has := everything(t, to); !reflect.DeepEqual(has, had) || len(told) != len(Tables()) || len(had) != len(Tables()) {
					t.Errorf("it has not all: %v of %d tables are told", told, len(had))
				}
				// The numbers of logs go on behind those that were copied.
				if _, err := to.Take(t.Context(), LogName{Cluster: "c2", Resource: "jobs.batch"}, "another", "b", 1); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A copy that broke off goes on, and one that would mix two histories is refused.
func TestACopyThatBrokeOffGoesOnAndMixesNothing(t *testing.T) {
	each(t, func(t *testing.T, to *Store) {
		from := openAt(t, "sqlite://"+t.TempDir()+"/from.db")
		if err := from.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		filled(t, from)
		quiet := func(string, int) {}
		for _, t0 := range Tables()[:3] {
			rows, err := from.rowsAfter(t.Context(), &t0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := to.Transact(t.Context(), func(tx *Tx) error { return insertCopied(t.Context(), tx, &t0, rows) }); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time there is nothing to do
			if err := Copy(t.Context(), from, to, quiet); err != nil || !reflect.DeepEqual(everything(t, from), everything(t, to)) {
				t.Fatalf("it does not go on: %v", err)
			}
		}
		if _, err := to.execute(t.Context(), "UPDATE jobs SET owner = 'mallory' WHERE uid = 'u300'"); err != nil {
			t.Fatal(err)
		}
		if err := Copy(t.Context(), from, to, quiet); !errors.Is(err, ErrOtherData) {
			t.Errorf("a target with another history: %v", err)
		}
		take(t, from, "a")
		if err := Copy(t.Context(), from, to, quiet); !errors.Is(err, ErrInUse) {
			t.Errorf("a source that is written to: %v", err)
		}
	})
}

// A copy that is killed at any moment, in the middle of a table too, is gone on with by the same command.
func TestACopyThatIsKilledAnywhereGoesOn(t *testing.T) {
	from, to := migrated(t, dbtest.Addresses["SQLite"](t)), migrated(t, dbtest.PostgreSQL.Database(t))
	filled(t, from)
	killed := 0
	for allowed := 4; ; allowed += 17 {
		ctx, kill := context.WithCancel(t.Context())
		questions := 0
		from.asked = func(string, []any) {
			if questions++; questions == allowed {
				kill()
			}
		}
		err := Copy(ctx, from, to, func(string, int) {})
		kill()
		if err == nil {
			break
		}
		if killed++; !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d kills: %v", killed, err)
		}
	}
	from.asked = nil
	if has, had := everything(t, to), everything(t, from); killed < 3 || !reflect.DeepEqual(has, had) {
		t.Errorf("after %d kills it has not all", killed)
	}
}

// What is written to while it is copied would be copied in part.
func TestACopyOfWhatIsWrittenToIsRefused(t *testing.T) {
	from, to := migrated(t, dbtest.Addresses["SQLite"](t)), migrated(t, dbtest.Addresses["SQLite"](t))
	log := take(t, from, "a")
	if err := from.Release(t.Context(), log.LogName, "a"); err != nil {
		t.Fatal(err)
	}
	other, wrote := openAt(t, "sqlite://"+from.file), false
	other.asked = func(query string, _ []any) { // a gateway that starts, records, and ends before the copy does
		if !wrote && strings.Contains(query, "FROM transitions") {
			wrote = true
			log := write(t, from, take(t, from, "b"), seen(9, "n", "o", []string{"late"}, jobs.Pending))
			if err := from.Release(t.Context(), log.LogName, "b"); err != nil {
				t.Error(err)
			}
		}
	}
	if err := Copy(t.Context(), other, to, func(string, int) {}); !errors.Is(err, ErrInUse) || !wrote {
		t.Errorf("it was written to: %v", err)
	}
}

// A gateway that has a lease may write at any moment, be it of a log or of a webhook, in the source or in the target.
func TestACopyWaitsForNoLease(t *testing.T) {
	each(t, func(t *testing.T, to *Store) {
		from := migrated(t, dbtest.Addresses["SQLite"](t))
		refused := func(what string, want error) {
			t.Helper()
			if err := Copy(t.Context(), from, to, func(string, int) {}); !errors.Is(err, want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := from.execute(t.Context(), "INSERT INTO webhooks (name, url, off, reason, hold, holder, lease, answered, answer) VALUES ('w', '', 0, '', 0, 'a', "+from.Now()+" + 60000, 0, '')"); err != nil {
			t.Fatal(err)
		}
		refused("a webhook's lease", ErrInUse)
		if _, err := from.execute(t.Context(), "UPDATE webhooks SET lease = 0"); err != nil {
			t.Fatal(err)
		}
		log := take(t, to, "a")
		refused("the target's lease", ErrInUse)
		if err := to.Release(t.Context(), log.LogName, "a"); err != nil {
			t.Fatal(err)
		}
		refused("a target that has a log", ErrOtherData)
	})
}

// Digests have up to a megabyte, and servers refuse statements that are too large. So nobody's
// digests keep a history where it is.
func TestLargeRowsAreCopied(t *testing.T) {
	each(t, func(t *testing.T, to *Store) {
		from := openAt(t, "sqlite://"+t.TempDir()+"/from.db")
		if err := from.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		columns := strings.Fields("owner seq at kind cluster resource namespace name silent read_at body")
		body := strings.Repeat("x", 1<<20)
		var rows [][]any
		for seq := range 40 {
			rows = append(rows, []any{"alice", seq, 1, "digest", "c", "", "", "", 0, 0, body})
		}
		if err := from.Transact(t.Context(), func(tx *Tx) error { return tx.Insert(t.Context(), "inbox", columns, rows, nil, nil) }); err != nil {
			t.Fatal(err)
		}
		copied := 0
		if err := Copy(t.Context(), from, to, func(_ string, rows int) { copied += rows }); err != nil || copied < len(rows) {
			t.Errorf("%d rows, %v", copied, err)
		}
	})
}

// A role that gets what the document says has all that it needs.
func TestTheDocumentNamesAllTables(t *testing.T) {
	text, err := os.ReadFile("../../../docs/history.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, table := range Tables() {
		names = append(names, table.Name)
	}
	if want := "`" + strings.Join(slices.Sorted(slices.Values(names)), "`, `") + "`"; !strings.Contains(string(text), want) {
		t.Errorf("docs/history.md does not name %s", want)
	}
}
