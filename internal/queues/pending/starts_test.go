package pending

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/forecast"
)

// A queue that has only its history says of jobs that come when they will start, and is right as often as it says.
func TestStartsAreLearntFromTheHistoryAlone(t *testing.T) {
	within, said := 0, 0
	turns := budget.NewQueue(1, 0, 0)
	for seed := range uint64(15) {
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
	if share := float64(within) / float64(said); said < 40 || share < 0.65 || share > 0.95 {
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
	p := playback{queue: forecast.NewQueue(1), began: at, running: map[*Past]bool{}}
	moments, _ := momentsOf(past)
	for _, m := range moments {
		if p.take(m); m.what == begins && slices.Contains(p.waiting, m.job) {
			t.Errorf("what %s still waits", m.job.UID)
		}
	}
	for _, j := range p.waiting {
		t.Errorf("what %s waits for ever", j.UID)
	}
	for j := range p.running {
		t.Errorf("what %s runs for ever", j.UID)
	}
}

// What somebody requested who requested anything is no measure of what a queue gives out.
func TestAbsurdRequestsAreBounded(t *testing.T) {
	if share := sizeOf(map[string]string{"cpu": "1e18"}, map[string]float64{"cpu": 1}); share != mostSize {
		t.Errorf("%v", share)
	}
}
