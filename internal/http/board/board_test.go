package board

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
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/stream"
)

var pods = cluster.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true, Watchable: true}

type asked struct {
	*testing.T
	api   *apitest.API
	kinds *cache.Kinds
	store *cache.Store
	board *Board
}

// inBubble gives a board that keeps so many questions, in so many bytes.
func inBubble(t *testing.T, questions int, bytes int64, test func(*asked)) {
	withRing(t, 8, questions, bytes, test)
}

// withRing does so on a kind of which so many events are kept.
func withRing(t *testing.T, events, questions int, bytes int64, test func(*asked)) {
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
		a.board = New(Options{Questions: questions, Bytes: bytes, Linger: 5 * time.Second, Processors: budget.NewQueue(2, 0, 0), Registerer: prometheus.NewRegistry()})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = a.kinds.Run(ctx) })
		running.Go(func() { a.board.Run(ctx) })
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
func (a *asked) ask(sort, user string) (*Reader, error) {
	order, err := cache.ParseOrder(sort)
	if err != nil {
		a.Fatal(err)
	}
	return a.board.Ask(a.kinds, a.store, Question{Part: access.Part{Target: access.Target{Version: "v1", Resource: "pods"}}, Order: order}, user)
}

func (a *asked) view(r *Reader, w stream.Waiter) *View {
	a.Helper()
	if err := r.Ready(a.Context()); err != nil {
		a.Fatal(err)
	}
	view, err := r.View(w, nil)
	if err != nil || view == nil {
		a.Fatal(view, err)
	}
	return view
}

// TestQuestionsAreKeptOnceAndDroppedWhenNobodyAsks, with their number bounded: those that nobody asks make room first.
func TestQuestionsAreKeptOnceAndDroppedWhenNobodyAsks(t *testing.T) {
	inBubble(t, 2, 1<<20, func(a *asked) {
		one, _ := a.ask("spec.n", "ann")
		same, _ := a.ask("spec.n", "bob")
		if a.view(one, nil).Ranking == nil || a.view(same, nil) != a.view(one, nil) || a.board.Stats().Questions != 1 {
			t.Error("the same question is kept twice")
		}
		two, _ := a.ask("-spec.n", "ann")
		if _, err := a.ask("metadata.name", "ann"); !errors.Is(err, ErrFull) {
			t.Errorf("a third question: %v", err)
		}
		two.Close()
		three, err := a.ask("metadata.name", "bob")
		if err != nil {
			t.Fatal(err)
		}
		a.view(three, nil)
		one.Close()
		three.Close()
		time.Sleep(6 * time.Second)
		if s := a.board.Stats(); s.Questions != 1 || s.Readers != 1 {
			t.Errorf("%+v", s)
		}
		same.Close()
		time.Sleep(6 * time.Second)
		if s := a.board.Stats(); s != (Stats{}) || a.store.Topic().Stats().Waiting != 0 {
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
				a.view(r, nil)
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
			if _, err := r.View(nil, nil); errors.Is(err, ErrFull) {
				lost++
			}
		}
		if _, err := shared.View(nil, nil); lost != 1 || err != nil || a.board.Stats().Questions != 4 {
			t.Errorf("ann lost %d of 4, and the one that others ask: %v; %+v", lost, err, a.board.Stats())
		}
		for _, r := range append(readers, shared) {
			r.Close()
		}
	})
}

