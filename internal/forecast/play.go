package forecast

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"
)

// State is a queue at a moment.
type State struct {
	// Room is how much may run at a time, in the unit of sizes.
	Room float64
	// Strict says that a job that does not fit holds up all behind it.
	Strict  bool
	Running []Running
	Waiting []Waiting // the first is the next
}

// Running is a job that runs.
type Running struct {
	Class string // of jobs that run for alike long
	Size  float64
	For   time.Duration // for how long it has run
}

// Waiting is a job that waits.
type Waiting struct {
	ID    string // names it as long as it waits
	Class string
	Size  float64
}

// looksPast is how many jobs that do not fit are passed in search of one that does, each time there
// is room. Playing a long queue would take the square of its length otherwise.
const looksPast = 64

// ends are the jobs that run in a play, the first to end first.
type ends []end

type end struct{ at, size float64 }

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// play plays the queue forward once, and returns in how many seconds each waiting job starts;
// infinity: never, since it is larger than the room.
func (s *State) play(lasts *durations, random *rand.Rand) []float64 {
	starts := make([]float64, len(s.Waiting))
	free, running := s.Room, make(ends, 0, len(s.Running)+len(s.Waiting))
	for _, r := range s.Running {
		free -= r.Size
		running = append(running, end{lasts.rest(r.Class, r.For.Seconds(), random), r.Size})
	}
	heap.Init(&running)
	waiting := make([]int, len(s.Waiting))
	for i := range waiting {
		waiting[i], starts[i] = i, math.Inf(1)
	}
	passed := make([]int, 0, looksPast)
	for now := 0.0; ; {
		waiting = s.start(waiting, passed[:0], &free, func(i int) {
			starts[i] = now
			heap.Push(&running, end{now + lasts.rest(s.Waiting[i].Class, 0, random), s.Waiting[i].Size})
		})
		if len(waiting) == 0 || len(running) == 0 {
			return starts
		}
		ended := heap.Pop(&running).(end)
		now, free = ended.at, free+ended.size
	}
}

// start starts what fits into what is free, and returns what still waits. Passed is room for those that do not fit.
func (s *State) start(waiting, passed []int, free *float64, start func(int)) []int {
	const rounding = 1e-9
	looked := 0
	for ; looked < len(waiting); looked++ {
		i := waiting[looked]
		size := s.Waiting[i].Size
		if size <= *free+rounding {
			*free -= size
			start(i)
			continue
		}
		if s.Strict && size <= s.Room+rounding || len(passed) >= looksPast || *free <= rounding {
			break
		}
		passed = append(passed, i)
	}
	// They are put back before what was not looked at, which is not moved: it may be long.
	waiting = waiting[looked-len(passed):]
	copy(waiting, passed)
	return waiting
}
