package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/feed"
	"github.com/kubecast/kubecast/internal/jobs/recorder"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/stream"
)

func tailOf() *Tail {
	a := &Service{metrics: recorder.NewMetrics(prometheus.NewRegistry())}
	return &Tail{service: a, poller: feed.NewPoller(), waiting: map[stream.Waiter]struct{}{}, asking: map[stream.Waiter]struct{}{}}
}

// grown are the transitions of some numbers.
func grown(seqs ...uint64) (all []LogRecord) {
	for _, seq := range seqs {
		all = append(all, LogRecord{Seq: seq, Transition: &jobs.Transition{Seq: seq}})
	}
	return all
}

func span(from, to uint64) (seqs []uint64) {
	for seq := from; seq <= to; seq++ {
		seqs = append(seqs, seq)
	}
	return seqs
}

// TestEndOfALogHasNoGaps: of what was removed before it was read, or is too old to be in memory,
// readers are told to ask the database; never that there is nothing.
func TestEndOfALogHasNoGaps(t *testing.T) {
	tail, wakes := tailOf(), stream.NewWakeChannel()
	answer := func(seq uint64, found ...uint64) {
		for _, w := range tail.answered(time.Now(), store.Log{Seq: seq}, grown(found...), nil, cache.Upstream{}) {
			w.Wake()
		}
	}
	next := func(after uint64) (seqs []uint64, err error) {
		entries, err := tail.Next(after, 1000, wakes)
		for _, e := range entries {
			seqs = append(seqs, e.Seq)
		}
		return seqs, err
	}
	answer(7) // what was there at first is not in memory
	if _, err := next(6); !errors.Is(err, ErrBehind) {
		t.Errorf("%v", err)
	}
	if seqs, err := next(7); len(seqs) != 0 || err != nil {
		t.Errorf("%v %v", seqs, err)
	}
	answer(9, 8, 9)
	select {
	case <-wakes.C:
	default:
		t.Error("nobody was woken")
	}
	if seqs, err := next(8); len(seqs) != 1 || seqs[0] != 9 || err != nil {
		t.Errorf("%v %v", seqs, err)
	}
	if _, err := next(6); !errors.Is(err, ErrBehind) {
		t.Errorf("%v", err)
	}
	if _, err := next(10); !errors.Is(err, ErrAhead) {
		t.Errorf("%v", err)
	}
	for name, found := range map[string][]uint64{"in front": {11, 12}, "within": {10, 12}, "all": nil, "the last": {10}} {
		tail = tailOf()
		answer(9)
		answer(12, found...)
		if seqs, err := next(9); !errors.Is(err, ErrBehind) {
			t.Errorf("%s was removed: %v %v", name, seqs, err)
		}
		if _, err := next(12); err != nil {
			t.Errorf("%s was removed: %v", name, err)
		}
		for after := uint64(9); after <= 12; after++ {
			if seqs, err := next(after); !errors.Is(err, ErrBehind) && !slices.Equal(seqs, span(after+1, 12)) {
				t.Errorf("%s was removed: after %d follows %v, %v", name, after, seqs, err)
			}
		}
	}
	tail = tailOf()
	answer(0)
	answer(5000, span(1, tailLength)...)
	answer(5000, span(tailLength+1, 2*tailLength)...)
	if _, err := next(tailLength - 1); !errors.Is(err, ErrBehind) {
		t.Errorf("%v", err)
	}
	if seqs, err := next(tailLength); len(seqs) != 1000 || seqs[0] != tailLength+1 || err != nil {
		t.Errorf("%d %v", len(seqs), err)
	}
	answer(3) // an older database
	if _, err := next(tailLength); !errors.Is(err, ErrAhead) {
		t.Errorf("%v", err)
	}
}

// TestReadersOfALogAreToldThatTheDatabaseIsAway, but not of a moment.
func TestReadersOfALogAreToldThatTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tail, wakes := tailOf(), stream.NewWakeChannel()
		fails := func() (woken int) {
			return len(tail.answered(time.Now(), store.Log{}, nil, context.DeadlineExceeded, cache.Upstream{}))
		}
		fails()
		if _, err := tail.Next(0, 1, wakes); !errors.Is(err, ErrAway) {
			t.Errorf("a database that never answered: %v", err)
		}
		tail.answered(time.Now(), store.Log{}, nil, nil, cache.Upstream{})
		if _, err := tail.Next(0, 1, wakes); err != nil {
			t.Error(err)
		}
		if fails() != 0 {
			t.Error("woken for a moment")
		}
		time.Sleep(feed.AwayAfter)
		if fails() != 1 {
			t.Error("nobody was woken")
		}
		if _, err := tail.Next(0, 1, wakes); !errors.Is(err, ErrAway) {
			t.Errorf("%v", err)
		}
		if fails() != 0 {
			t.Error("woken again")
		}
	})
}

