package pending

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/forecast"
	"github.com/kubecast/kubecast/internal/queues"
)

// A queue that has only its history says of jobs that come when they will start, and is right as often as it says.
func TestStartsAreLearntFromTheHistoryAlone(t *testing.T) {
	within, said := 0, 0
	turns := budget.NewQueue(1, 0, 0)
	for seed := range uint64(50) {
		all := simulated(rand.New(rand.NewPCG(seed, 0)), 700)
		now := all[600].Created
		state := &queueState{quota: map[string]float64{"cpu": 16}}
		var past []Past
		for _, j := range all[:600] {
			past = append(past, j.asOf(now))
		}
		task := budget.NewTask(t.Context(), turns, "alice")
		q, began, room := learn(task, past, state)
		task.Rest()
		if room > 1.01 {
			t.Fatalf("%v was given out", room)
		}
		p := forecast.State{Room: 1}
		var waiting []Past
		for _, j := range past {
			switch class := classOf(j.Namespace, j.Queue, j.Name); {
			case j.Started.IsZero() && j.Ended.IsZero():
				waiting = append(waiting, j)
				p.Waiting = append(p.Waiting, forecast.Waiting{ID: j.UID, Class: class, Size: sizeOf(j.Requests, state.quota)})
			case j.Ended.IsZero():
				p.Running = append(p.Running, forecast.Running{Class: class, Size: sizeOf(j.Requests, state.quota), For: now.Sub(j.Started)})
			}
		}
		for i, interval := range q.Starts(&p, now.Sub(began)) {
			started := all[slices.IndexFunc(all, func(j Past) bool { return j.UID == waiting[i].UID })].Started
			if interval == nil || started.IsZero() {
				continue
			}
			if said++; !started.Before(now.Add(interval.From)) && !started.After(now.Add(interval.To)) {
				within++
			}
		}
	}
	t.Logf("of %d starts, %d came within their interval", said, within)
	if share := float64(within) / float64(said); said < 150 || share < 0.65 || share > 0.95 {
		t.Errorf("%d of %d", within, said)
	}
}

// asOf is what the history has of a job at a time.
func (p Past) asOf(now time.Time) Past {
	if p.Started.After(now) {
		p.Started = time.Time{}
	}
	if p.Ended.After(now) {
		p.Ended = time.Time{}
	}
	return p
}

// simulated are jobs that come at random to a queue of 16 processors, the first first.
func simulated(random *rand.Rand, n int) (all []Past) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lasts, sizes := make([]time.Duration, n), make([]int, n)
	for i := range n {
		at = at.Add(time.Duration(random.ExpFloat64() * 280 * float64(time.Second)))
		team := random.IntN(3)
		lasts[i], sizes[i] = time.Duration([]float64{300, 900, 2400}[team]*math.Exp(0.7*random.NormFloat64())*float64(time.Second)), 1+random.IntN(4)
		all = append(all, Past{UID: fmt.Sprint(i), Namespace: "a", Queue: "q", Name: fmt.Sprintf("team%c-%d", 'a'+team, i), Created: at, Requests: map[string]string{"cpu": fmt.Sprint(sizes[i])}})
	}
	var waiting, running []int
	free, next := 16, 0
	for now := all[0].Created; next < n || len(waiting) > 0; now = now.Add(5 * time.Second) {
		running = slices.DeleteFunc(running, func(i int) bool {
			over := !all[i].Ended.After(now)
			if over {
				free += sizes[i]
			}
			return over
		})
		for ; next < n && !all[next].Created.After(now); next++ {
			waiting = append(waiting, next)
		}
		waiting = slices.DeleteFunc(waiting, func(i int) bool {
			if sizes[i] > free {
				return false
			}
			free -= sizes[i]
			all[i].Started, all[i].Ended = now, now.Add(lasts[i])
			running = append(running, i)
			return true
		})
	}
	return all
}

