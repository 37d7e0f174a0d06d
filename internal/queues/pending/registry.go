package pending

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// ErrClosed means that the registry's time has ended.
var ErrClosed = errors.New("queues are not followed any more")

// Owned says whose a job is.
type Owned struct{ UID, Namespace, Name, Owner string }

// Queue names what is read: a ClusterQueue of Kueue, or a Queue of Volcano, by its name; the zero Queue the objects of all
// queues, without jobs. A LocalQueue may name its ClusterQueue as it likes, so that no name may stand for something else.
type Queue struct {
	Name    string
	Volcano bool
}

// Options configure a Registry; all are required unless they say otherwise.
type Options struct {
	// Owners looks up whose jobs of a kind (resource[.group]) are, in the turn of a user; nil: that is not known.
	Owners func(ctx context.Context, c *cluster.Cluster, user, kind string, uids []string) ([]Owned, error)
	// Past are the last jobs of some LocalQueues, at most so many; nil: that is not known, and so not when jobs start.
	Past       func(ctx context.Context, c *cluster.Cluster, user string, queues []LocalQueue, most int) ([]Past, error)
	Kinds      []string      // kinds (resource[.group]) that are jobs' besides those that Kueue knows
	Processors *budget.Queue // turns for looking through all Workloads
	None       bool          // no cluster counts as having queues
	Linger     time.Duration // for how long a queue is followed that nobody reads any more
}

// Registry follows queues. Its methods may be called concurrently.
type Registry struct {
	opts Options

	mu      sync.Mutex
	life    context.Context // ends with Run
	stop    context.CancelFunc
	boards  map[*cache.Kinds]*board
	starts  map[startsKey]*starts
	running sync.WaitGroup

	learning *budget.Queue // of who finds out when jobs start: one at a time
}

// New returns a registry that follows nothing.
func New(opts Options) *Registry {
	r := &Registry{opts: opts, boards: map[*cache.Kinds]*board{}, starts: map[startsKey]*starts{}, learning: budget.NewQueue(1, 0, 0)}
	r.life, r.stop = context.WithCancel(context.Background())
	return r
}

// Run ends with its context, and with it all following.
func (r *Registry) Run(ctx context.Context) {
	<-ctx.Done()
	r.mu.Lock()
	r.stop()
	r.mu.Unlock()
	r.running.Wait()
}

// Read returns a reader of a queue. It must be closed. The user who has read the queue for longest pays for what is looked up for it.
func (r *Registry) Read(kinds *cache.Kinds, queue Queue, user string) (*Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() != nil {
		return nil, ErrClosed
	}
	b := r.boards[kinds]
	if b == nil {
		b = newBoard(r, kinds, user)
		r.boards[kinds] = b
		r.running.Go(func() { b.run(b.life) })
	}
	l := b.lines[queue]
	isNew := l == nil
	if isNew {
		l = newLine(b, queue)
	}
	l.joins(user, l.readers == 0)
	if isNew {
		b.add(l)
		r.running.Go(func() { l.run(l.life) })
	}
	l.readers++
	if l.idle != nil {
		l.idle.Stop()
		l.idle = nil
	}
	return &Reader{registry: r, line: l, user: user}, nil
}

// leave counts a reader less.
func (r *Registry) leave(l *line, user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.leaves(user)
	if l.readers--; l.readers > 0 {
		return
	}
	l.idle = time.AfterFunc(r.opts.Linger, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if l.readers == 0 && l.board.remove(l) == 0 {
			l.board.stop()
			if r.boards[l.board.kinds] == l.board { // else it was ended before, and there is another
				delete(r.boards, l.board.kinds)
			}
		}
	})
}

// Reader reads what is known of a queue. It is for one goroutine at a time.
type Reader struct {
	registry  *Registry
	line      *line
	user      string
	uncounted bool // others read in its place
}

// Ready waits until there is a snapshot, or the context has ended.
func (r *Reader) Ready(ctx context.Context) error {
	select {
	case <-r.line.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-r.line.life.Done():
		return ErrClosed
	}
}

// Snapshot is the newest snapshot; nil: there is none yet. If it is the one of a number, the waiter,
// unless it is nil, is woken once there is another.
func (r *Reader) Snapshot(w stream.Waiter, known uint64) (*Snapshot, error) {
	l := r.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil {
		return nil, ErrClosed
	}
	if s := l.snapshot; w != nil && (s == nil || s.Number == known) {
		l.waiting[r] = w
	}
	return l.snapshot, nil
}

// Suspend says that the waiter is to be woken no more, until Snapshot is called again.
func (r *Reader) Suspend() {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	delete(r.line.waiting, r)
}

// Clone returns another reader of the queue, which reads for others, and not longer than they do.
func (r *Reader) Clone() *Reader { return &Reader{registry: r.registry, line: r.line, uncounted: true} }

// Queue is the queue that is read.
func (r *Reader) Queue() Queue { return r.line.queue }

// Identity is equal for readers of the same queue, as long as it is followed.
func (r *Reader) Identity() any { return r.line }

// Kinds are the kinds of the jobs in the newest snapshot. It may be called at any time.
func (r *Reader) Kinds() []cluster.Kind {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.line.snapshot == nil {
		return nil
	}
	return r.line.snapshot.Kinds
}

// Close ends the reading: the waiter is woken no more.
func (r *Reader) Close() {
	r.Suspend()
	if !r.uncounted {
		r.registry.leave(r.line, r.user)
	}
}
