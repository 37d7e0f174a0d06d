package logs

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options configure Feeds; all are required unless they say otherwise.
type Options struct {
	Upstreams  int                    // connections at once
	PerUser    int                    // logs that one user reads at once, each however often, and connections of their own besides; 0: no limit
	Free       func(user string) bool // whether PerUser does not bound a user; nil: it bounds all
	Ring       int                    // bytes kept of each
	Linger     time.Duration          // for how long a run is followed once nobody reads it; 0: not at all
	Registerer prometheus.Registerer
}

// Feeds are the runs that are followed.
type Feeds struct {
	opts             Options
	lines, textBytes prometheus.Counter
	resets           *prometheus.CounterVec
	upstreams        prometheus.Gauge

	mu       sync.Mutex
	life     context.Context // ends with Run
	stop     context.CancelFunc
	feeds    map[ContainerRun]*feed
	catchUps int
	users    map[string]map[ContainerRun]int // how many readers each has
	beside   map[string]int                  // how many connections of their own the readers of each have
	running  sync.WaitGroup
}

// New returns Feeds that follow nothing.
func New(opts Options) *Feeds {
	f := &Feeds{
		opts: opts, feeds: map[ContainerRun]*feed{}, users: map[string]map[ContainerRun]int{}, beside: map[string]int{},
		lines:     prometheus.NewCounter(prometheus.CounterOpts{Name: "kubecast_log_lines_total", Help: "Lines of containers' logs that were read, each once."}),
		textBytes: prometheus.NewCounter(prometheus.CounterOpts{Name: "kubecast_log_line_bytes_total", Help: "Bytes of the lines that were read."}),
		resets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_log_resets_total", Help: "How often lines may be missing, by reason: expired (the file was replaced meanwhile), unavailable (it could not be read), clock.",
		}, []string{"reason"}),
		upstreams: NewUpstreams("streams"),
	}
	for _, reason := range []string{ResetRotated, ResetUnreadable, ResetClock} {
		f.resets.WithLabelValues(reason)
	}
	f.life, f.stop = context.WithCancel(context.Background())
	opts.Registerer.MustRegister(f.lines, f.textBytes, f.resets, f.upstreams)
	return f
}

// SetLimits changes Options.Upstreams and Options.PerUser. What is read already goes on.
func (f *Feeds) SetLimits(upstreams, perUser int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opts.Upstreams, f.opts.PerUser = upstreams, perUser
}

func (f *Feeds) isFree(user string) bool { return f.opts.Free != nil && f.opts.Free(user) }

// Run ends with its context, and with it all that is followed.
func (f *Feeds) Run(ctx context.Context) {
	<-ctx.Done()
	f.mu.Lock()
	f.stop()
	f.mu.Unlock()
	f.running.Wait()
}

