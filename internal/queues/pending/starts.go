package pending

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/forecast"
	"github.com/kubecast/kubecast/internal/queues"
)

// Start is when a job that waits is expected to start.
type Start struct{ From, To time.Time }

// Past is a job of the history that was, or is, in a queue.
type Past struct {
	UID, Namespace, Name, Kind, Queue string
	Requests                          map[string]string // of all its pods together
	Created, Started, Ended           time.Time         // zero: that has not happened
}

// LocalQueue names one.
type LocalQueue struct{ Namespace, Name string }

// Confidence is how sure it is that a job starts within its Start.
const Confidence = forecast.Confidence

const (
	// forecastPace is how often it is forecast at most, and forecastAge how old a forecast becomes while jobs wait.
	forecastPace, forecastAge = 10 * time.Second, time.Minute
	// tooOld is how old a forecast may be that nobody has looked at since.
	tooOld = 2 * forecastAge
	// forecastShare is by how much longer than a forecast took there is none.
	forecastShare = 20
	// learnsAgain is how often the history is read.
	learnsAgain = 10 * time.Minute
	// mostPast is how many of its last jobs a queue is learnt from, and mostLooks at how many moments of
	// these it is forecast what then came, for mostPlayed jobs each.
	mostPast, mostLooks, mostPlayed = 2000, 150, 300
	// lookCost is what a forecast costs for each job, as bytes that are looked at (budget.Task).
	lookCost = 32 << 10
)

// startsOf is what is known of when jobs of a queue start. The caller holds the lock.
func (r *Registry) startsOf(kinds *cache.Kinds, queue Queue, wake func()) *starts {
	now := time.Now()
	maps.DeleteFunc(r.starts, func(_ startsKey, f *starts) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !f.busy && now.Sub(f.used) > learnsAgain
	})
	key := startsKey{kinds, queue}
	f := r.starts[key]
	if f == nil {
		f = &starts{}
		r.starts[key] = f
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.busy && now.Sub(f.at) > tooOld {
		f.expected = nil
	}
	f.used, f.wake = now, wake
	return f
}

type startsKey struct {
	kinds *cache.Kinds
	queue Queue
}

// starts knows when the jobs of a ClusterQueue will start. It is found out beside the line's goroutine, and
// outlives the line, so that who looks now and then finds what was found out for whoever looked before.
type starts struct {
	mu       sync.Mutex
	wake     func()    // the line that follows the queue now
	used     time.Time // when a line began with it
	expected map[jobKey]*Start
	busy     bool
	next     time.Time // there is no forecast before
	at       time.Time // when the newest was begun
	of       []string  // whom it was about, in their order

	// Of whoever is busy.
	queue   *forecast.Queue
	began   time.Time // its times are from then on
	learned time.Time
	room    float64 // how much was given out at most
}

// expect says when jobs start as far as that is known, and has it found out anew where it is due.
func (l *line) expect(s *Snapshot) {
	if l.board.registry.opts.Past == nil || len(s.Places) == 0 || !l.isKueues() || s.Whole == nil {
		return
	}
	whole := s.Whole.Get("", l.queue.Name)
	if whole == nil {
		return
	}
	state, ids := l.state(s)
	state.quota = quotaOf(queues.ClusterQueue(whole))
	state.Strict = whole.Path("spec.queueingStrategy").Str == "StrictFIFO"
	f := l.starts
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range s.Places[:min(len(s.Places), mostTold)] {
		if j := s.Places[i].Job; j != nil {
			s.Places[i].Starts = f.expected[keyOf(j)]
		}
	}
	now := time.Now()
	if f.busy || now.Before(f.next) || slices.Equal(ids, f.of) && now.Before(f.at.Add(forecastAge)) || l.err != nil {
		return
	}
	f.busy, f.at, f.of = true, now, ids
	l.looking.Go(func() { l.forecast(state) })
}

// queueState is a queue at a moment, before sizes are known.
type queueState struct {
	forecast.State
	quota  map[string]float64 // by resource
	locals []LocalQueue
	jobs   []*Job      // those that wait
	given  []*admitted // those that were let in
	now    time.Time
}

