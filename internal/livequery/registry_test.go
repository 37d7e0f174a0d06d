package livequery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

var pods = cluster.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true, Watchable: true}

type asked struct {
	*testing.T
	api      *apitest.API
	kinds    *cache.Kinds
	store    *cache.Store
	registry *Registry
}

// inBubble gives a registry that keeps so many queries, in so many bytes.
func inBubble(t *testing.T, queries int, bytes int64, test func(*asked)) {
	withRing(t, 8, 100, queries, bytes, test)
}

// withRing does so on a kind of which so many events are kept, and of each order so many objects.
func withRing(t *testing.T, events, keep, queries int, bytes int64, test func(*asked)) {
	synctest.Test(t, func(t *testing.T) {
		a := &asked{T: t, api: apitest.New(pods)}
		for _, key := range []string{"a/1", "a/2", "b/1"} {
			a.api.Put("pods", key, "spec.n=1")
		}
		var err error
		a.kinds, err = cache.NewKinds(a.api.Connect(t), cache.Options{Topic: stream.Options{Events: events, Bytes: 64 << 20, Age: time.Hour}},
			slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err != nil {
			t.Fatal(err)
		}
		a.registry = New(Options{Queries: queries, Bytes: bytes, Linger: 5 * time.Second, Keep: keep, Processors: budget.NewQueue(2, 0, 0), Registerer: prometheus.NewRegistry()})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = a.kinds.Run(ctx) })
		running.Go(func() { a.registry.Run(ctx) })
		var release func()
		if a.store, release, err = a.kinds.Use(pods, ""); err != nil {
			t.Fatal(err)
		}
		test(a)
		release()
		cancel()
		running.Wait()
		a.api.Close()
	})
}

// ask asks for the order by a path.
func (a *asked) ask(sort, user string) (*Reader, error) { return a.places(0, sort, user) }

// places asks for the order by a path, of which so many places are looked at.
func (a *asked) places(places int, sort, user string) (*Reader, error) {
	order, err := cache.Paths{}.Order(sort)
	if err != nil {
		a.Fatal(err)
	}
	return a.registry.Ask(a.kinds, a.store, Query{Target: visibility.VisibleTarget{Target: visibility.Target{Version: "v1", Resource: "pods"}}, Order: order, Places: places}, user)
}

func (a *asked) snapshot(r *Reader, w stream.Waiter) *Snapshot {
	a.Helper()
	if err := r.Ready(a.Context()); err != nil {
		a.Fatal(err)
	}
	snapshot, err := r.Snapshot(w, nil)
	if err != nil || snapshot == nil {
		a.Fatal(snapshot, err)
	}
	return snapshot
}

// TestQuestionsAreKeptOnceAndDroppedWhenNobodyAsks, with their number bounded: those that nobody asks make room first.
func TestQuestionsAreKeptOnceAndDroppedWhenNobodyAsks(t *testing.T) {
	inBubble(t, 2, 1<<20, func(a *asked) {
		one, _ := a.ask("spec.n", "ann")
		same, _ := a.ask("spec.n", "bob")
		if a.snapshot(one, nil).Ranking == nil || a.snapshot(same, nil) != a.snapshot(one, nil) || a.registry.Stats().Queries != 1 {
			t.Error("the same query is kept twice")
		}
		two, _ := a.ask("-spec.n", "ann")
		if _, err := a.ask("metadata.name", "ann"); !errors.Is(err, ErrFull) {
			t.Errorf("a third query: %v", err)
		}
		two.Close()
		three, err := a.ask("metadata.name", "bob")
		if err != nil {
			t.Fatal(err)
		}
		a.snapshot(three, nil)
		one.Close()
		three.Close()
		time.Sleep(6 * time.Second)
		if s := a.registry.Stats(); s.Queries != 1 || s.Readers != 1 {
			t.Errorf("%+v", s)
		}
		same.Close()
		time.Sleep(6 * time.Second)
		if s := a.registry.Stats(); s != (Stats{}) || a.store.Topic().Stats().Waiting != 0 {
			t.Errorf("left: %+v", s)
		}
	})
}