// Open returns a reader of a run. The user is who pays for it. It must be closed. An error is ErrClosed or ErrLimit.
func (f *Feeds) Open(source Backend, run ContainerRun, user string, start Start) (*Reader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.life.Err() != nil {
		return nil, ErrClosed
	}
	if of := f.users[user]; f.opts.PerUser > 0 && of[run] == 0 && len(of) >= f.opts.PerUser && !f.isFree(user) {
		return nil, ErrLimit
	}
	of := f.feeds[run]
	if of == nil {
		if !f.hasRoom() {
			return nil, ErrLimit
		}
		of = f.begin(source, run)
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	of.readers++
	if of.idle != nil {
		of.idle.Stop()
		of.idle = nil
	}
	if f.users[user] == nil {
		f.users[user] = map[ContainerRun]int{}
	}
	f.users[user][run]++
	return &Reader{feeds: f, feed: of, user: user, start: start}, nil
}

// hasRoom reports whether there may be another connection, if need be in the place of one that
// nobody reads. The lock is held.
func (f *Feeds) hasRoom() bool {
	return len(f.feeds)+f.catchUps < f.opts.Upstreams || f.dropIdle()
}

// begin follows one more run. The lock is held.
func (f *Feeds) begin(source Backend, run ContainerRun) *feed {
	ctx, cancel := context.WithCancel(f.life)
	of := &feed{bound: f.opts.Ring, waiting: map[*Reader]Waiter{}, cancel: cancel, told: f.count}
	of.follower = follower{run: run, source: counted{source, f.upstreams}, to: of, tail: firstTail}
	f.feeds[run] = of
	f.running.Go(func() { of.follower.follow(ctx) })
	return of
}

// beginCatchUp reads a run once more, for one reader.
func (f *Feeds) beginCatchUp(of *feed, user string, start Start) (*catchUp, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.life.Err() != nil:
		return nil, ErrClosed
	case f.opts.PerUser > 0 && f.beside[user] >= f.opts.PerUser && !f.isFree(user), !f.hasRoom():
		return nil, ErrLimit
	}
	p := newCatchUp()
	p.follower = follower{run: of.follower.run, source: of.follower.source, to: p, after: start.After, since: start.Since, tail: start.Tail}
	if start.Whole {
		p.follower.since, p.follower.tail = time.Time{}, -1
	}
	f.catchUps++
	f.beside[user]++
	of.mu.Lock()
	of.beside++
	of.mu.Unlock()
	ctx, cancel := context.WithCancel(f.life)
	p.cancel = cancel
	p.uncount = sync.OnceFunc(func() {
		f.catchUps--
		if f.beside[user]--; f.beside[user] == 0 {
			delete(f.beside, user)
		}
		of.mu.Lock()
		defer of.mu.Unlock()
		of.beside--
	})
	f.running.Go(func() {
		p.follower.follow(ctx)
		f.mu.Lock()
		defer f.mu.Unlock()
		p.uncount()
	})
	return p, nil
}

func (f *Feeds) count(lines []*Line) {
	for _, line := range lines {
		if line.Reset != "" {
			f.resets.WithLabelValues(line.Reset).Inc()
			continue
		}
		f.lines.Inc()
		f.textBytes.Add(float64(len(line.Text)))
	}
}

// dropIdle makes room for another run, if one is followed that nobody reads. The lock is held.
func (f *Feeds) dropIdle() bool {
	for run, of := range f.feeds {
		of.mu.Lock()
		idle := of.readers == 0
		of.mu.Unlock()
		if idle {
			of.cancel()
			delete(f.feeds, run)
			return true
		}
	}
	return false
}

// rest lets a run be followed a little longer that nobody reads. Both locks are held.
func (f *Feeds) rest(of *feed) {
	if of.idle != nil {
		return
	}
	of.idle = time.AfterFunc(f.opts.Linger, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		of.mu.Lock()
		defer of.mu.Unlock()
		if of.readers == 0 {
			of.cancel()
			if f.feeds[of.follower.run] == of {
				delete(f.feeds, of.follower.run)
			}
		}
	})
}

// Stats is a run that is followed at a moment.
type Stats struct {
	Run     ContainerRun
	Readers int
	Beside  int   // of these, those with a connection of their own, since the ring does not reach back to them
	Lines   int   // kept
	Bytes   int   // that these take
	Err     error // why it cannot be read for now, or why no more comes; nil: it is followed
}

// Stats returns what is followed now, in the order of names.
func (f *Feeds) Stats() (all []Stats) {
	f.mu.Lock()
	for run, of := range f.feeds {
		of.mu.Lock()
		all = append(all, Stats{Run: run, Readers: of.readers, Beside: of.beside, Lines: len(of.ring), Bytes: of.bytes, Err: cmp.Or(of.err, of.failing)})
		of.mu.Unlock()
	}
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b Stats) int {
		return cmp.Or(
			cmp.Compare(a.Run.Cluster, b.Run.Cluster), cmp.Compare(a.Run.Namespace, b.Run.Namespace), cmp.Compare(a.Run.Pod, b.Run.Pod),
			cmp.Compare(a.Run.Container, b.Run.Container), cmp.Compare(a.Run.Restart, b.Run.Restart),
		)
	})
	return all
}
