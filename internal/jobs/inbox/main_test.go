package inbox

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// replica is a gateway's part of the matter: connections of its own, and an inbox that writes with them.
type replica struct {
	*Inbox
	store *store.Store
}

// each runs a test on each sort of database, with a way to open replicas.
func each(t *testing.T, test func(t *testing.T, open func() replica)) {
	dbtest.Each(t, func(t *testing.T, address string) {
		test(t, func() replica { return openAt(t, address, Options{}) })
	})
}

func openAt(t testing.TB, address string, opts Options) replica {
	t.Helper()
	opts.Registerer, opts.Log = prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	if opts.States == nil {
		opts.States = []jobs.State{jobs.Succeeded, jobs.Failed}
	}
	if opts.Keep == 0 {
		opts.Keep = time.Hour
	}
	box := New(opts)
	s, err := store.New(store.Options{Address: address, Writers: []store.Writer{box}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	close(ready)
	box.Use(s, ready, func(log store.LogName, seq uint64) string { return fmt.Sprint("sealed ", log.Resource, " ", seq) })
	return replica{box, s}
}

// begun is a log of a kind that has been recorded before.
func (r replica) begun(t testing.TB, kind string) store.Log {
	t.Helper()
	log, err := r.store.Take(t.Context(), store.LogName{Cluster: "c1", Resource: kind}, "default", "holder", time.Minute)
	if err == nil && log.Version == 0 {
		log, err = r.store.Write(t.Context(), log, store.Batch{To: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// end is what a job of an owner went through; states of which the last letter is ~ are late.
func end(b *store.Batch, owner, name string, states ...string) {
	var job *jobs.Job
	for _, state := range states {
		late := state[len(state)-1] == '~'
		if late {
			state = state[:len(state)-1]
		}
		next, transition := jobs.Next(job, jobs.Seen{
			ObjectID: jobs.ObjectID{UID: "u-" + name, Namespace: "team", Name: name}, Version: b.To, Created: 1000, Observed: 2000, Late: late,
			Said: jobs.Said{State: jobs.State(state), Owner: owner, Reason: "Because"}, Deleted: state == "Deleted",
		})
		if next == nil {
			continue
		}
		job = next
		next.NamespaceUID, transition.NamespaceUID = "team-1", "team-1"
		b.Transitions, b.After = append(b.Transitions, transition), append(b.After, next)
	}
	b.Jobs = append(b.Jobs, job)
}

func (r replica) write(t testing.TB, log store.Log, fill func(*store.Batch)) store.Log {
	t.Helper()
	b := store.Batch{To: log.Version + 1}
	fill(&b)
	next, err := r.store.Write(t.Context(), log, b)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func all(JobRef) bool { return true }

// titles are those of a user's notifications, the newest first.
func (r replica) titles(t testing.TB, owner string, sees Sees) (titles []string) {
	t.Helper()
	found, _, err := r.Page(t.Context(), owner, sees, 0, false, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range found {
		titles = append(titles, n.Title)
	}
	return titles
}
