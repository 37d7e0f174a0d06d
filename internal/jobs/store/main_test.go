package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

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
	dbtest.Each(t, func(t *testing.T, address string) { test(t, migrated(t, address)) })
}

// onServers runs a test on each sort of database that is a server.
func onServers(t *testing.T, test func(t *testing.T, s *Store)) {
	for name, address := range dbtest.Addresses {
		if name != "SQLite" {
			t.Run(name, func(t *testing.T) { test(t, migrated(t, address(t))) })
		}
	}
}

func migrated(t *testing.T, address string) *Store {
	t.Helper()
	s := openAt(t, address)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

var jobLog = LogName{Cluster: "c1", Resource: "jobs.batch"}

func take(t testing.TB, s *Store, holder string) Log {
	t.Helper()
	log, err := s.Take(t.Context(), jobLog, "default", holder, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// seen makes a batch of what a number of jobs went through.
func seen(to uint64, namespace, owner string, uids []string, states ...jobs.State) Batch {
	b := Batch{To: to}
	for i, uid := range uids {
		var job *jobs.Job
		for _, state := range states {
			next, transition := jobs.Next(job, jobs.Seen{
				ObjectID: jobs.ObjectID{UID: uid, Namespace: namespace, Name: "name-" + uid},
				Said:     jobs.Said{State: state, Owner: owner, Queue: "q", Reason: "R", Message: "ä'\"\\?$1", Requests: map[string]string{"cpu": "2"}, Progress: jobs.Progress{Done: int64(i), Of: 1000}, Counts: jobs.Counts{Failures: int64(i), Done: 2}},
				Version:  to, Created: jobs.Time(1000 + i), Observed: jobs.Time(2000 + 10*i), Deleted: state == jobs.Deleted,
			})
			if next != nil {
				job = next
			}
			if transition != nil {
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
