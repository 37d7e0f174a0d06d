package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// Options configure an Inbox; all are required.
type Options struct {
	States     []jobs.State  // that users are told of who have not chosen
	Digest     time.Duration // for how long what happens is gathered for such users; 0: not at all
	Keep       time.Duration // how long a notification is kept
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

// defaults are what the operator has chosen.
type defaults struct {
	states       []jobs.State
	digest, keep time.Duration
}

// Inbox is the inboxes of all users. It is a store.Writer. Its other methods need Use first, and
// may be called concurrently.
type Inbox struct {
	opts    Options
	usual   atomic.Pointer[defaults]
	metrics *metrics
	follows follows
	hurry   chan struct{} // holds an element if a digest may be due sooner than was known
	store   *store.Store  // in the name of the inboxes themselves
	ready   <-chan struct{}
	seal    Seal
}

// Seal makes of a transition's number, in the log of a cluster and kind, the text with which it is
// told to those who may not see all of the kind.
type Seal func(log store.LogName, seq uint64) string

// Errors of reading.
var (
	// ErrAway means that the database cannot be used now.
	ErrAway = errors.New("the history's database cannot be read")
	// ErrRefused is an ErrAway that does not pass by itself: the schema is another release's.
	ErrRefused = errors.New("its schema is another release's")
	// ErrAhead means that an inbox ends before a number.
	ErrAhead = errors.New("the inbox does not reach so far")
	// ErrExpired means that some of what follows a number has been removed.
	ErrExpired = errors.New("some of it is not kept any more")
)

// New returns an Inbox.
func New(opts Options) *Inbox {
	i := &Inbox{opts: opts, metrics: newMetrics(opts.Registerer), follows: newFollows(), hurry: make(chan struct{}, 1)}
	i.SetDefaults(opts.States, opts.Digest, opts.Keep)
	return i
}

// SetDefaults changes Options.States, Digest and Keep, for what happens from now on.
func (i *Inbox) SetDefaults(states []jobs.State, digest, keep time.Duration) {
	i.usual.Store(&defaults{states, digest, keep})
}

// keep is how long a notification is kept.
func (i *Inbox) keep() time.Duration { return i.usual.Load().keep }

// Use says which database is read, what is closed once its schema is as it must be, and how numbers
// are told from then on. It comes before everything else but Write.
func (i *Inbox) Use(s *store.Store, ready <-chan struct{}, seal Seal) {
	i.store, i.ready, i.seal = s.For(store.System("inboxes")), ready, seal
}

// of is the database in the name of a user.
func (i *Inbox) of(owner string) *store.Store { return i.store.For(store.User(owner)) }

// Run makes digests, removes what was kept for long enough, and finds out what is new for those who
// follow an inbox. It returns when the context has ended.
func (i *Inbox) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { i.follow(ctx) })
	select {
	case <-i.ready:
		running.Go(func() { i.makeDigests(ctx) })
		running.Go(func() { i.expire(ctx) })
	case <-ctx.Done():
	}
	running.Wait()
	return nil
}

// within is how long one question to the database may take.
const within = 10 * time.Second

// ask does something with the database. An error wraps ErrAway or store.ErrBusy, or is of the
// context, or one of those that are given.
func (i *Inbox) ask(ctx context.Context, what string, do func(context.Context) error, own ...error) error {
	if i.store != nil {
		if err := i.store.Refused(); err != nil {
			return fmt.Errorf("%w: %w: %w", ErrAway, ErrRefused, err)
		}
	}
	select {
	case <-i.ready:
	default:
		return fmt.Errorf("%w: its schema is not ready", ErrAway)
	}
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := do(asking)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, store.ErrBusy):
		return err
	}
	for _, known := range own {
		if errors.Is(err, known) {
			return err
		}
	}
	i.metrics.failed.WithLabelValues(string(store.CauseOf(err))).Inc()
	return fmt.Errorf("%w: %s: %w", ErrAway, what, err)
}
