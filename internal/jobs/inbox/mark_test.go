package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs/store"
)

// fills gives a user so many unread notifications.
func (r replica) fills(t testing.TB, log store.Log, owner string, n int) store.Log {
	t.Helper()
	for ; n > 0; n -= 500 {
		log = r.write(t, log, func(b *store.Batch) {
			for i := range min(n, 500) {
				end(b, owner, fmt.Sprint(owner, "-", log.Version, "-", i), "Failed")
			}
		})
	}
	return log
}

// Whoever marks thousands as read does so in several transactions, between which others write.
func TestMarksOfThousandsAreSeveralSmallWrites(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		r.fills(t, r.begun(t, "jobs.batch"), "eva", 2*markAtOnce+100)
		before, err := headOf(t.Context(), r.of("eva"), "eva")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Read(t.Context(), "eva", all, 1<<62, nil); err != nil {
			t.Fatal(err)
		}
		changes, err := r.After(t.Context(), "eva", all, before.seq, 100)
		if err != nil || len(changes) != 3 {
			t.Fatal(len(changes), err)
		}
		upTo := before.began
		for i, c := range changes {
			n, err := strconv.ParseUint(c.Mark.UpTo, 10, 64)
			if marked := n - upTo; err != nil || marked > markAtOnce || i < 2 && marked != markAtOnce {
				t.Errorf("mark %d is up to %s, behind %d", i, c.Mark.UpTo, upTo)
			}
			upTo = n
		}
		if upTo != before.seq || *changes[2].Mark.Unread != 0 {
			t.Errorf("all are marked up to %d, of %d; %d are unread", upTo, before.seq, *changes[2].Mark.Unread)
		}
	})
}

// What is to be marked is found before it is anybody's turn to write. Where there is nothing, nobody's turn is taken.
func TestMarksThatMarkNothingDoNotWaitToWrite(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		r.fills(t, r.begun(t, "jobs.batch"), "eva", 10)
		hidden := func(JobRef) bool { return false }
		hold := func(do func() error) error { // with all turns to write taken
			if err := r.store.For(store.System("a")).Transact(t.Context(), func(*store.Tx) error {
				if r.store.WritesAlone() {
					return do()
				}
				return r.store.For(store.System("b")).Transact(t.Context(), func(*store.Tx) error { return do() })
			}); err != nil {
				return err
			}
			return nil
		}
		if err := hold(func() error {
			return errors.Join(r.Read(t.Context(), "eva", all, 0, []uint64{1, 1 << 62}), r.Read(t.Context(), "eva", hidden, 1<<62, nil), r.Read(t.Context(), "nobody", all, 1<<62, nil))
		}); err != nil {
			t.Error(err)
		}
		within, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := hold(func() error { return r.Read(within, "eva", all, 1<<62, nil) }); !errors.Is(err, store.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a mark that marks something is written while it is nobody's turn: %v", err)
		}
	})
}

// What one user asks for without end delays neither what is recorded nor what others ask for, beyond their share.
func TestMarksOfOneUserDelayNeitherTheRecorderNorOthers(t *testing.T) {
	each(t, func(t *testing.T, open func() replica) {
		r := open()
		recorder := replica{r.Inbox, r.store.For(store.Recorder("jobs"))}
		log := r.fills(t, recorder.begun(t, "jobs.batch"), "mallory", 2000)
		log = r.fills(t, log, "alice", 50)
		measure := func() (record, read, mark time.Duration) {
			var records, reads, marks []time.Duration
			took := func(to *[]time.Duration, do func() error) {
				began := time.Now()
				if err := do(); err != nil {
					t.Error(err)
				}
				*to = append(*to, time.Since(began))
			}
			for i := range 15 {
				took(&records, func() error {
					log = recorder.write(t, log, func(b *store.Batch) { end(b, "alice", fmt.Sprint("good-", log.Version, "-", i), "Failed") })
					return nil
				})
				took(&reads, func() error { _, _, err := r.Page(t.Context(), "alice", all, 0, false, 10); return err })
				took(&marks, func() error { return r.Read(t.Context(), "alice", all, 1<<62, nil) })
			}
			return slices.Max(records), slices.Max(reads), slices.Max(marks)
		}
		recordAlone, readAlone, markAlone := measure()
		ctx, stop := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		for n := range 16 {
			asking.Go(func() {
				for ctx.Err() == nil {
					switch n % 4 {
					case 0:
						_ = r.Read(ctx, "mallory", all, 0, []uint64{1 << 62})
					case 1:
						_ = r.Read(ctx, "mallory", all, 1<<62, nil)
					case 2:
						_, _ = r.Choose(ctx, "mallory", Choice{})
					case 3:
						_, _ = r.Unread(ctx, "mallory", all)
					}
				}
			})
		}
		record, read, mark := measure()
		stop()
		asking.Wait()
		t.Logf("alone and beside: recorded in %v, %v; a page in %v, %v; a mark in %v, %v", recordAlone, record, readAlone, read, markAlone, mark)
		const grace = 300 * time.Millisecond // of a machine that does other things
		if record > 20*recordAlone+grace || read > 20*readAlone+grace || mark > 20*markAlone+grace {
			t.Error("somebody waits for more than their share")
		}
	})
}
