package days

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/forecast"
)

// Queue is what jobs wait for.
type Queue struct {
	Room   float64 // in the unit of sizes
	Strict bool    // a job that does not fit holds up all behind it
}

// look is a forecast of a job, as somebody looked at it at a random moment of its wait.
type look struct {
	at       float64
	interval *forecast.Interval
	looks    int
}

const (
	step  = 30 // seconds between moments at which jobs start
	looks = 20 // at one moment of so many it is forecast
)

// replay is one way of some jobs through a queue.
type replay struct {
	queue            Queue
	random           *rand.Rand
	forecasts        *forecast.Queue
	free             float64
	waiting, running []*Job
	looks            map[*Job]*look
	tally            *Tally
}

// Replay runs jobs, in the order in which they come, through a queue, and forecasts now and then when those start that wait. Of each job
// that has started, one of its forecasts is counted. The same seed does the same.
func Replay(jobs []Job, queue Queue, seed uint64, into *Tally) {
	r := &replay{
		queue: queue, random: rand.New(rand.NewPCG(seed, 1)), forecasts: forecast.NewQueue(seed), free: queue.Room, looks: map[*Job]*look{}, tally: into,
	}
	for next, now := 0, 0.0; next < len(jobs) || len(r.waiting) > 0; now += step {
		for ; next < len(jobs) && jobs[next].submitted <= now; next++ {
			if j := &jobs[next]; j.size <= queue.Room { // else it never starts
				r.waiting = append(r.waiting, j)
			}
		}
		r.end(now)
		r.start(now)
		if len(r.waiting) > 0 && r.random.IntN(looks) == 0 {
			r.look(now)
		}
	}
}

func (r *replay) end(now float64) {
	r.running = slices.DeleteFunc(r.running, func(j *Job) bool {
		if j.started+j.lasts > now {
			return false
		}
		r.free += j.size
		r.forecasts.Ended(j.class, seconds(j.lasts))
		return true
	})
}

func (r *replay) start(now float64) {
	slices.SortStableFunc(r.waiting, func(a, b *Job) int { return cmp.Or(b.priority-a.priority, cmp.Compare(a.submitted, b.submitted)) })
	blocked := false
	r.waiting = slices.DeleteFunc(r.waiting, func(j *Job) bool {
		if now-j.submitted > j.leaves {
			r.forecasts.Left(j.id)
			return true
		}
		if j.began >= 0 && j.began > now {
			return false
		}
		if j.began < 0 && (blocked || j.size > r.free) {
			blocked = blocked || r.queue.Strict
			return false
		}
		r.free -= j.size
		j.started = now
		r.running = append(r.running, j)
		r.forecasts.Started(j.id, seconds(now))
		if t := r.looks[j]; t != nil {
			r.tally.count(j, t, now)
			delete(r.looks, j)
		}
		return true
	})
}

func (r *replay) look(now float64) {
	s := forecast.State{Room: r.queue.Room, Strict: r.queue.Strict}
	for _, j := range r.running {
		s.Running = append(s.Running, forecast.Running{Class: j.class, Size: j.size, For: seconds(now - j.started)})
	}
	for _, j := range r.waiting {
		s.Waiting = append(s.Waiting, forecast.Waiting{ID: j.id, Class: j.class, Size: j.size})
	}
	for i, interval := range r.forecasts.Starts(&s, seconds(now)) {
		t := r.looks[r.waiting[i]]
		if t == nil {
			t = &look{}
			r.looks[r.waiting[i]] = t
		}
		if t.looks++; r.random.IntN(t.looks) == 0 {
			t.at, t.interval = now, interval
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
