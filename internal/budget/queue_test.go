package budget

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// take takes a turn that must be given at once.
func take(t *testing.T, q *Queue, user string) (release func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	release, err := q.Take(ctx, user)
	if err != nil {
		t.Fatalf("%s gets no turn: %v", user, err)
	}
	return release
}

func TestOneUsersManyDoNotDelayAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 0, 0)
		release := take(t, q, "many")
		var mu sync.Mutex
		var order []string
		wait := func(user string) {
			go func() {
				release, err := q.Take(t.Context(), user)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, user)
				mu.Unlock()
				release()
			}()
			synctest.Wait()
		}
		for range 100 {
			wait("many")
		}
		wait("few")
		wait("other")
		release()
		synctest.Wait()
		if got := fmt.Sprint(order[:4]); got != "[many few other many]" || len(order) != 102 {
			t.Errorf("%d turns, in the order %v: users are to take turns", len(order), got)
		}
	})
}

// What comes first waits for the turn that is under way, and for no other. The rest is served by
// turns, however many users wait.
func TestManyUsersDelayNeitherWhatComesFirstNorTheSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 0, 0)
		release := take(t, q, "mallory0")
		var mu sync.Mutex
		var order []string
		wait := func(class Class, user string) {
			go func() {
				release, err := q.TakeAs(t.Context(), class, user)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, user)
				mu.Unlock()
				release()
			}()
			synctest.Wait()
		}
		for i := range 6 {
			for range 10 {
				wait(Users, fmt.Sprint("mallory", i))
			}
		}
		for range 2 {
			wait(System, "leases")
			wait(System, "outbox")
			wait(First, "recorder")
		}
		wait(First, "another")
		wait(Users, "alice")
		release()
		synctest.Wait()
		want := "[recorder another recorder leases mallory0 outbox mallory1 leases mallory2 outbox mallory3 mallory4 mallory5 alice mallory0]"
		if got := fmt.Sprint(order[:15]); got != want || len(order) != 68 {
			t.Errorf("%d turns, in the order\n%v, want\n%v", len(order), got, want)
		}
	})
}

// However much has to come first, for however long, the rest goes on, if slowly: leases of the system are renewed.
func TestWhatComesFirstAllTheTimeStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 0, 0)
		served, other := 0, map[Class]int{}
		ctx, stop := context.WithCancel(t.Context())
		var working sync.WaitGroup
		work := func(class Class, user string, count func()) {
			working.Go(func() {
				for ctx.Err() == nil {
					release, err := q.TakeAs(ctx, class, user)
					if err != nil {
						return
					}
					time.Sleep(time.Millisecond)
					count()
					release()
				}
			})
		}
		for i := range 3 {
			work(First, fmt.Sprint("recorder", i), func() { served++ })
		}
		work(System, "leases", func() { other[System]++ })
		for i := range 10 {
			work(Users, fmt.Sprint("user", i), func() { other[Users]++ })
		}
		time.Sleep(time.Second)
		stop()
		working.Wait()
		if most := served/(firstInARow-1) + 1; other[System] == 0 || other[Users] == 0 || other[System]+other[Users] > most {
			t.Errorf("%d turns came first, %v others", served, other)
		}
	})
}

func TestOneUserLeavesASlotToOthersWhileThereAreSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := true
		q := NewQueue(2, 0, 0).Share(func() bool { return shared })
		first := take(t, q, "many")
		second := make(chan func(), 1)
		go func() {
			release, err := q.Take(t.Context(), "many")
			if err != nil {
				t.Error(err)
			}
			second <- release
		}()
		synctest.Wait()
		take(t, q, "few")()
		select {
		case <-second:
			t.Error("one user has all slots")
		default:
		}
		first()
		third := <-second
		shared = false
		take(t, q, "many")()
		third()
	})
}

func TestUserAtTheirLimitLeavesSlotsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(3, 2, 1)
		first, second := take(t, q, "many"), take(t, q, "many")
		waited := make(chan func(), 1)
		go func() {
			release, err := q.Take(t.Context(), "many")
			if err != nil {
				t.Error(err)
			}
			waited <- release
		}()
		synctest.Wait()
		if _, err := q.Take(t.Context(), "many"); err != ErrTooMuch {
			t.Errorf("one more than may wait: %v, want ErrTooMuch", err)
		}
		other := take(t, q, "few") // although another user waits
		first()
		first() // a second call does nothing
		third := <-waited
		for _, release := range []func(){second, third, other} {
			release()
		}
		if len(q.users) != 0 || len(slices.Concat(q.next[:]...)) != 0 || q.taken != 0 {
			t.Errorf("%d users, %d listed, %d taken are left", len(q.users), len(slices.Concat(q.next[:]...)), q.taken)
		}
	})
}

func TestWhoLeavesTheQueueKeepsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 0, 0)
		release := take(t, q, "a")
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := q.Take(ctx, "b")
			left <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; err != context.Canceled {
			t.Errorf("error %v, want the context's", err)
		}
		release()
		take(t, q, "c")()
	})
}

// Whatever users do, no more turns are given than there are slots, and no turn is lost.
func TestNoTurnIsLostOrGivenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(3, 2, 5)
		var mu sync.Mutex
		taken, users := 0, map[string]int{}
		var all sync.WaitGroup
		for worker := range 40 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(worker)))
				user := fmt.Sprint(worker % 7)
				for range 100 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(30))*time.Millisecond)
					if release, err := q.Take(ctx, user); err == nil {
						mu.Lock()
						taken++
						users[user]++
						if taken > 3 || users[user] > 2 {
							t.Errorf("%d turns, %d of one user", taken, users[user])
						}
						mu.Unlock()
						time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
						mu.Lock()
						taken--
						users[user]--
						mu.Unlock()
						release()
					} else {
						time.Sleep(time.Millisecond)
					}
					cancel()
				}
			})
		}
		all.Wait()
		if len(q.users) != 0 || len(slices.Concat(q.next[:]...)) != 0 || q.taken != 0 {
			t.Errorf("%d users, %d listed, %d taken are left", len(q.users), len(slices.Concat(q.next[:]...)), q.taken)
		}
	})
}

// Who waits for the old limit goes on at once with a new one that is higher, and nobody who has a
// turn loses it for one that is lower.
func TestLimitsOfAQueueCanBeChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(0, 1, 10)
		var turns atomic.Int64
		end := make(chan struct{})
		var taking sync.WaitGroup
		take := func() {
			taking.Go(func() {
				release, err := q.Take(t.Context(), "alice")
				if err != nil {
					t.Error(err)
					return
				}
				turns.Add(1)
				<-end
				release()
			})
			synctest.Wait()
		}
		expect := func(when string, want int64) {
			t.Helper()
			if synctest.Wait(); turns.Load() != want {
				t.Errorf("%s: %d turns, want %d", when, turns.Load(), want)
			}
		}
		for range 6 {
			take()
		}
		expect("one at a time", 1)
		q.SetPerUser(3, 10)
		expect("three at a time", 3)
		q.SetPerUser(2, 1)
		expect("two at a time", 3)
		if _, err := q.Take(t.Context(), "alice"); !errors.Is(err, ErrTooMuch) {
			t.Errorf("one more than may wait now: %v", err)
		}
		end <- struct{}{}
		expect("two are left, and there is room for two", 3)
		end <- struct{}{}
		expect("one is left", 4)
		q.SetPerUser(0, 0)
		expect("any number", 6)
		close(end)
		taking.Wait()
		if len(q.users) != 0 {
			t.Errorf("%d users are still known", len(q.users))
		}
	})
}