// TestAnEndThatIsNotKnownAgesWhileItIsFollowed, from the last answer on, and not from the last question.
func TestAnEndThatIsNotKnownAgesWhileItIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tail := tailOf()
		tail.cluster, tail.name.Resource, tail.readers, tail.current = "c", "jobs.batch", 3, time.Now()
		all := tails{byName: map[tailName]*Tail{tail.name: tail}}
		age := func() followed { return all.followed()[[2]string{"c", "jobs.batch"}] }
		time.Sleep(time.Second)
		if got := age(); got != (followed{3, time.Second}) {
			t.Errorf("before the first answer: %+v", got)
		}
		tail.answered(time.Now(), store.Log{Seq: 5}, nil, nil, cache.Upstream{})
		time.Sleep(2 * time.Second)
		tail.answered(time.Now(), store.Log{}, nil, context.DeadlineExceeded, cache.Upstream{})
		if got := age(); got != (followed{3, 2 * time.Second}) {
			t.Errorf("while the database is away: %+v", got)
		}
	})
}

// However many readers are told a transition, at once or later, each of its two forms is made once,
// and no reader is told the other one.
func TestEachFormOfATransitionIsMadeOnce(t *testing.T) {
	e := &TailRecord{LogRecord: grown(7)[0]}
	var made [2]atomic.Int64
	var reading sync.WaitGroup
	for i := range 20 {
		sealed := i % 2
		reading.Go(func() {
			if text := e.Text(sealed == 1, func(c LogRecord) string { return fmt.Sprint(sealed, c.Seq, made[sealed].Add(1)) }); text != fmt.Sprint(sealed, 7, 1) {
				t.Errorf("%d is told %s", sealed, text)
			}
		})
	}
	reading.Wait()
}

// Of a run, a log has its last change only, and it has the numbers of other kinds' runs: gaps in it
// mean nothing. That some of it was removed, readers learn whom it concerns; others go on.
func TestEndOfRunsHasGapsThatMeanNothing(t *testing.T) {
	tail, wakes := tailOf(), stream.NewWakeChannel()
	tail.name.what = Runs
	answer := func(seq, expired uint64, found ...uint64) {
		tail.answered(time.Now(), store.Log{Seq: seq, Expired: expired}, grown(found...), nil, cache.Upstream{})
	}
	next := func(after uint64) (text string) {
		entries, err := tail.Next(after, 1000, wakes)
		for _, e := range entries {
			text += fmt.Sprint(e.Seq, " ")
		}
		if err != nil {
			return err.Error()
		}
		return text
	}
	answer(5, 0)
	answer(9, 0, 7)
	answer(12, 0, 10, 12)
	for after, want := range map[uint64]string{4: ErrBehind.Error(), 5: "7 10 12 ", 6: "7 10 12 ", 7: "10 12 ", 9: "10 12 ", 11: "12 ", 12: "", 13: ErrAhead.Error()} {
		if got := next(after); got != want {
			t.Errorf("behind %d: %q, not %q", after, got, want)
		}
	}
	answer(14, 8, 14)
	for after, want := range map[uint64]string{7: ErrBehind.Error(), 8: "10 12 14 ", 13: "14 "} {
		if got := next(after); got != want {
			t.Errorf("behind %d after a removal: %q, not %q", after, got, want)
		}
	}
	if tail.Holds(7) || !tail.Holds(8) {
		t.Error("what was removed is taken to be there")
	}
	answer(14, 14)
	if got := next(13); got != ErrBehind.Error() {
		t.Errorf("%q", got)
	}
	var many []uint64
	for seq := uint64(16); len(many) < tailLength; seq += 2 {
		many = append(many, seq)
	}
	answer(9000, 14, many...)
	if got := next(9000); got != ErrAhead.Error() {
		t.Errorf("what was not read yet is passed over: %q", got)
	}
}
