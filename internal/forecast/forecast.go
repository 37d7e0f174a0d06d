package forecast

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Confidence is how often a start comes within its interval.
const Confidence = 0.8

const (
	// plays is how often a queue is played forward for one forecast.
	plays = 48
	// fewest is how many starts, and how many run times, there must have been before anything is said.
	fewest = 30
	// keptErrors is how many of the last errors are kept of each range, and ranges of what is expected are told apart.
	keptErrors = 1024
	// soon keeps what starts within moments from counting as far from what starts at once: seconds.
	soon = 15
	// narrowest is how narrow a spread may be: plays may all end alike, and are not that sure.
	narrowest = 0.15
	// forgottenAfter is how long it may take until somebody says that a job has started or left.
	forgottenAfter = time.Hour
	// pace is how far one error moves the share of errors that is allowed for.
	pace = 0.005
)

// Interval is when a job will start, from a moment on.
type Interval struct{ From, To time.Duration }

// Queue learns how long the jobs of one queue run and wait. Its methods may not be called concurrently.
type Queue struct {
	lasts  durations
	random *rand.Rand
	said   map[string]*said // of the jobs that wait
	errors [ranges]sample
	all    sample
	// low and high are the shares of errors below and above an interval that are allowed for. They
	// follow what came, since what was lately is not what comes.
	low, high float64
	starts    int
}

// said is one forecast of a job, of all that were made of it: each is as likely to be the one.
type said struct {
	at     time.Duration
	number int // how many there were
	plain  plain
	told   Interval
	ok     bool
}

// plain is what the plays say: the middle and the half width of how long a job still waits, as logarithms.
type plain struct{ middle, spread float64 }

// NewQueue returns a Queue that knows nothing. The seed makes it the same each time.
func NewQueue(seed uint64) *Queue {
	return &Queue{random: rand.New(rand.NewPCG(seed, 0)), said: map[string]*said{}, low: (1 - Confidence) / 2, high: (1 - Confidence) / 2}
}

// Ended tells for how long a job ran.
func (q *Queue) Ended(class string, ran time.Duration) { q.lasts.add(class, ran.Seconds()) }

// Started tells that a job that waited has started. The time, as all others, is from any beginning on.
func (q *Queue) Started(id string, at time.Duration) {
	s := q.said[id]
	if s == nil {
		return
	}
	delete(q.said, id)
	q.starts++
	score := s.plain.score(at - s.at)
	q.errors[s.plain.rangeOf()].add(score, keptErrors)
	q.all.add(score, keptErrors)
	if !s.ok {
		return
	}
	waited, below, above := at-s.at, 0.0, 0.0
	if waited < s.told.From {
		below = 1
	}
	if waited > s.told.To {
		above = 1
	}
	allowed := (1 - Confidence) / 2
	q.low = min(max(q.low+pace*(allowed-below), 0.005), 0.4)
	q.high = min(max(q.high+pace*(allowed-above), 0.005), 0.4)
}

// Left tells that a job does not wait any more, and has not started.
func (q *Queue) Left(id string) { delete(q.said, id) }

// Starts says when the jobs start that wait, in their order, from now on. An interval is nil where
// there is too little to go by.
func (q *Queue) Starts(s *State, now time.Duration) []*Interval {
	found := make([]*Interval, len(s.Waiting))
	if len(q.lasts.all.ring) == 0 || len(s.Waiting) == 0 {
		return found
	}
	played := make([][]float64, len(s.Waiting))
	for range plays {
		for i, start := range s.play(&q.lasts, q.random) {
			played[i] = append(played[i], start)
		}
	}
	q.forget(s.Waiting, now)
	lately := q.lately(now)
	for i, w := range s.Waiting {
		slices.Sort(played[i])
		p, ok := plainOf(played[i])
		if !ok {
			continue
		}
		told, ok := q.interval(p, &lately)
		q.remember(w.ID, &said{at: now, plain: p, told: told, ok: ok})
		if ok {
			found[i] = &told
		}
	}
	return found
}

// remember keeps one of a job's forecasts, each as likely as the others.
func (q *Queue) remember(id string, s *said) {
	before := q.said[id]
	if before == nil {
		s.number = 1
		q.said[id] = s
		return
	}
	s.number = before.number + 1
	if q.random.IntN(s.number) == 0 {
		q.said[id] = s
	} else {
		before.number++
	}
}

// plainOf is what sorted plays say; false if a job mostly does not start at all.
func plainOf(played []float64) (plain, bool) {
	at := func(share float64) float64 { return math.Log(soon + played[int(share*float64(len(played)-1))]) }
	low, middle, high := at(0.16), at(0.5), at(0.84)
	if math.IsInf(high, 1) {
		return plain{}, false
	}
	return plain{middle, max(narrowest, (high-low)/2)}, true
}

// score is by how much a start came later than the plays say, in their spreads.
func (p plain) score(waited time.Duration) float64 {
	return (math.Log(soon+max(0, waited.Seconds())) - p.middle) / p.spread
}

// at is how long a job waits by a score.
func (p plain) at(score float64) time.Duration {
	seconds := math.Exp(p.middle+score*p.spread) - soon
	return time.Duration(min(max(0, seconds), 1e9) * float64(time.Second)).Round(time.Second)
}

// ranges are the ranges of what is expected, whose errors differ: some minutes, an hour, some hours, more.
const ranges = 4

func (p plain) rangeOf() int {
	switch waits := math.Exp(p.middle) - soon; {
	case waits < 300:
		return 0
	case waits < 3600:
		return 1
	case waits < 4*3600:
		return 2
	}
	return 3
}

// bounds are the scores between which a start comes, of each range.
type bounds [ranges]struct{ low, high float64 }

// lately are the bounds that would have held lately.
func (q *Queue) lately(now time.Duration) (found bounds) {
	var late [ranges][]float64
	for _, s := range q.said {
		// Jobs that wait for longer already than was said of them count, too, though it is not known by how much they
		// will be late: without them, those that start soon would count for all.
		if score := s.plain.score(now - s.at); score > 0.5 {
			late[s.plain.rangeOf()] = append(late[s.plain.rangeOf()], score)
		}
	}
	for i := range found {
		errors := q.errors[i].sorted
		if len(errors) < fewest {
			errors = q.all.sorted
		}
		if len(errors) == 0 {
			continue
		}
		if len(late[i]) > 0 {
			errors = append(late[i], errors...)
			slices.Sort(errors)
		}
		found[i].low, found[i].high = quantile(errors, q.low), quantile(errors, 1-q.high)
	}
	return found
}

// interval widens what the plays say to what would have held lately.
func (q *Queue) interval(p plain, lately *bounds) (Interval, bool) {
	if q.starts < fewest || len(q.lasts.all.ring) < fewest {
		return Interval{}, false
	}
	b := lately[p.rangeOf()]
	return Interval{p.at(b.low), p.at(b.high)}, true
}

// forget forgets jobs that do not wait any more, and of which nobody has said what became of them.
func (q *Queue) forget(waiting []Waiting, now time.Duration) {
	if len(q.said) <= 2*len(waiting)+fewest {
		return
	}
	waits := make(map[string]bool, len(waiting))
	for _, w := range waiting {
		waits[w.ID] = true
	}
	for id, s := range q.said {
		if !waits[id] && now-s.at > forgottenAfter {
			delete(q.said, id)
		}
	}
}

// quantile is the value below which a share of sorted values is.
func quantile(sorted []float64, share float64) float64 {
	at := share * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
