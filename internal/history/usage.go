package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Span is a time that is cut into steps of the same length; the last one may be shorter.
type Span struct {
	From  Time          // 0: since ever, in one step
	Until Time          // exclusive
	Step  time.Duration // 0: one step
}

// Steps is how many steps there are.
func (s Span) Steps() int {
	if s.Step == 0 || s.From == 0 {
		return 1
	}
	length := max(0, int64(s.Until-s.From))
	return int((length + s.Step.Milliseconds() - 1) / s.Step.Milliseconds())
}

// step is the step to which a moment within the span belongs.
func (s Span) step(at Time) int {
	if s.Step == 0 || s.From == 0 {
		return 0
	}
	return int(int64(at-s.From) / s.Step.Milliseconds())
}

func (s Span) begin(step int) Time { return s.From + Time(int64(step)*s.Step.Milliseconds()) }

// Run is a time in which a job was Running; To is not part of it.
type Run struct{ From, To Time }

// Lived is what usage needs of a job's life, up to now.
type Lived struct {
	Key     string // the key by which jobs are summed up
	Created Time
	Started Time          // 0: it never ran
	Ran     time.Duration // of all its runs together
	Runs    []Run         // in order; none overlaps another
	CPUs    float64
	GPUs    float64
}

// Usage sums up what jobs have used. A job counts in the step in which it was created. Its hours count in the steps in
// which it ran.
type Usage struct {
	span   Span
	groups map[group]*sums
	jobs   int
}

type group struct {
	key  string
	step int
}

// sums keep durations in hundredths of a second, and all of them, since a percentile needs all.
type sums struct {
	jobs        int
	waited, ran []uint32
	cpu, gpu    float64 // in hours
}

// NewUsage begins with nothing.
func NewUsage(span Span) *Usage { return &Usage{span: span, groups: map[group]*sums{}} }

// Size is how many groups there are, and how many jobs were counted in them.
func (u *Usage) Size() (groups, jobs int) { return len(u.groups), u.jobs }

// Add counts a job.
func (u *Usage) Add(l Lived) {
	if l.Created >= u.span.From && l.Created < u.span.Until {
		s := u.in(l.Key, u.span.step(l.Created))
		s.jobs++
		u.jobs++
		if l.Started != 0 {
			s.waited = append(s.waited, hundredths(time.Duration(l.Started-l.Created)*time.Millisecond))
			s.ran = append(s.ran, hundredths(l.Ran))
		}
	}
	if l.CPUs == 0 && l.GPUs == 0 {
		return
	}
	for _, run := range l.Runs {
		from, to := max(run.From, u.span.From), min(run.To, u.span.Until)
		for from < to {
			step, end := u.span.step(from), to
			if u.span.Steps() > 1 {
				end = min(to, u.span.begin(step+1))
			}
			s, hours := u.in(l.Key, step), float64(end-from)/float64(time.Hour/time.Millisecond)
			s.cpu += hours * l.CPUs
			s.gpu += hours * l.GPUs
			from = end
		}
	}
}

func (u *Usage) in(key string, step int) *sums {
	at := group{key, step}
	if u.groups[at] == nil {
		u.groups[at] = &sums{}
	}
	return u.groups[at]
}

func hundredths(d time.Duration) uint32 {
	return uint32(min(max(d, 0)/(10*time.Millisecond), math.MaxUint32))
}

// Used is what the jobs of one key used in one step.
type Used struct {
	Key         string
	From        Time // of the step; 0: since ever
	Jobs        int
	Waited, Ran *Spread // of those that ran; nil if none did
	CPU, GPU    float64 // hours
}

// Spread says how durations are spread, in seconds: half of them are not longer than P50, and so on.
type Spread struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	Max float64 `json:"max"`
}

// Sum is what was used, by step, then by key. Nothing can be added afterwards.
func (u *Usage) Sum() []Used {
	all := make([]Used, 0, len(u.groups))
	for g, s := range u.groups {
		used := Used{Key: g.key, Jobs: s.jobs, Waited: spread(s.waited), Ran: spread(s.ran), CPU: s.cpu, GPU: s.gpu}
		if u.span.From != 0 {
			used.From = u.span.begin(g.step)
		}
		all = append(all, used)
	}
	slices.SortFunc(all, func(a, b Used) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Key, b.Key)) })
	return all
}

// spread takes the nearest rank, so a percentile is always one of the durations.
func spread(durations []uint32) *Spread {
	n := len(durations)
	if n == 0 {
		return nil
	}
	slices.Sort(durations)
	at := func(percent int) float64 { return float64(durations[(n*percent+99)/100-1]) / 100 }
	return &Spread{P50: at(50), P90: at(90), Max: at(100)}
}
