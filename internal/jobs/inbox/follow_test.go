package inbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs/feed"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/stream"
)

// runs runs an inbox until the test ends.
func (r replica) runs(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
}

func TestWhatOneReplicaWritesWakesThoseWhoFollowAtAnother(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		writer, reader := open(), open()
		reader.runs(t)
		log := writer.begun(t, "jobs.batch")
		// The first to follow anything, and those who come while others follow; one has an inbox already.
		log = writer.write(t, log, func(b *store.Batch) { end(b, "o1", "before", "Failed") })
		wakesOf, followers, at := map[string]*stream.WakeChannel{}, map[string]*Follower{}, map[string]uint64{}
		for n := range 4 {
			owner := fmt.Sprintf("o%d", n)
			f := reader.Follow(owner)
			defer f.Leave(nil)
			if err := f.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			s, err := reader.Snapshot(t.Context(), owner, all, 1)
			if err != nil {
				t.Fatal(err)
			}
			wakesOf[owner], followers[owner], at[owner] = stream.NewWakeChannel(), f, s.Seq
			if more, err := f.Next(s.Seq, wakesOf[owner]); more || err != nil {
				t.Fatalf("%s: %t %v", owner, more, err)
			}
		}
		told := func(owner string, do func()) {
			t.Helper()
			do()
			select {
			case <-wakesOf[owner].C:
			case <-time.After(feed.AwayAfter):
				t.Fatalf("%s is not woken", owner)
			}
			if more, err := followers[owner].Next(at[owner], wakesOf[owner]); !more || err != nil {
				t.Errorf("%s: %t %v", owner, more, err)
			}
			changes, err := reader.After(t.Context(), owner, all, at[owner], 10)
			if err != nil || len(changes) == 0 {
				t.Fatalf("%s: %v %v", owner, changes, err)
			}
			at[owner] = changes[len(changes)-1].Seq
			if more, err := followers[owner].Next(at[owner], wakesOf[owner]); more || err != nil {
				t.Errorf("%s: %t %v", owner, more, err)
			}
		}
		for n := range 3 {
			owner := fmt.Sprintf("o%d", n)
			told(owner, func() {
				log = writer.write(t, log, func(b *store.Batch) { end(b, owner, "j"+owner, "Failed") })
			})
		}
		told("o1", func() {
			if err := writer.Read(t.Context(), "o1", all, at["o1"], nil); err != nil {
				t.Error(err)
			}
		})
		told("o0", func() { // more inboxes than are read at once change in one batch
			writer.write(t, log, func(b *store.Batch) {
				for n := range headsAtOnce + 100 {
					end(b, fmt.Sprintf("many%d", n), fmt.Sprintf("m%d", n), "Failed")
				}
				end(b, "o0", "last", "Failed")
			})
		})
		select {
		case <-wakesOf["o3"].C:
			t.Error("o3, of whom nothing is new, is woken")
		default:
		}
	})
}

// A follower must not wait for ever for what cannot come: the database is away, or was restored.
func TestFollowersLearnThatTheDatabaseIsAwayOrAnother(t *testing.T) {
	r := openAt(t, "sqlite://"+t.TempDir()+"/h.db", Options{})
	r.runs(t)
	wakes := stream.NewWakeChannel()
	follow := func() (*Follower, error) {
		f := r.Follow("eva")
		if err := f.Ready(t.Context()); err != nil {
			return f, err
		}
		_, err := f.Next(1, wakes)
		return f, err
	}
	exec := func(statement string) {
		t.Helper()
		if err := r.store.Transact(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), statement)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	awaits := func(f *Follower) {
		t.Helper()
		select {
		case <-wakes.C:
		case <-time.After(4 * feed.AwayAfter):
			t.Fatal("the follower is not woken")
		}
		if _, err := f.Next(1, wakes); !errors.Is(err, ErrAway) {
			t.Errorf("it is told %v", err)
		}
		f.Leave(wakes)
	}
	exec("UPDATE inbox_news SET changes = 7")
	f, err := follow()
	if err != nil {
		t.Fatal(err)
	}
	exec("UPDATE inbox_news SET changes = 3")
	awaits(f)
	if f, err = follow(); err != nil {
		t.Fatal(err)
	}
	exec("ALTER TABLE inbox_news RENAME TO gone")
	awaits(f)
	if f, err = follow(); !errors.Is(err, ErrAway) {
		t.Errorf("who comes while the database is away is told %v", err)
	}
	f.Leave(wakes)
	exec("ALTER TABLE gone RENAME TO inbox_news")
	for wait := time.Millisecond; ; wait *= 2 {
		f, err := follow()
		f.Leave(wakes)
		if err == nil {
			return
		}
		if wait > 4*feed.AwayAfter {
			t.Fatal(err)
		}
		time.Sleep(wait)
	}
}
