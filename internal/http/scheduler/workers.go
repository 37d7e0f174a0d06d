// Package scheduler owns the order in which event streams are served, and the moments at which they are looked at: workers that
// serve what was woken, one run queue for each user (Workers); whether something is served, woken or idle (RunState); and one timer
// for all that is due (Alarm).
//
// It knows nothing of streams or of HTTP. What is served is a Runnable.
package scheduler

import (
	"runtime"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
)

// Workers serve what was woken. An idle stream has no goroutine, so a few workers serve all
// streams. Each user has a run queue.
//
// These must hold:
//
//  1. A worker never waits for a client. What would have to wait gets a goroutine of its own.
//  2. Run queues are served in turn, and a turn ends after a slice of time. So a user whose streams take much time waits behind all
//     others, and nobody waits for that user longer than a slice.
//  3. Where several users have streams, one user's streams are served by all workers but one at most. If they had all processors,
//     events would also be read from the network late.
//  4. One worker does the work alone as long as it needs no longer than helpAfter; only then do the others help. If all of them
//     worked at once, they would take the processors from everything else, which is faster only where many streams are woken. A
//     worker in a long turn does not count as the one at work: others would wait until its turn ends.
type Workers struct {
	helpAfter time.Duration

	mu     sync.Mutex
	more   sync.Cond
	queues map[string]*RunQueue // the run queues of users who have streams
	first  *RunQueue            // the run queues that wait to be served, in this order
	last   *RunQueue
	since  time.Time // since when some run queue waits
	total  int       // workers
	long   int       // workers that serve a run queue whose last turn took a whole slice
	asleep int       // workers that sleep, but for those that were called just now
	closed bool
}

// Runnable is what the workers serve: a stream, or a group of them.
type Runnable interface {
	// Work serves it for a worker, whose task it may use meanwhile. It reports whether that took a whole slice.
	Work(task *budget.Task) (long bool)
	entry() *QueueEntry // Runnables embed one
}

// QueueEntry is a place in a run queue. A Runnable embeds one.
type QueueEntry struct {
	Queue *RunQueue // in which it is served
	next  Runnable  // behind this one
}

func (e *QueueEntry) entry() *QueueEntry { return e }

// RunQueue holds what was woken of one user, in this order: streams, and groups that are served in this user's turn.
type RunQueue struct {
	user        string
	streams     int
	served      int  // how many workers serve it at the moment
	long        bool // its last turn took a whole slice
	listed      bool // it is among those that wait
	first, last Runnable
	next        *RunQueue
}

// helpAfter is how long one worker works alone. By default, events are gathered for as long. One
// worker serves some five hundred streams in this time.
const helpAfter = 5 * time.Millisecond

// NewWorkers returns Workers without any worker: see Run.
func NewWorkers() *Workers {
	w := &Workers{helpAfter: helpAfter, queues: map[string]*RunQueue{}}
	w.more.L = &w.mu
	return w
}

// Join returns the run queue of a user who has one more stream.
func (w *Workers) Join(user string) *RunQueue {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[user]
	if q == nil {
		q = &RunQueue{user: user}
		w.queues[user] = q
	}
	q.streams++
	return q
}

// Leave records that a stream has ended. It is in no run queue then.
func (w *Workers) Leave(q *RunQueue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q.streams--; q.streams == 0 {
		delete(w.queues, q.user)
	}
}

// Push puts a Runnable into its run queue. From then on only the worker that serves it may touch
// it.
func (w *Workers) Push(s Runnable) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wait(s)
}

// PushAmong does the same for a Runnable that is served for several users. It waits in the first of
// their queues that is empty; if none is, in the first of all.
func (w *Workers) PushAmong(s Runnable, queues []*RunQueue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := queues[0]
	for _, q := range queues {
		if q.first == nil && q.served == 0 {
			at = q
			break
		}
	}
	s.entry().Queue = at
	w.wait(s)
}

// wait puts a Runnable at the end of its run queue. The lock is held.
func (w *Workers) wait(s Runnable) {
	if w.first == nil {
		w.since = time.Now()
	}
	q := s.entry().Queue
	if q.first != nil {
		q.last.entry().next, q.last = s, s
	} else {
		q.first, q.last = s, s
		if w.allows(q) {
			w.append(q)
		}
	}
	w.call()
}

// allows reports whether one more worker may serve a run queue.
func (w *Workers) allows(q *RunQueue) bool {
	return q.served == 0 || q.served < w.total-1 || len(w.queues) == 1
}

// Shared reports whether several users have streams.
func (w *Workers) Shared() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queues) > 1
}

// append puts a run queue behind the others.
func (w *Workers) append(q *RunQueue) {
	q.listed = true
	if w.first == nil {
		w.first, w.last = q, q
		return
	}
	w.last.next, w.last = q, q
}

// call wakes a worker if no other will soon have time: if all are asleep, in long turns, or late.
func (w *Workers) call() {
	if w.asleep > 0 && (w.asleep+w.long >= w.total || time.Since(w.since) > w.helpAfter) {
		w.asleep--
		w.more.Signal()
	}
}

// Run is one worker; it ends when the workers are closed and nothing is left to be served.
func (w *Workers) Run() {
	w.mu.Lock()
	w.total++
	w.mu.Unlock()
	var last *RunQueue
	var long bool
	var task budget.Task
	turns := 0 // long turns since this processor last looked around
	for s := w.pop(nil, false); s != nil; s = w.pop(last, long) {
		last = s.entry().Queue // read now, since it belongs to another goroutine once it was served
		if long = s.Work(&task); !long {
			continue
		}
		// Goroutines that were woken on this processor wait for this one. And Go looks for what
		// came from the network only on a processor that has nothing else to do, while another one
		// may be collecting garbage.
		if turns++; turns%lookAround == 0 && w.Shared() {
			time.Sleep(time.Microsecond)
		} else {
			runtime.Gosched()
		}
	}
}

// lookAround is how many long turns a worker serves before it lets its processor look for what came from the network.
const lookAround = 4

// serves counts one worker more, or less, that serves a run queue.
func (w *Workers) serves(q *RunQueue, change int) {
	q.served += change
	if q.long {
		w.long += change
	}
}

// turned notes how long a turn took.
func (w *Workers) turned(q *RunQueue, long bool) {
	if q.long == long {
		return
	}
	if q.long = long; long {
		w.long += q.served
	} else {
		w.long -= q.served
	}
}

// pop returns what is served next. The worker names the run queue that it has served last, and
// whether that turn took a whole slice.
func (w *Workers) pop(last *RunQueue, long bool) Runnable {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last != nil {
		w.serves(last, -1)
		w.turned(last, long)
		if last.first != nil && !last.listed && w.allows(last) {
			w.append(last)
		}
	}
	for w.first == nil {
		if w.closed {
			return nil
		}
		w.asleep++
		w.more.Wait()
	}
	q := w.first
	w.first, q.next, q.listed = q.next, nil, false
	s := q.first
	q.first, s.entry().next = s.entry().next, nil
	w.serves(q, 1)
	if q.first != nil && w.allows(q) {
		w.append(q)
	}
	if w.first != nil {
		w.call()
	}
	return s
}

// Close ends the workers once nothing is left to be served.
func (w *Workers) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.asleep = true, 0
	w.more.Broadcast()
}
