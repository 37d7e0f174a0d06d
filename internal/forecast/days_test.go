package forecast

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// job is one of simulated days. Times are seconds.
type job struct {
	id, class              string
	size, submitted, lasts float64
	priority               int
	started                float64
	leaves                 float64 // it is given up after waiting for so long
}

// shape is how jobs come to a queue with room for 64.
type shape struct {
	name string
	jobs func(random *rand.Rand, load float64) []job
}

const (
	room   = 64.0
	days   = 28
	warmup = 4 // days
	day    = 24 * 3600.0
)

// team is whose jobs are alike.
type team struct {
	median, spread float64 // of run times: seconds, logarithm
	sizes          []float64
}

var teams = []team{
	{600, 0.8, []float64{1, 1, 2}}, {3600, 1.2, []float64{1, 4, 8}}, {4 * 3600, 0.7, []float64{8, 16}}, {1800, 1.6, []float64{1, 2, 8, 32}}, {300, 0.5, []float64{1}},
}

func (tm team) job(random *rand.Rand, n, of int, at float64) job {
	lasts := tm.median * math.Exp(tm.spread*random.NormFloat64())
	j := job{id: fmt.Sprint(n), class: fmt.Sprint(of), size: tm.sizes[random.IntN(len(tm.sizes))], submitted: at, lasts: min(lasts, 2*day), started: -1, leaves: math.Inf(1)}
	if random.IntN(10) == 0 {
		j.priority = 1
	}
	if random.IntN(20) == 0 {
		j.leaves = 600 + random.Float64()*day/2
	}
	return j
}

// arriving makes jobs at a rate that is such a share of what the queue can do, times a factor by the time.
func arriving(random *rand.Rand, load float64, factor func(at float64) float64, together int) (all []job) {
	work := 0.0 // of one job, on average
	for _, tm := range teams {
		size := 0.0
		for _, s := range tm.sizes {
			size += s / float64(len(tm.sizes))
		}
		work += size * tm.median * math.Exp(tm.spread*tm.spread/2) / float64(len(teams))
	}
	rate := load * room / work / float64(together)
	for at := 0.0; at < days*day; {
		at += random.ExpFloat64() / (rate * 3)
		if random.Float64()*3 > factor(at) { // thinned
			continue
		}
		of := random.IntN(len(teams))
		for range 1 + random.IntN(2*together-1) {
			all = append(all, teams[of].job(random, len(all), of, at))
		}
	}
	return all
}

var shapes = []shape{
	{"steady", func(r *rand.Rand, load float64) []job {
		return arriving(r, load, func(float64) float64 { return 1 }, 1)
	}},
	{"by day", func(r *rand.Rand, load float64) []job {
		return arriving(r, load, func(at float64) float64 { return 1 + 0.9*math.Sin(2*math.Pi*at/day) }, 1)
	}},
	{"arrays", func(r *rand.Rand, load float64) []job {
		return arriving(r, load, func(float64) float64 { return 1 }, 20)
	}},
}

// told is a forecast as somebody looked at it, at a random moment of a job's wait.
type told struct {
	at       float64
	interval *Interval
	looks    int
}

// live runs the jobs through a queue, and forecasts each half minute. Of each job that has started,
// one of its forecasts is checked.
func live(jobs []job, strict bool, seed uint64, check func(j *job, t told, began float64)) {
	random := rand.New(rand.NewPCG(seed, 1))
	q := NewQueue(seed)
	var waiting, running []*job
	looks := map[*job]*told{}
	free := room
	next := 0
	for now := 0.0; next < len(jobs) || len(waiting) > 0; now += 30 {
		for ; next < len(jobs) && jobs[next].submitted <= now; next++ {
			waiting = append(waiting, &jobs[next])
		}
		running = slices.DeleteFunc(running, func(j *job) bool {
			if j.started+j.lasts > now {
				return false
			}
			free += j.size
			q.Ended(j.class, seconds(j.lasts))
			return true
		})
		slices.SortStableFunc(waiting, func(a, b *job) int { return cmp.Or(b.priority-a.priority, cmp.Compare(a.submitted, b.submitted)) })
		blocked := false
		waiting = slices.DeleteFunc(waiting, func(j *job) bool {
			if now-j.submitted > j.leaves {
				q.Left(j.id)
				return true
			}
			if blocked || j.size > free {
				blocked = blocked || strict
				return false
			}
			free -= j.size
			j.started = now
			running = append(running, j)
			q.Started(j.id, seconds(now))
			if t := looks[j]; t != nil {
				check(j, *t, now)
				delete(looks, j)
			}
			return true
		})
		if len(waiting) == 0 || random.IntN(20) > 0 {
			continue
		}
		s := State{Room: room, Strict: strict}
		for _, j := range running {
			s.Running = append(s.Running, Running{j.class, j.size, seconds(now - j.started)})
		}
		for _, j := range waiting {
			s.Waiting = append(s.Waiting, Waiting{j.id, j.class, j.size})
		}
		for i, interval := range q.Starts(&s, seconds(now)) {
			t := looks[waiting[i]]
			if t == nil {
				t = &told{}
				looks[waiting[i]] = t
			}
			if t.looks++; random.IntN(t.looks) == 0 {
				t.at, t.interval = now, interval
			}
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// tally counts what came of forecasts.
type tally struct {
	within, sooner, later, nothing int
	waits, widths                  []float64
	// plainly is the same of whoever goes by how long the queue's jobs waited lately, and by nothing else.
	plainly struct {
		lately sample
		within int
		widths []float64
	}
}

func (c *tally) count(j *job, said told, now float64) {
	waited := seconds(now - said.at)
	lately := &c.plainly.lately
	defer lately.add(waited.Seconds(), 256)
	if j.submitted < warmup*day {
		return
	}
	if said.interval == nil {
		c.nothing++
		return
	}
	c.waits = append(c.waits, waited.Seconds())
	c.widths = append(c.widths, (said.interval.To - said.interval.From).Seconds())
	switch {
	case waited < said.interval.From:
		c.sooner++
	case waited > said.interval.To:
		c.later++
	default:
		c.within++
	}
	from, to := quantile(lately.sorted, 0.1), quantile(lately.sorted, 0.9)
	if from <= waited.Seconds() && waited.Seconds() <= to {
		c.plainly.within++
	}
	c.plainly.widths = append(c.plainly.widths, to-from)
}

// Whoever is told that a job starts within an interval finds it true as often as it is said: neither
// more often, since then it could be narrower, nor less. And it says more than how long jobs waited
// lately does: intervals are narrower. The table is printed.
func TestStartsComeWithinTheirIntervalAsOftenAsIsSaid(t *testing.T) {
	for _, shape := range shapes {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, strict %t", shape.name, strict), func(t *testing.T) {
				t.Parallel()
				load := 0.85
				if strict { // which leaves room free
					load = 0.65
				}
				var c tally
				for seed := range uint64(2) {
					live(shape.jobs(rand.New(rand.NewPCG(seed, 0)), load), strict, seed, c.count)
				}
				n := len(c.waits)
				for _, all := range [][]float64{c.waits, c.widths, c.plainly.widths} {
					slices.Sort(all)
				}
				percent := func(of int) float64 { return 100 * float64(of) / float64(n) }
				t.Logf("of %4d: %.0f%% within, %.0f%% sooner, %.0f%% later; waits: median %.0f min, p90 %.0f min; width: median %.0f min; "+
					"by waits alone: %.0f%% within, width %.0f min", n, percent(c.within), percent(c.sooner), percent(c.later),
					c.waits[n/2]/60, c.waits[n*9/10]/60, c.widths[n/2]/60, percent(c.plainly.within), c.plainly.widths[n/2]/60)
				if share := percent(c.within); share < 75 || share > 85 {
					t.Errorf("%.1f%% of starts are within their interval", share)
				}
				if c.widths[n/2] >= c.plainly.widths[n/2]*0.8 {
					t.Error("intervals are hardly narrower than those by waits alone")
				}
				if c.nothing > n/20 {
					t.Errorf("of %d starts nothing was said", c.nothing)
				}
			})
		}
	}
}