// state collects who waits and who runs.
func (l *line) state(s *Snapshot) (state queueState, ids []string) {
	state.now = time.Now()
	for i := range s.Places[:min(len(s.Places), mostTold)] {
		if j := s.Places[i].Job; j != nil {
			state.jobs, ids = append(state.jobs, j), append(ids, j.UID)
		}
	}
	b := l.board
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.admitted {
		if a.clusterQueue == l.queue.Name {
			state.given = append(state.given, a)
		}
	}
	if b.local != nil {
		for o := range everything(b.local) {
			if o.Path("spec.clusterQueue").Str == l.queue.Name {
				state.locals = append(state.locals, LocalQueue{o.GetNamespace(), o.GetName()})
			}
		}
	}
	return state, ids
}

// quotaOf is what a ClusterQueue has of each resource, of all flavors together.
func quotaOf(q queues.Queue) map[string]float64 {
	all := map[string]float64{}
	for _, r := range q.Resources {
		if r.Quota == nil {
			continue
		}
		if quantity, err := resource.ParseQuantity(*r.Quota); err == nil {
			all[r.Resource] += quantity.AsApproximateFloat64()
		}
	}
	maps.DeleteFunc(all, func(_ string, quota float64) bool { return quota <= 0 })
	return all
}

// mostSize is the largest share of what a queue has that a job counts for: it may borrow, but may also request anything.
const mostSize = 16

// sizeOf is the largest share of what a queue has that a job requests.
func sizeOf(requests map[string]string, quota map[string]float64) (share float64) {
	for name, text := range requests {
		if has := quota[name]; has > 0 {
			if quantity, err := resource.ParseQuantity(text); err == nil {
				share = min(mostSize, max(share, quantity.AsApproximateFloat64()/has))
			}
		}
	}
	return share
}

// classOf names jobs that run for alike long: those of a queue whose names differ by their ends only.
func classOf(namespace, queue, name string) string {
	for {
		last := strings.LastIndexAny(name, "-.")
		if last <= 0 || !strings.ContainsAny(name[last:], "0123456789") {
			return namespace + "/" + queue + "/" + name
		}
		name = name[:last]
	}
}

// forecast finds out when jobs start, from what the history has of their queue.
func (l *line) forecast(state queueState) {
	f, r, user := l.starts, l.board.registry, l.payer()
	release, err := r.learning.Take(r.life, user)
	if err != nil {
		return // the gateway ends
	}
	defer release()
	began := time.Now()
	// Whoever looked may have left meanwhile: the next one finds what was found out.
	task := budget.NewTask(r.life, r.opts.Processors, user)
	defer task.Rest()
	if f.queue == nil || began.Sub(f.learned) > learnsAgain {
		past, err := r.opts.Past(r.life, l.board.kinds.Cluster(), user, state.locals, mostPast)
		if err == nil {
			queue, since, room := learn(task, past, &state)
			if task.Err() == nil {
				f.queue, f.began, f.room, f.learned = queue, since, room, began
			}
		}
	}
	expected := map[jobKey]*Start{}
	if f.queue != nil && len(state.quota) > 0 {
		now := state.now.Sub(f.began)
		state.Room = max(1, f.room)
		for _, a := range state.given {
			state.Running = append(state.Running, forecast.Running{Class: classOf(a.Workload.GetNamespace(), a.Queue, a.Name), Size: sizeOf(a.Requests(), state.quota), For: max(0, state.now.Sub(a.since))})
		}
		for _, j := range state.jobs {
			state.Waiting = append(state.Waiting, forecast.Waiting{ID: j.UID, Class: classOf(j.Workload.GetNamespace(), j.Queue, j.Name), Size: sizeOf(j.Requests(), state.quota)})
		}
		for i, interval := range f.queue.Starts(&state.State, now) {
			if interval != nil {
				expected[keyOf(state.jobs[i])] = startOf(state.now, *interval)
			}
		}
	}
	pause := max(forecastPace, forecastShare*time.Since(began))
	f.mu.Lock()
	f.expected, f.busy, f.next = expected, false, time.Now().Add(pause)
	wake := f.wake
	f.mu.Unlock()
	wake()
	time.AfterFunc(pause, wake)
	time.AfterFunc(max(pause, forecastAge), wake)
}

// startOf is an interval as it is told: no finer than it can be meant.
func startOf(now time.Time, i forecast.Interval) *Start {
	grain := func(in time.Duration) time.Duration {
		switch {
		case in < 10*time.Minute:
			return 15 * time.Second
		case in < time.Hour:
			return time.Minute
		case in < 6*time.Hour:
			return 5 * time.Minute
		}
		return 30 * time.Minute
	}
	return &Start{now.Add(i.From).Truncate(grain(i.From)).UTC(), now.Add(i.To + grain(i.To)).Truncate(grain(i.To)).UTC()}
}