// TestNobodyKeepsOthersFromAsking by asking for as much as is kept.
func TestNobodyKeepsOthersFromAsking(t *testing.T) {
	inBubble(t, 4, 1<<20, func(a *asked) {
		var readers []*Reader
		ask := func(sort, user string) error {
			r, err := a.ask(sort, user)
			if err == nil {
				a.snapshot(r, nil)
				readers = append(readers, r)
			}
			return err
		}
		for _, sort := range []string{"spec.a", "spec.b", "spec.c", "spec.d"} {
			if err := ask(sort, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		if err := ask("spec.e", "ann"); !errors.Is(err, ErrFull) {
			t.Errorf("a fifth of ann: %v", err)
		}
		shared, _ := a.ask("spec.a", "cat")
		if err := ask("-spec.a", "bob"); err != nil { // cat pays for one, ann for three
			t.Errorf("bob beside ann: %v", err)
		}
		if err := ask("-spec.c", "bob"); !errors.Is(err, ErrFull) {
			t.Errorf("bob would have more than ann then: %v", err)
		}
		lost := 0
		for _, r := range readers[:4] {
			if _, err := r.Snapshot(nil, nil); errors.Is(err, ErrFull) {
				lost++
			}
		}
		if _, err := shared.Snapshot(nil, nil); lost != 1 || err != nil || a.registry.Stats().Queries != 4 {
			t.Errorf("ann lost %d of 4, and the one that others ask: %v; %+v", lost, err, a.registry.Stats())
		}
		for _, r := range append(readers, shared) {
			r.Close()
		}
	})
}

// TestAQuestionIsPaidForByThoseWhoAskIt: not by who has left, and not by who pays for much already.
func TestAQuestionIsPaidForByThoseWhoAskIt(t *testing.T) {
	inBubble(t, 10, 1<<20, func(a *asked) {
		quotaOwners := func() map[string]string {
			by := map[string]string{}
			for _, kept := range a.registry.List() {
				by[kept.Order.String()] = kept.QuotaOwner
			}
			return by
		}
		check := func(what string, want map[string]string) {
			t.Helper()
			if got := quotaOwners(); !maps.Equal(got, want) {
				t.Errorf("%s: %v, not %v", what, got, want)
			}
			byUser := map[string]int{}
			for _, user := range quotaOwners() {
				byUser[user]++
			}
			if !maps.Equal(a.registry.paid, byUser) {
				t.Errorf("%s: counted are %v, not %v", what, a.registry.paid, byUser)
			}
			if bytes, users := a.registry.memory.Held(); bytes != a.registry.Stats().Bytes || users != len(byUser) {
				t.Errorf("%s: %d bytes of %d users are charged, not %d of %d", what, bytes, users, a.registry.Stats().Bytes, len(byUser))
			}
		}
		readers := map[string]*Reader{}
		ask := func(sort, user string) {
			r, err := a.ask(sort, user)
			if err != nil {
				t.Fatal(err)
			}
			a.snapshot(r, nil)
			readers[user+" "+sort] = r
		}
		ask("spec.a", "ann")
		ask("spec.a", "bob")
		check("who joins does not pay for as much", map[string]string{"spec.a": "ann"})
		ask("spec.b", "ann")
		ask("spec.b", "bob")
		check("who pays for less does", map[string]string{"spec.a": "ann", "spec.b": "bob"})
		ask("spec.a", "cat")
		readers["ann spec.a"].Close()
		check("who has left pays no more", map[string]string{"spec.a": "cat", "spec.b": "bob"})
		readers["cat spec.a"].Close()
		readers["bob spec.a"].Close()
		readers["bob spec.b"].Close()
		check("ann is left", map[string]string{"spec.a": "bob", "spec.b": "ann"})
		time.Sleep(6 * time.Second)
		check("nobody asks", map[string]string{"spec.b": "ann"})
		readers["ann spec.b"].Close()
		time.Sleep(6 * time.Second)
		check("nothing is kept", map[string]string{})
	})
}

// TestNobodyHoldsUpAQuestionByOtherWork: who has asked it first, and then much else, does not make the others wait.
func TestNobodyHoldsUpAQuestionByOtherWork(t *testing.T) {
	q := newQuery(Query{}, nil, 1, nil)
	for _, user := range []string{"ann", "bob"} {
		q.waiting[&Reader{user: user}] = awaited{}
	}
	seen := map[string]int{}
	for range 500 {
		seen[q.take()]++
	}
	if seen["ann"] < 10 || seen["bob"] < 10 {
		t.Errorf("turns are taken in the names of %v", seen)
	}
}

// TestWhoHoldsMostLosesAQuestion when the memory is full, and is woken to be told.
func TestWhoHoldsMostLosesAQuestion(t *testing.T) {
	inBubble(t, 10, 2*queryBytes+4000, func(a *asked) {
		first, _ := a.ask("spec.n", "ann")
		wakes := stream.NewWakeChannel()
		a.snapshot(first, wakes)
		second, _ := a.ask("-spec.n", "ann")
		a.snapshot(second, nil)
		third, _ := a.ask("metadata.name", "bob")
		if a.snapshot(third, nil); a.registry.Stats().Queries != 2 {
			t.Errorf("%+v", a.registry.Stats())
		}
		<-wakes.C
		if _, err := first.Snapshot(nil, nil); !errors.Is(err, ErrFull) {
			t.Errorf("the oldest of ann: %v", err)
		}
		if n := testutil.ToFloat64(a.registry.metrics.displaced); n != 1 {
			t.Errorf("%v displaced", n)
		}
		for _, r := range []*Reader{first, second, third} {
			r.Close()
		}
	})
}

// TestAViewIsMadeAnewInAnotherHistory, and what was made in the one before says that it is void.
func TestAViewIsMadeAnewInAnotherHistory(t *testing.T) {
	inBubble(t, 10, 1<<20, func(a *asked) {
		r, _ := a.ask("", "ann")
		before := a.snapshot(r, nil)
		a.api.Put("pods", "c/1")
		a.api.Put("pods", "c/2")
		synctest.Wait()
		after := a.snapshot(r, nil)
		if before.Ranking.Len() != 3 || after.Ranking.Len() != 5 || after.Version != a.api.Version() || after.Changed != after.Revision {
			t.Errorf("%+v, %+v", before, after)
		}
		wakes := stream.NewWakeChannel()
		a.snapshot(r, wakes)
		a.api.Restore(before.Version)
		for end := time.After(5 * time.Minute); !after.Void() || a.snapshot(r, nil).Void(); {
			select {
			case <-wakes.C:
				a.snapshot(r, wakes)
			case <-end:
				t.Fatal("never anew")
			}
		}
		if now := a.snapshot(r, nil); now.Ranking.Len() != 3 || now.Version != a.api.Version() {
			t.Errorf("%+v", now)
		}
		r.Close()
	})
}

// watcher looks at each snapshot that it is woken for, and waits for the next.
type watcher struct {
	*asked
	reader    *Reader
	snapshots []*Snapshot
}

func (w *watcher) Wake() { w.snapshots = append(w.snapshots, w.snapshot(w.reader, w)) }

// TestChangesThatDoNotEndAreShownMeanwhile looks at a burst that the query finds as a whole: one
// that goes on for ever looks the same to it.
func TestChangesThatDoNotEndAreShownMeanwhile(t *testing.T) {
	const burst = 5 * mostUntold
	withRing(t, 2*burst, 100, 10, 16<<20, func(a *asked) {
		r, _ := a.ask("", "ann")
		defer r.Close()
		w := &watcher{asked: a, reader: r}
		a.snapshot(r, w)
		synctest.Wait()
		// The query stands still until all of it is there.
		w.snapshots = nil
		r.query.mu.Lock()
		for n := range burst {
			a.api.Put("pods", fmt.Sprintf("burst/%d", n))
		}
		for a.store.Topic().Head().Version < a.api.Version() {
			runtime.Gosched()
		}
		r.query.mu.Unlock()
		late, _ := a.ask("", "ben") // is promised all that was there by now
		defer late.Close()
		if err := late.Ready(a.Context()); err != nil {
			t.Fatal(err)
		}
		if v := a.snapshot(late, nil); v.Ranking.Len() != 3+burst {
			t.Errorf("who came late was told of %d of %d", v.Ranking.Len(), 3+burst)
		}
		synctest.Wait()
		if len(w.snapshots) < 5 {
			t.Errorf("%d snapshots of %d changes", len(w.snapshots), burst)
		}
		for n, v := range w.snapshots[1:] {
			if before := w.snapshots[n]; v.Version < before.Version || v.Ranking.Len() < before.Ranking.Len() {
				t.Errorf("%+v after %+v", v, before)
			}
		}
	})
}

// TestAQuestionThatIsOverTakesNoOtherWithIt that asks the same, when it learns late that it could
// not wait for its kind, or that the memory is full.
func TestAQuestionThatIsOverTakesNoOtherWithIt(t *testing.T) {
	inBubble(t, 1, 1<<20, func(a *asked) {
		before, _ := a.ask("spec.n", "ann")
		before.Close()
		between, err := a.ask("-spec.n", "bob") // in place of what nobody asks
		if err != nil {
			t.Fatal(err)
		}
		between.Close()
		again, err := a.ask("spec.n", "ann")
		if err != nil {
			t.Fatal(err)
		}
		a.snapshot(again, nil)
		before.query.drop(context.Canceled)
		if _, err := again.Snapshot(nil, nil); err != nil {
			t.Errorf("the new one ended with the one before it: %v", err)
		}
		again.Close()
	})
}

// TestWhoWasPromisedAnAnswerLearnsThatThereWillBeNone, and need not wait until their own time is over.
func TestWhoWasPromisedAnAnswerLearnsThatThereWillBeNone(t *testing.T) {
	inBubble(t, 10, 1<<20, func(a *asked) {
		a.api.Hang("pods") // so that there is nothing to answer from when the query ends
		kinds, err := cache.NewKinds(a.api.Connect(a.T), cache.Options{Topic: stream.Options{Events: 8}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(a.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = kinds.Run(ctx) })
		defer running.Wait()
		store, release, err := kinds.Use(pods, "")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		q := newQuery(Query{}, store, 1, func(error) {})
		q.cancel = cancel
		r := &Reader{query: q, fresh: q.refresh()}
		q.take() // takes the promise over, which the end of the query finds nowhere else
		cancel()
		q.run(ctx, a.registry.opts.Processors, "ann")
		waiting, end := context.WithTimeout(a.Context(), time.Minute)
		defer end()
		if err := r.Ready(waiting); !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// TestAQuestionThatCannotBeKeptDisplacesNone, neither one that is asked nor one that nobody asks at the moment.
func TestAQuestionThatCannotBeKeptDisplacesNone(t *testing.T) {
	inBubble(t, 2, 1<<20, func(a *asked) {
		one, _ := a.ask("spec.a", "ann")
		two, _ := a.ask("spec.b", "ann")
		ended, end := context.WithCancel(a.Context())
		end()
		over, err := cache.NewKinds(a.api.Connect(a.T), cache.Options{Topic: stream.Options{Events: 8}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		_ = over.Run(ended) // from here on it serves nothing
		served := a.kinds
		for range 2 {
			a.kinds = over
			if r, err := a.ask("spec.c", "bob"); err == nil || errors.Is(err, ErrFull) {
				t.Errorf("%v %v, of kinds that have ended", r, err)
			}
			a.kinds = served
			if _, err := one.Snapshot(nil, nil); err != nil {
				t.Errorf("the first: %v", err)
			}
			if s := a.registry.Stats(); s.Queries != 2 {
				t.Errorf("%+v", s)
			}
			if two != nil { // then nobody asks it, and it may make room
				two.Close()
				two = nil
			}
		}
		one.Close()
	})
}

// TestWhatIsWholeIsNotHeldBack: only of a revision that deletes something may there be more, for which the query waits.
func TestWhatIsWholeIsNotHeldBack(t *testing.T) {
	inBubble(t, 10, 1<<20, func(a *asked) {
		r, _ := a.ask("", "ann")
		defer r.Close()
		a.snapshot(r, nil)
		synctest.Wait()
		version := a.api.Put("pods", "c/1")
		synctest.Wait() // which lets no time pass
		if v := a.snapshot(r, nil); v.Version != version {
			t.Errorf("at %d, the snapshot is of %d", version, v.Version)
		}
	})
}
