package service

import (
	"errors"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestWhatIsRemovedWhileItIsReadIsNotPassedOver: a reader that found out where the log stands,
// before a part of it was removed, would take the rest for all of it.
func TestWhatIsRemovedWhileItIsReadIsNotPassedOver(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, address string) {
		database, err := store.New(store.Options{Address: address})
		if err != nil {
			t.Fatal(err)
		}
		defer database.Close()
		if err := database.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		log, err := database.Take(t.Context(), store.LogName{Cluster: "c1", Resource: "jobs.batch"}, "default", "holder", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name   string
			states []jobs.State
		}{{"gone", []jobs.State{jobs.Running, jobs.Deleted}}, {"living", []jobs.State{jobs.Running}}} {
			b := store.Batch{To: log.Version + 1, Jobs: make([]*jobs.Job, 1)}
			for _, state := range c.states {
				job, transition := jobs.Next(b.Jobs[0], jobs.Seen{
					ObjectID: jobs.ObjectID{UID: c.name, Namespace: "team", Name: c.name}, Version: b.To, Created: 1000, Observed: 2000,
					Said: jobs.Said{State: state}, Deleted: state == jobs.Deleted,
				})
				b.Jobs[0], b.Transitions = job, append(b.Transitions, transition)
			}
			if log, err = database.Write(t.Context(), log, b); err != nil {
				t.Fatal(err)
			}
		}
		reader := Reader{database: database.For(store.User("ann"))}
		found, upTo, err := reader.follow(t.Context(), Transitions, log, log, store.Filter{}, 0, 10)
		if err != nil || len(found) != 3 || upTo != 3 {
			t.Fatalf("%d transitions up to %d: %v", len(found), upTo, err)
		}
		if removed, err := database.Expire(t.Context(), log, 3000, 10); err != nil || removed.Jobs != 1 {
			t.Fatal(removed, err)
		}
		for after, want := range map[uint64]error{0: ErrExpired, 1: ErrExpired, 2: nil, 3: nil, 4: ErrAhead} {
			if _, _, err := reader.follow(t.Context(), Transitions, log, log, store.Filter{}, after, 10); !errors.Is(err, want) {
				t.Errorf("after %d: %v, want %v", after, err, want)
			}
		}
	})
}