// Names of the jobs of one experiment differ by their ends.
func TestJobsThatDifferByTheirEndsAreOfOneClass(t *testing.T) {
	for name, want := range map[string]string{"train-7-x2k4d": "train", "train-8": "train", "eval-final": "eval-final", "7": "7", "llm-70b-run.3": "llm-70b-run", "-1": "-1"} {
		if got := classOf("n", "q", name); got != "n/q/"+want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Times of the history are whole seconds: a job may have come, begun and ended within one. It neither waits nor runs afterwards.
func TestJobsOfOneMomentComeBeginAndEnd(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	past := []Past{
		{UID: "begins at once", Created: at, Started: at, Ended: at.Add(time.Hour)},
		{UID: "ends at once", Created: at, Started: at.Add(time.Minute), Ended: at.Add(time.Minute)},
		{UID: "never begins", Created: at, Ended: at},
		{UID: "all at once", Created: at, Started: at, Ended: at},
		{UID: "begins before", Created: at, Started: at.Add(-time.Second), Ended: at.Add(-time.Second)},
	}
	p := playback{queue: forecast.NewQueue(1), began: at}
	moments, _ := momentsOf(past)
	for _, m := range moments {
		if p.take(m); m.what == begins && slices.Contains(p.waiting, m.job) {
			t.Errorf("what %s still waits", m.job.UID)
		}
	}
	for _, j := range p.waiting {
		t.Errorf("what %s waits for ever", j.UID)
	}
	for _, j := range p.running {
		t.Errorf("what %s runs for ever", j.UID)
	}
}

// What somebody requested who requested anything is no measure of what a queue gives out.
func TestAbsurdRequestsAreBounded(t *testing.T) {
	if share := sizeOf(map[string]string{"cpu": "1e18"}, map[string]float64{"cpu": 1}); share != mostSize {
		t.Errorf("%v", share)
	}
}

// learner is a registry that counts how often it reads the history, and one visit to a queue after another.
type learner struct {
	*Registry
	kinds *cache.Kinds
	read  int
	all   []Past
}

func newLearner() *learner {
	l := &learner{kinds: new(cache.Kinds), all: simulated(rand.New(rand.NewPCG(1, 0)), 700)}
	l.Registry = New(Options{Processors: budget.NewQueue(1, 0, 0), Past: func(context.Context, *cluster.Cluster, string, []LocalQueue, int) ([]Past, error) {
		l.read++
		return l.all[:600], nil
	}})
	return l
}

// visit is a line that forecasts once, for a job that waits; false: what was forecast before is told, and nothing else.
func (l *learner) visit(t *testing.T, forecasts bool) *line {
	t.Helper()
	workload, err := cluster.NewObject(`{"metadata":{"namespace":"a","name":"w","resourceVersion":"1"}}`)
	if err != nil {
		t.Fatal(err)
	}
	line := newLine(newBoard(l.Registry, l.kinds, "alice"), Queue{Name: "whole"})
	line.joins("alice", true)
	if forecasts {
		job := &Job{Job: queues.Job{Name: "teama-700", UID: "700"}, Workload: workload, Queue: "q", Requests: func() map[string]string { return map[string]string{"cpu": "1"} }}
		line.starts.at = time.Now()
		line.forecast(queueState{quota: map[string]float64{"cpu": 16}, jobs: []*Job{job}, now: time.Now()})
	}
	return line
}

// Whoever looks now and then finds what was learnt, and forecast, for whoever looked before.
func TestOneVisitAfterAnotherLearnsOnce(t *testing.T) {
	l := newLearner()
	for n := range 5 {
		of := l.visit(t, true)
		if l.read != 1 || len(of.starts.expected) != 1 {
			t.Fatalf("after %d visits, the history was read %d times, and starts are %v", n+1, l.read, of.starts.expected)
		}
		of.stop()
	}
	if of := l.visit(t, false); len(of.starts.expected) != 1 {
		t.Error("the next visit does not find what was forecast")
	}
}

// A forecast is told until there is a newer one, also if that takes long. One that nobody has asked for since is too old.
func TestAForecastIsToldUntilThereIsANewerOne(t *testing.T) {
	l := newLearner()
	f := l.visit(t, true).starts
	f.at, f.busy = time.Now().Add(-10*time.Minute), true
	if l.visit(t, false).starts.expected == nil {
		t.Error("while the next is on its way, none is told")
	}
	f.busy = false
	if l.visit(t, false).starts.expected != nil {
		t.Error("one is told that is ten minutes old")
	}
}

// The history is read for one queue at a time, in the order of users: one who looks at many queues does not hold up all others.
func TestForecastsAreLearntByUsersTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLearner()
		var order []string
		l.opts.Past = func(_ context.Context, _ *cluster.Cluster, user string, _ []LocalQueue, _ int) ([]Past, error) {
			order = append(order, user)
			return nil, nil
		}
		release, err := l.learning.Take(t.Context(), "before")
		if err != nil {
			t.Fatal(err)
		}
		var asking sync.WaitGroup
		for n, user := range []string{"many", "many", "many", "many", "one"} {
			of := newLine(newBoard(l.Registry, l.kinds, user), Queue{Name: fmt.Sprint(n)})
			of.joins(user, true)
			asking.Go(func() { of.forecast(queueState{now: time.Now()}) })
			synctest.Wait()
		}
		release()
		asking.Wait()
		if at := slices.Index(order, "one"); len(order) != 5 || at > 1 {
			t.Errorf("%q", order)
		}
	})
}
