package outbox

import (
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// history is a log to which a test writes what jobs went through.
type history struct {
	t   *testing.T
	db  *store.Store
	log store.Log
	box *Store
}

// each runs a test on each sort of database, with a log that has begun.
func each(t *testing.T, targets []Route, test func(t *testing.T, p *history)) {
	dbtest.Each(t, func(t *testing.T, address string) {
		db, err := store.New(store.Options{Address: address, Writers: []store.Writer{NewWriter(targets)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := &history{t: t, db: db, box: New(db)}
		if p.log, err = db.Take(t.Context(), store.LogName{Cluster: "c1", Resource: "jobs.batch"}, "east", "test", time.Minute); err != nil {
			t.Fatal(err)
		}
		p.write(seen("first", 1, false, jobs.Failed)) // a first start finds it, so it is told to nobody
		test(t, p)
	})
}

// seen is a job of the namespace n that goes through states.
func seen(uid string, version uint64, late bool, states ...jobs.State) (b store.Batch) {
	b.To = version
	var job *jobs.Job
	for i, state := range states {
		next, transition := jobs.Next(job, jobs.Seen{
			ObjectID: jobs.ObjectID{UID: uid, Namespace: "n", Name: "name-" + uid}, Said: jobs.Said{State: state, Message: "<ä'\"\\>"},
			Version: version, Created: 1000, Observed: jobs.Time(2000 + i), Late: late, Deleted: state == jobs.Deleted,
		})
		job = next
		b.Transitions, b.After = append(b.Transitions, transition), append(b.After, next)
	}
	b.Jobs = []*jobs.Job{job}
	return b
}

func (p *history) write(b store.Batch) {
	p.t.Helper()
	next, err := p.db.Write(p.t.Context(), p.log, b)
	if err != nil {
		p.t.Fatal(err)
	}
	p.log = next
}

// waiting are the messages of a target that wait, in the order of their numbers.
func (p *history) waiting(target string) []*Message {
	p.t.Helper()
	messages, err := (&Store{p.db}).messages(p.t.Context(), "target = ? AND dead = 0 ORDER BY log, seq", target)
	if err != nil {
		p.t.Fatal(err)
	}
	return messages
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
