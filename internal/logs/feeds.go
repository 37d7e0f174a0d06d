package logs

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options configure Feeds; all are required unless they say otherwise.
type Options struct {
	Upstreams  int           // how many runs are followed at once
	PerUser    int           // how many of them one user reads; 0: no limit
	Ring       int           // bytes kept of each
	Linger     time.Duration // for how long a run is followed once nobody reads it; 0: not at all
	Registerer prometheus.Registerer
}

// Feeds are the runs that are followed.
type Feeds struct {
	opts             Options
	lines, textBytes prometheus.Counter
	resets           *prometheus.CounterVec

	mu      sync.Mutex
	life    context.Context // Run's; nil while it does not run
	feeds   map[Run]*feed
	users   map[string]int // cursors
	running sync.WaitGroup
}

// New returns Feeds that follow nothing.
func New(opts Options) *Feeds {
	f := &Feeds{
		opts: opts, feeds: map[Run]*feed{}, users: map[string]int{},
		lines:     prometheus.NewCounter(prometheus.CounterOpts{Name: "kubecast_log_lines_total", Help: "Lines of containers' logs that were read, each once."}),
		textBytes: prometheus.NewCounter(prometheus.CounterOpts{Name: "kubecast_log_line_bytes_total", Help: "Bytes of the lines that were read."}),
		resets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_log_resets_total", Help: "How often lines may be missing, by reason: expired, clock.",
		}, []string{"reason"}),
	}
	opts.Registerer.MustRegister(f.lines, f.textBytes, f.resets)
	return f
}

// Run follows what is opened, until the context ends.
func (f *Feeds) Run(ctx context.Context) {
	f.mu.Lock()
	f.life = ctx
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	f.life = nil
	for _, feed := range f.feeds {
		feed.cancel()
	}
	f.mu.Unlock()
	f.running.Wait()
}

// Open returns a cursor behind a position, or, if that is nil, before the last tail lines of those that are kept. The user is who pays
// for it. It must be closed. An error is ErrClosed, ErrLimit, or ErrExpired.
func (f *Feeds) Open(source Source, run Run, user string, after *Position, tail int) (*Cursor, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.life == nil || f.life.Err() != nil {
		return nil, ErrClosed
	}
	if f.opts.PerUser > 0 && f.users[user] >= f.opts.PerUser {
		return nil, ErrLimit
	}
	of := f.feeds[run]
	if of == nil {
		if len(f.feeds) >= f.opts.Upstreams && !f.dropIdle() {
			return nil, ErrLimit
		}
		of = f.begin(source, run)
	}
	c := &Cursor{feeds: f, feed: of, user: user, tail: max(tail, 0)}
	of.mu.Lock()
	defer of.mu.Unlock()
	if after != nil {
		i := slices.IndexFunc(of.ring, func(l Line) bool { return l.After == *after && l.Reset == "" })
		if i < 0 {
			if of.readers == 0 {
				f.rest(of)
			}
			return nil, ErrExpired
		}
		c.placed, c.next = true, of.first+uint64(i)+1
	}
	of.readers++
	if of.idle != nil {
		of.idle.Stop()
		of.idle = nil
	}
	f.users[user]++
	return c, nil
}

// begin follows one more run. The lock is held.
func (f *Feeds) begin(source Source, run Run) *feed {
	ctx, cancel := context.WithCancel(f.life)
	of := &feed{run: run, source: source, bound: f.opts.Ring, waiting: map[*Cursor]Waiter{}, cancel: cancel, told: f.count}
	f.feeds[run] = of
	f.running.Go(func() { of.follow(ctx) })
	return of
}

func (f *Feeds) count(lines []Line) {
	for i := range lines {
		if reason := lines[i].Reset; reason != "" {
			f.resets.WithLabelValues(reason).Inc()
			continue
		}
		f.lines.Inc()
		f.textBytes.Add(float64(len(lines[i].Text)))
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
			if f.feeds[of.run] == of {
				delete(f.feeds, of.run)
			}
		}
	})
}

// Stats is what is followed at a moment.
type Stats struct {
	Run     Run
	Readers int
	Lines   int // kept
	Bytes   int // that these take
	Err     error
}

// Stats returns what is followed now.
func (f *Feeds) Stats() (all []Stats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for run, of := range f.feeds {
		of.mu.Lock()
		all = append(all, Stats{Run: run, Readers: of.readers, Lines: len(of.ring), Bytes: of.bytes, Err: of.err})
		of.mu.Unlock()
	}
	return all
}
