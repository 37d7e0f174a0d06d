package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/jobs"
)

// Who is served next depends on nothing but on who waits: no clock, and no database, has a say in it.
func TestRecordersComeFirstAndTheRestTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, writer := range []dialect{sqlite{}, postgres{}, mariadb{}} {
			s := &Store{&database{turns: newTurns(writer)}, System("")}
			var held []func()
			hold := func(p QuotaOwner) {
				_, release, err := s.For(p).toWrite(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, release)
			}
			hold(User("mallory"))
			if !writer.alone() {
				hold(User("another"))
			}
			var order []string
			wait := func(name string, p QuotaOwner) {
				go func() {
					_, release, err := s.For(p).toWrite(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					order = append(order, name)
					release()
				}()
				synctest.Wait()
			}
			for range 3 {
				wait("mallory", User("mallory"))
			}
			wait("alice", User("alice"))
			wait("system", System("webhooks"))
			wait("system", System("webhooks"))
			wait("recorder", Recorder("jobs"))
			want := "[recorder system mallory system alice mallory mallory]"
			if !writer.alone() && fmt.Sprint(order) != "[recorder]" {
				t.Errorf("a recorder waits for users: %v", order)
			}
			for _, release := range held {
				release()
				synctest.Wait()
			}
			if got := fmt.Sprint(order); got != want && writer.alone() || len(order) != 7 {
				t.Errorf("%T: %v, want %v", writer, got, want)
			}
		}
	})
}

// Statements that never end have all connections that users can get, and the recorder does not notice.
func TestStalledUsersHoldNoConnectionOfTheRecorders(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		recorder := s.For(Recorder("jobs"))
		log := take(t, recorder, "a")
		ctx, stop := context.WithCancel(t.Context())
		stalled, ended := make(chan error, 2*readers), make(chan error, 2*readers)
		for i := range 2 * readers {
			go func() {
				began := false
				ended <- s.For(User(fmt.Sprint("mallory", i))).Each(ctx, func(Scan) error {
					if !began {
						began = true
						stalled <- nil
					}
					<-ctx.Done()
					return ctx.Err()
				}, "SELECT id FROM logs")
			}()
		}
		reading := readers // as many as get a turn
		if s.turns.alone {
			reading = min(max(2, runtime.GOMAXPROCS(0)), readers)
		}
		for range reading {
			<-stalled
		}
		for i := range 20 {
			next, transition := jobs.Next(nil, jobs.Seen{
				ObjectID: jobs.ObjectID{UID: fmt.Sprint("u", i), Namespace: "n", Name: "n"}, Version: log.Version + 1, Created: 1, Observed: 2, Said: jobs.Said{State: jobs.Running},
			})
			log = write(t, recorder, log, Batch{To: log.Version + 1, Transitions: []*jobs.Transition{transition}, Jobs: []*jobs.Job{next}})
		}
		if living, err := recorder.Living(t.Context(), log); err != nil || len(living) != 20 {
			t.Error(len(living), err)
		}
		within, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := s.For(User("alice")).Find(within, jobLog); !errors.Is(err, ErrBusy) || !errors.Is(err, budget.ErrTooMuch) || CauseOf(err) != CauseBusy {
			t.Errorf("who gets no turn is told %v", err)
		}
		stop()
		for range 2 * readers {
			<-ended
		}
	})
}

// A user's transaction that waits for another's row ends when its turn does, and gives back what it holds.
func TestAUsersTransactionEndsWithItsTurn(t *testing.T) { // in a file nobody waits for a row while another writes
	onServers(t, func(t *testing.T, s *Store) {
		s.turns.within = 50 * time.Millisecond
		log := take(t, s, "a")
		if err := s.Transact(t.Context(), func(held *Tx) error {
			if _, err := held.Exec(t.Context(), "UPDATE logs SET holder = 'b' WHERE id = ?", log.ID); err != nil {
				return err
			}
			err := s.For(User("mallory")).Transact(t.Context(), func(tx *Tx) error {
				_, err := tx.Exec(t.Context(), "UPDATE logs SET holder = 'c' WHERE id = ?", log.ID)
				return err
			})
			if err == nil || t.Context().Err() != nil {
				t.Errorf("it ends with %v", err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}