// moment is when something befell a job.
type moment struct {
	at   time.Time
	what int
	job  *Past
}

// What may befall a job, in the order in which it counts if it is at the same time.
const (
	ends = iota
	begins
	comes
)

// learn plays the past of a queue, and forecasts at some of its moments what came then. Room is how
// much of the queue was given out at most at a time, which may be more than its own.
func learn(task *budget.Task, past []Past, state *queueState) (q *forecast.Queue, began time.Time, room float64) {
	moments, looks := momentsOf(past)
	if len(moments) == 0 {
		return forecast.NewQueue(1), time.Now(), 0
	}
	q, began = forecast.NewQueue(uint64(len(past))), moments[0].at
	sizes := make(map[*Past]float64, len(past))
	given := 0.0
	for _, m := range moments {
		size, known := sizes[m.job]
		if !known {
			size = sizeOf(m.job.Requests, state.quota)
			sizes[m.job] = size
		}
		switch {
		case m.what == begins:
			given += size
			room = max(room, given)
		case m.what == ends && !m.job.Started.IsZero():
			given -= size
		}
	}
	p := playback{queue: q, began: began, sizes: sizes, state: forecast.State{Room: max(1, room), Strict: state.Strict}}
	came := 0
	for _, m := range moments {
		p.take(m)
		if m.what != comes {
			continue
		}
		if came++; came%looks != 0 {
			continue
		}
		p.look(m.at)
		if !task.Step(lookCost * (1 + len(p.state.Waiting) + len(p.state.Running))) {
			break
		}
	}
	return q, began, room
}

// momentsOf are what befell jobs, in order, and at each how many that come it is looked. A job comes before it begins,
// and begins before it ends, whatever its times say: they are whole seconds, and of several clocks.
func momentsOf(past []Past) (all []moment, looks int) {
	for i := range past {
		p := &past[i]
		last := p.Created
		all = append(all, moment{last, comes, p})
		if !p.Started.IsZero() {
			last = later(p.Started, last)
			all = append(all, moment{last, begins, p})
		}
		if !p.Ended.IsZero() {
			all = append(all, moment{later(p.Ended, last), ends, p})
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.what, b.what)) })
	return all, len(past)/mostLooks + 1
}

// later is a time if it is after another, else the next one after that.
func later(at, than time.Time) time.Time {
	if at.After(than) {
		return at
	}
	return than.Add(1)
}

// playback is a past while it is played.
type playback struct {
	queue   *forecast.Queue
	began   time.Time
	sizes   map[*Past]float64
	state   forecast.State
	waiting []*Past
	running []*Past // in the order in which they began, so that the same past is played alike each time
}

func (p *playback) take(m moment) {
	j := m.job
	if m.what == comes {
		p.waiting = append(p.waiting, j)
		return
	}
	if i := slices.Index(p.waiting, j); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	at := slices.Index(p.running, j)
	switch {
	case m.what == begins:
		p.running = append(p.running, j)
		p.queue.Started(j.UID, m.at.Sub(p.began))
	case at >= 0:
		p.running = slices.Delete(p.running, at, at+1)
		p.queue.Ended(classOf(j.Namespace, j.Queue, j.Name), max(0, j.Ended.Sub(j.Started)))
	default:
		p.queue.Left(j.UID)
	}
}

// look forecasts what comes.
func (p *playback) look(at time.Time) {
	p.state.Running, p.state.Waiting = p.state.Running[:0], p.state.Waiting[:0]
	for _, j := range p.running {
		p.state.Running = append(p.state.Running, forecast.Running{Class: classOf(j.Namespace, j.Queue, j.Name), Size: p.sizes[j], For: max(0, at.Sub(j.Started))})
	}
	for _, j := range p.waiting[:min(len(p.waiting), mostPlayed)] {
		p.state.Waiting = append(p.state.Waiting, forecast.Waiting{ID: j.UID, Class: classOf(j.Namespace, j.Queue, j.Name), Size: p.sizes[j]})
	}
	p.queue.Starts(&p.state, at.Sub(p.began))
}