// Where there is too little to go by, nothing is said; and of a job that never fits, never.
func TestNothingIsSaidWhereThereIsTooLittle(t *testing.T) {
	q := NewQueue(1)
	s := &State{Room: 2, Running: []Running{{Class: "a", Size: 1}}, Waiting: []Waiting{{ID: "fits", Class: "a", Size: 1}, {ID: "huge", Class: "a", Size: 3}}}
	for n := range fewest + 1 {
		for i, interval := range q.Starts(s, 0) {
			if interval != nil {
				t.Fatalf("after %d starts, something is said of %s: %v", n, s.Waiting[i].ID, interval)
			}
		}
		q.Ended("a", time.Minute)
		id := fmt.Sprint(n)
		q.Starts(&State{Room: 1, Running: s.Running, Waiting: []Waiting{{ID: id, Class: "a", Size: 1}}}, 0)
		if n > 0 { // of the first, the plays knew nothing
			q.Started(id, time.Minute)
		}
	}
	said := q.Starts(s, 0)
	if said[0] == nil || said[0].From > said[0].To || said[1] != nil {
		t.Errorf("%v", said)
	}
}

// What jobs are forgotten, and who asks how often, changes no memory for good.
func TestAQueueKeepsNoMoreThanItNeeds(t *testing.T) {
	q := NewQueue(1)
	for i := range 3 * mostClasses {
		q.Ended(fmt.Sprint(i), time.Minute)
		id := fmt.Sprint(i % 5000)
		if i%8 == 0 {
			q.Starts(&State{Room: 1, Running: []Running{{Size: 1}}, Waiting: []Waiting{{ID: id, Class: id, Size: 1}}}, 0)
		}
		if i%16 == 0 {
			q.Started(id, time.Minute)
		} else {
			q.Left(id)
		}
	}
	if len(q.lasts.classes) > mostClasses || len(q.lasts.all.sorted) > keptOfAll || len(q.said) > 0 || len(q.all.sorted) > keptErrors {
		t.Errorf("%d classes, %d run times, %d forecasts, %d errors", len(q.lasts.classes), len(q.lasts.all.sorted), len(q.said), len(q.all.sorted))
	}
}

// Nobody says what became of some jobs: they are forgotten.
func TestJobsThatNobodyHearsOfAreForgotten(t *testing.T) {
	q := NewQueue(1)
	q.Ended("a", time.Minute)
	for i := range 2000 {
		q.Starts(&State{Room: 1, Running: []Running{{Size: 1}}, Waiting: []Waiting{{ID: fmt.Sprint(i), Class: "a", Size: 1}}}, time.Duration(i)*time.Minute)
	}
	if len(q.said) > 100 {
		t.Errorf("%d are remembered", len(q.said))
	}
}

func BenchmarkAThousandWait(b *testing.B) {
	q := NewQueue(1)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 2000 {
		q.Ended(fmt.Sprint(i%40), seconds(600*math.Exp(random.NormFloat64())))
	}
	s := &State{Room: 500}
	for i := range 1000 {
		s.Waiting = append(s.Waiting, Waiting{fmt.Sprint(i), fmt.Sprint(i % 40), float64(1 + i%8)})
		if i < 150 {
			s.Running = append(s.Running, Running{fmt.Sprint(i % 40), 3, time.Minute})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		q.Starts(s, 0)
	}
}
