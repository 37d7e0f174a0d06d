package jobs

import (
	"cmp"
	"math"
	"math/bits"
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

// HasInOneStep reports whether an interval lies within one step.
func (s Span) HasInOneStep(i Interval) bool {
	return i.From >= s.From && i.From < i.To && i.To <= s.Until && s.step(i.From) == s.step(i.To-1)
}

func (s Span) begin(step int) Time { return s.From + Time(int64(step)*s.Step.Milliseconds()) }

// Interval is a time; To is not part of it.
type Interval struct{ From, To Time }

// Lived is what usage needs of a job's life, up to now.
type Lived struct {
	Key     string // the key by which jobs are summed up
	Counted bool   // the job was counted already: only what it holds counts
	Created Time
	HasRun  bool
	Ran     time.Duration // as Job.Ran says; it counts of jobs that have run
	Waited  time.Duration // as Job.Waited says; it counts of jobs that have run
	Late    bool          // nobody saw it begin: how long it waited is not known, and Ran is the least that it ran
	Unended bool          // how long it ran is not known; Ran is up to when that was found
	Unknown bool          // it may have held something of which nobody knows
	Holds   []Hold        // in any order
}

// Usage sums up what jobs have used. A job counts in the step in which it was created. Its hours count in the steps in
// which it held what it used.
//
// What is held through many steps is not added to each of them. The steps are the leaves of a
// binary tree, and it is added to the few nodes that together have the steps through all of which
// it is held. What was used in a step is the sum of the nodes above it.
type Usage struct {
	span   Span
	size   int // of the tree: node i has the children 2i and 2i+1, and step s is the node size+s
	keys   map[string]*keyed
	groups int
	jobs   int
}

// keyed is what was used of one key.
type keyed struct {
	nodes map[int]*sums
	used  []uint64 // a bit for each step that has anything
}

// sums keep durations in hundredths of a second, and all of them, since a percentile needs all.
type sums struct {
	jobs        int
	unknown     int // of the jobs
	waited, ran []uint32
	hours       Amounts // of each step
}

// NewUsage begins with nothing.
func NewUsage(span Span) *Usage {
	size := 1
	for size < span.Steps() {
		size *= 2
	}
	return &Usage{span: span, size: size, keys: map[string]*keyed{}}
}

// Size is how many groups of a key and a step there are, and how many jobs were counted in them.
func (u *Usage) Size() (groups, jobs int) { return u.groups, u.jobs }

// Add counts a job. It returns how many sums it has changed, which is the work that it was.
func (u *Usage) Add(l Lived) (changed int) {
	if !l.Counted && l.Created >= u.span.From && l.Created < u.span.Until {
		step := u.span.step(l.Created)
		s := u.in(l.Key, step, step+1).at(u.size + step)
		s.jobs++
		u.jobs++
		changed++
		if l.Unknown {
			s.unknown++
		}
		if l.HasRun && !l.Late {
			s.waited = append(s.waited, hundredths(l.Waited))
			if !l.Unended {
				s.ran = append(s.ran, hundredths(l.Ran))
			}
		}
	}
	for _, held := range l.Holds {
		from, to := max(held.From, u.span.From), min(held.To, u.span.Until)
		if from < to && held.Amounts != (Amounts{}) {
			changed += u.hold(l.Key, Hold{Interval{from, to}, held.Amounts})
		}
	}
	return changed
}

// hold adds the hours of what was held within the span.
func (u *Usage) hold(key string, held Hold) (changed int) {
	from, to := held.From, held.To
	first, last := u.span.step(from), u.span.step(to-1)
	k := u.in(key, first, last+1)
	add := func(node int, length Time) {
		s, part := k.at(node), held
		part.Interval = Interval{0, length}
		s.hours = s.hours.plus(HoursOf([]Hold{part}))
		changed++
	}
	if first == last {
		add(u.size+first, to-from)
		return changed
	}
	add(u.size+first, u.span.begin(first+1)-from)
	add(u.size+last, to-u.span.begin(last))
	whole := Time(u.span.Step.Milliseconds())
	for left, right := u.size+first+1, u.size+last; left < right; left, right = left/2, right/2 {
		if left%2 == 1 {
			add(left, whole)
			left++
		}
		if right%2 == 1 {
			right--
			add(right, whole)
		}
	}
	return changed
}

// in is a key, of which some steps have something from now on.
func (u *Usage) in(key string, from, until int) *keyed {
	k := u.keys[key]
	if k == nil {
		k = &keyed{map[int]*sums{}, make([]uint64, (u.size+63)/64)}
		u.keys[key] = k
	}
	for word := from / 64; word <= (until-1)/64; word++ {
		mask := ^uint64(0)
		if begin := word * 64; from > begin {
			mask <<= from - begin
		}
		if end := (word + 1) * 64; until < end {
			mask &= ^uint64(0) >> (end - until)
		}
		u.groups += bits.OnesCount64(mask &^ k.used[word])
		k.used[word] |= mask
	}
	return k
}

func (k *keyed) at(node int) *sums {
	if k.nodes[node] == nil {
		k.nodes[node] = &sums{}
	}
	return k.nodes[node]
}

func hundredths(d time.Duration) uint32 {
	return uint32(min(max(d, 0)/(10*time.Millisecond), math.MaxUint32))
}

// Used is what the jobs of one key used in one step.
type Used struct {
	Key         string
	From        Time // of the step; 0: since ever
	Jobs        int
	Waited, Ran *Spread // of those that ran, and of which it is known; nil if there are none
	Hours       Amounts // times hours
	Unknown     int     // of the jobs: nobody knows what they held, and Hours are without it
}

// Spread says how durations are spread, in seconds: half of them are not longer than P50, and so on.
// Count is how many they are, which may be few of the jobs that it is told beside.
type Spread struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	Max   float64 `json:"max"`
}

// Sum is what was used, by step, then by key. Nothing can be added afterwards.
func (u *Usage) Sum() []Used {
	all := make([]Used, 0, u.groups)
	for key, k := range u.keys {
		for step := range u.size {
			if k.used[step/64]&(1<<(step%64)) == 0 {
				continue
			}
			used := Used{Key: key}
			if s := k.nodes[u.size+step]; s != nil {
				used.Jobs, used.Waited, used.Ran, used.Unknown = s.jobs, spread(s.waited), spread(s.ran), s.unknown
			}
			for node := u.size + step; node > 0; node /= 2 {
				if s := k.nodes[node]; s != nil {
					used.Hours = used.Hours.plus(s.hours)
				}
			}
			if u.span.From != 0 {
				used.From = u.span.begin(step)
			}
			all = append(all, used)
		}
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
	return &Spread{Count: n, P50: at(50), P90: at(90), Max: at(100)}
}