// TestAQuestionIsPaidForByThoseWhoAskIt: not by who has left, and not by who pays for much already.
func TestAQuestionIsPaidForByThoseWhoAskIt(t *testing.T) {
	inBubble(t, 10, 1<<20, func(a *asked) {
		payers := func() map[string]string {
			by := map[string]string{}
			for _, kept := range a.board.List() {
				by[kept.Order.String()] = kept.Payer
			}
			return by
		}
		check := func(what string, want map[string]string) {
			t.Helper()
			if got := payers(); !maps.Equal(got, want) {
				t.Errorf("%s: %v, not %v", what, got, want)
			}
			byUser := map[string]int{}
			for _, user := range payers() {
				byUser[user]++
			}
			if !maps.Equal(a.board.paid, byUser) {
				t.Errorf("%s: counted are %v, not %v", what, a.board.paid, byUser)
			}
			if bytes, users := a.board.memory.Held(); bytes != a.board.Stats().Bytes || users != len(byUser) {
				t.Errorf("%s: %d bytes of %d users are charged, not %d of %d", what, bytes, users, a.board.Stats().Bytes, len(byUser))
			}
		}
		readers := map[string]*Reader{}
		ask := func(sort, user string) {
			r, err := a.ask(sort, user)
			if err != nil {
				t.Fatal(err)
			}
			a.view(r, nil)
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
	q := newQuestion(Question{}, nil, nil)
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
	inBubble(t, 10, 2*questionBytes+4000, func(a *asked) {
		first, _ := a.ask("spec.n", "ann")
		bell := stream.NewBell()
		a.view(first, bell)
		second, _ := a.ask("-spec.n", "ann")
		a.view(second, nil)
		third, _ := a.ask("metadata.name", "bob")
		if a.view(third, nil); a.board.Stats().Questions != 2 {
			t.Errorf("%+v", a.board.Stats())
		}
		<-bell.C
		if _, err := first.View(nil, nil); !errors.Is(err, ErrFull) {
			t.Errorf("the oldest of ann: %v", err)
		}
		if n := testutil.ToFloat64(a.board.metrics.displaced); n != 1 {
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
		before := a.view(r, nil)
		a.api.Put("pods", "c/1")
		a.api.Put("pods", "c/2")
		synctest.Wait()
		after := a.view(r, nil)
		if before.Ranking.Len() != 3 || after.Ranking.Len() != 5 || after.Version != a.api.Version() || after.Changed != after.Revision {
			t.Errorf("%+v, %+v", before, after)
		}
		bell := stream.NewBell()
		a.view(r, bell)
		a.api.Restore(before.Version)
		for end := time.After(5 * time.Minute); !after.Void() || a.view(r, nil).Void(); {
			select {
			case <-bell.C:
				a.view(r, bell)
			case <-end:
				t.Fatal("never anew")
			}
		}
		if now := a.view(r, nil); now.Ranking.Len() != 3 || now.Version != a.api.Version() {
			t.Errorf("%+v", now)
		}
		r.Close()
	})
}

// watcher looks at each view that it is woken for, and waits for the next.
type watcher struct {
	*asked
	reader *Reader
	views  []*View
}

func (w *watcher) Wake() { w.views = append(w.views, w.view(w.reader, w)) }

// TestChangesThatDoNotEndAreShownMeanwhile looks at a burst that the question finds as a whole: one that goes on for ever looks the same to it.
func TestChangesThatDoNotEndAreShownMeanwhile(t *testing.T) {
	const burst = 5 * mostUntold
	withRing(t, 2*burst, 10, 16<<20, func(a *asked) {
		r, _ := a.ask("", "ann")
		defer r.Close()
		w := &watcher{asked: a, reader: r}
		a.view(r, w)
		synctest.Wait()
		// The question stands still until all of it is there.
		w.views = nil
		r.question.mu.Lock()
		for n := range burst {
			a.api.Put("pods", fmt.Sprintf("burst/%d", n))
		}
		for a.store.Topic().Head().Version < a.api.Version() {
			runtime.Gosched()
		}
		r.question.mu.Unlock()
		late, _ := a.ask("", "ben") // is owed all that was there by now
		defer late.Close()
		if err := late.Ready(a.Context()); err != nil {
			t.Fatal(err)
		}
		if v := a.view(late, nil); v.Ranking.Len() != 3+burst {
			t.Errorf("who came late was told of %d of %d", v.Ranking.Len(), 3+burst)
		}
		synctest.Wait()
		if len(w.views) < 5 {
			t.Errorf("%d views of %d changes", len(w.views), burst)
		}
		for n, v := range w.views[1:] {
			if before := w.views[n]; v.Version < before.Version || v.Ranking.Len() < before.Ranking.Len() {
				t.Errorf("%+v after %+v", v, before)
			}
		}
	})
}

// TestAQuestionThatIsOverTakesNoOtherWithIt that asks the same, when it learns late that it could not wait for its kind, or that the memory is full.
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
		a.view(again, nil)
		before.question.drop(context.Canceled)
		if _, err := again.View(nil, nil); err != nil {
			t.Errorf("the new one ended with the one before it: %v", err)
		}
		again.Close()
	})
}

// TestWhoWasPromisedAnAnswerLearnsThatThereWillBeNone, and need not wait until their own time is over.
func TestWhoWasPromisedAnAnswerLearnsThatThereWillBeNone(t *testing.T) {
	inBubble(t, 10, 1<<20, func(a *asked) {
		a.api.Hang("pods") // so that there is nothing to answer from when the question ends
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
		q := newQuestion(Question{}, store, func(error) {})
		q.cancel = cancel
		r := &Reader{question: q, fresh: q.refresh()}
		q.take() // takes the promise over, which the end of the question finds nowhere else
		cancel()
		q.run(ctx, a.board.opts.Processors, "ann")
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
			if _, err := one.View(nil, nil); err != nil {
				t.Errorf("the first: %v", err)
			}
			if s := a.board.Stats(); s.Questions != 2 {
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

// TestWhatIsWholeIsNotHeldBack: only of a revision that deletes something may there be more, for which the question waits.
func TestWhatIsWholeIsNotHeldBack(t *testing.T) {
	inBubble(t, 10, 1<<20, func(a *asked) {
		r, _ := a.ask("", "ann")
		defer r.Close()
		a.view(r, nil)
		synctest.Wait()
		version := a.api.Put("pods", "c/1")
		synctest.Wait() // which lets no time pass
		if v := a.view(r, nil); v.Version != version {
			t.Errorf("at %d, the view is of %d", version, v.Version)
		}
	})
}
