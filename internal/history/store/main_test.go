package store

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/dbtest"
)

var (
	postgresql = dbtest.Postgres()
	maria      = dbtest.MariaDB()
)

func TestMain(m *testing.M) {
	for _, server := range []*dbtest.Server{postgresql, maria} {
		if err := server.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	postgresql.Stop()
	maria.Stop()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// addresses are those of an empty database of each sort.
var addresses = map[string]func(testing.TB) string{
	"SQLite":     func(t testing.TB) string { return "sqlite://" + t.TempDir() + "/h.db" },
	"PostgreSQL": postgresql.Database,
	"MariaDB":    maria.Database,
}

func openAt(t testing.TB, address string) *Store {
	t.Helper()
	s, err := New(Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// each runs a test on each sort of database, with an up-to-date schema.
func each(t *testing.T, test func(t *testing.T, s *Store)) {
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, address(t))
			if err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			test(t, s)
		})
	}
}

var jobs = LogName{Cluster: "c1", Resource: "jobs.batch"}

func take(t testing.TB, s *Store, holder string) Log {
	t.Helper()
	log, err := s.Take(t.Context(), jobs, "default", holder, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// seen makes a batch of what a number of jobs went through.
func seen(to uint64, namespace, owner string, uids []string, states ...history.State) Batch {
	b := Batch{To: to}
	for i, uid := range uids {
		var job *history.Job
		for _, state := range states {
			next, transition := history.Next(job, history.Seen{
				Identity: history.Identity{UID: uid, Namespace: namespace, Name: "name-" + uid},
				Said:     history.Said{State: state, Owner: owner, Queue: "q", Reason: "R", Message: "ä'\"\\?$1", Requests: map[string]string{"cpu": "2"}},
				Version:  to, Created: history.Time(1000 + i), Observed: history.Time(2000 + 10*i), Deleted: state == history.Deleted,
			})
			if next != nil {
				job = next
				b.Transitions = append(b.Transitions, transition)
			}
		}
		b.Jobs = append(b.Jobs, job)
	}
	return b
}

func write(t testing.TB, s *Store, log Log, b Batch) Log {
	t.Helper()
	next, err := s.Write(t.Context(), log, b)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%03d", prefix, i))
	}
	return names
}
