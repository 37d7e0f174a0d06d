package cache

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

func room(atMost int) *Kinds {
	return &Kinds{opts: Options{AtMost: atMost}, stores: map[cluster.Kind]*running{}, log: quiet}
}

func kindNumber(n int) cluster.Kind {
	return cluster.Kind{Version: "v1", Resource: fmt.Sprint("kind", n), Watchable: true}
}

// take does with the room what Use does, without a store.
func (k *Kinds) take(kind cluster.Kind, user string) error {
	if k.stores[kind] == nil {
		if err := k.makeRoom(user); err != nil {
			return err
		}
		k.stores[kind] = &running{users: map[string]int{}, stop: func() {}}
	}
	k.stores[kind].users[user]++
	k.stores[kind].last = user
	return nil
}

// One user gets at most half of the kinds, two users get a third each, and the next user always finds some.
func TestOneUserCannotTakeAllKindsFromOthers(t *testing.T) {
	k := room(100)
	for n := range 10 {
		if err := k.take(kindNumber(n), ""); err != nil { // preloaded
			t.Fatal(err)
		}
	}
	next := 10
	for i, want := range []int{45, 23, 11} {
		user, got := fmt.Sprint("greedy", i), 0
		for range 200 {
			err := k.take(kindNumber(next), user)
			next++
			if err == nil {
				got++
			} else if !errors.Is(err, ErrTooManyKinds) {
				t.Fatal(err)
			}
		}
		if got != want {
			t.Errorf("%s has %d kinds, not %d", user, got, want)
		}
	}
	if err := k.take(kindNumber(next), "modest"); err != nil {
		t.Error(err)
	}
	if err := k.take(kindNumber(12), "greedy2"); err != nil {
		t.Errorf("what is cached anyway: %v", err)
	}
}

// A user who reads one kind after the other stops their own kinds, and not those that others have just left and will
// come back to.
func TestWhoReadsOneKindAfterTheOtherStopsTheirOwn(t *testing.T) {
	k := room(10)
	idle := func(n int, user string, at time.Time) {
		if err := k.take(kindNumber(n), user); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
		r := k.stores[kindNumber(n)]
		clear(r.users)
		r.idle = at
	}
	began := time.Now()
	for n := range 3 {
		idle(n, "alice", began)
	}
	for n := range 100 {
		idle(100+n, "mallory", began.Add(time.Duration(n)*time.Second))
	}
	if len(k.stores) != 10 {
		t.Errorf("%d are cached", len(k.stores))
	}
	for n := range 3 {
		if k.stores[kindNumber(n)] == nil {
			t.Errorf("alice's kind %d was stopped", n)
		}
	}
	if k.stores[kindNumber(199)] == nil || k.stores[kindNumber(193)] == nil {
		t.Error("what was used last was stopped before what was not used for longer")
	}
}

// An idle kind makes room at once, and is read anew when it is used again.
func TestIdleKindMakesRoomAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods, jobs, nodes)
		k, stop := runKinds(t, api, Options{AtMost: 1})
		defer stop()
		_, release := use(t, k, jobs)
		if _, _, err := k.Use(nodes, "bob"); !errors.Is(err, ErrTooManyKinds) {
			t.Errorf("beside one that is in use: %v", err)
		}
		release()
		_, release = use(t, k, nodes)
		release()
		if got := fmt.Sprint(kindsOf(k)); got != "[nodes]" {
			t.Error(got)
		}
		_, release = use(t, k, jobs)
		release()
	})
}
