package store

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// rowsRead are how SQLite reads rows that it has not found in an index alone: in any way but by the
// numbers of rows that were found.
var rowsRead = regexp.MustCompile(`^(SCAN|SEARCH) (jobs|transitions)\b`)

// A row that does not fit is looked at in an index with all that is asked for, since to read it
// would be a read of the disk for each.
func TestPagesReadNoRowThatDoesNotFit(t *testing.T) {
	s := openAt(t, "sqlite://"+t.TempDir()+"/h.db")
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := take(t, s, "a")
	b := seen(7, "rare", "robot", numbered("u", 900), jobs.Pending, jobs.Running, jobs.Deleted)
	for _, tr := range b.Transitions {
		tr.NamespaceUID = "known" // else its job's is read
	}
	log = write(t, s, log, b)
	random := rand.New(rand.NewPCG(3, 1))
	plans := 0
	for range 100 {
		f := anyFilter(random)
		f.UIDs = nil // their few rows are read
		if f.Search != "" {
			f = Filter{Search: f.Search, Since: f.Since, Until: f.Until, Causes: f.Causes} // other conditions lead by indexes that have no names
		}
		s.asked = func(query string, args []any) {
			rows, err := s.reads.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
			if err := scanEach(rows, err, func(scan Scan) error {
				var id, parent, unused int
				var step string
				err := scan(&id, &parent, &unused, &step)
				plans++
				switch {
				case !rowsRead.MatchString(step), strings.Contains(step, "COVERING INDEX"), strings.Contains(step, "INTEGER PRIMARY KEY (rowid=?)"):
				case strings.Contains(step, "INDEX transitions_at"), strings.Contains(step, "sqlite_autoindex_transitions_1"): // they lie together
				default:
					t.Errorf("%+v: %s of %s", f, step, query)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		}
		if _, err := s.Jobs(t.Context(), log, f, JobAfter{Created: 1500}, 10); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Transitions(t.Context(), log, f, 0, 10); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
	if plans < 400 {
		t.Error("no more plans than", plans)
	}
}

// What was created before one time and has changed after another is found at once, however much
// there is of either: nothing is looked at in window after window.
func TestJobsOfAnotherTimeThanTheirCreationAreFoundAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		const jobCount, life = 12_000, 5000 // of which each one is created 100 ms after the one before
		for from := 0; from < jobCount; from += 2000 {
			b := Batch{To: uint64(from + 1)}
			for i := from; i < from+2000; i++ {
				created := jobs.Time(1_000_000 + 100*i)
				next, transition := jobs.Next(nil, jobs.Seen{
					ObjectID: jobs.ObjectID{UID: fmt.Sprintf("u%05d", i), Namespace: "n", Name: "n"}, Version: b.To, Created: created, Observed: created + life,
					Said: jobs.Said{State: jobs.Running},
				})
				if i == 3 {
					next.Since = 3_000_000 // one that has lived for long
				}
				b.Jobs, b.Transitions = append(b.Jobs, next), append(b.Transitions, transition)
			}
			log = write(t, s, log, b)
		}
		var asked int
		s.asked = func(string, []any) { asked++ }
		found, err := s.Jobs(t.Context(), log, Filter{Since: 1_000_000 + 100*9000}, JobAfter{Created: 1_000_000 + 100*8000}, 100)
		if err != nil || len(found) != 1 || found[0].UID != "u00003" {
			t.Fatal(found, err)
		}
		if asked != 2 { // which jobs these are, and the page
			t.Errorf("%d questions", asked)
		}
	})
}

// handlerReads counts the rows that MariaDB has read for a store up to each call. All is read on
// one connection from then on, whose reads these are.
func handlerReads(t *testing.T, s *Store) func() int {
	s.reads.SetMaxOpenConns(1)
	return func() (all int) {
		t.Helper()
		if err := s.Each(t.Context(), func(scan Scan) error {
			var name string
			var n int
			err := scan(&name, &n)
			all += n
			return err
		}, "SHOW SESSION STATUS LIKE 'Handler_read_%'"); err != nil {
			t.Fatal(err)
		}
		return all
	}
}

// A page far back reads what is there, and not all that has come since: whoever may see several
// namespaces or asks for several states goes by several stretches of an index, each from where the
// page begins.
func TestAPageFarBackDoesNotReadWhatCameSince(t *testing.T) {
	s := openAt(t, dbtest.Maria.Database(t)) // the only one that looked up a value, and then went through all of its rows
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := take(t, s, "a")
	for to := range 10 {
		for _, namespace := range []string{"a", "b"} {
			uids := numbered(fmt.Sprintf("u%d", to), 1000)
			log = write(t, s, log, seen(log.Version+1, namespace, "robot", uids, jobs.Pending, jobs.Running))
		}
	}
	reads := handlerReads(t, s)
	for _, f := range []Filter{{Within: []NamespacedName{{Namespace: "a"}, {Namespace: "b"}}}, {States: []jobs.State{jobs.Pending, jobs.Running}, Namespace: "a"}, {Owners: []string{"robot"}}} {
		before := reads()
		page, err := s.Transitions(t.Context(), log, f, 2000, 10)
		if err != nil || len(page) != 10 {
			t.Fatal(len(page), err)
		}
		if n := reads() - before; n > 8000 { // of 40,000
			t.Errorf("%+v: %d rows are read", f, n)
		}
	}
}
