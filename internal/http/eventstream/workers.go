package eventstream

import (
	"runtime"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
)

// workers serve the sessions and groups that were woken. There are a few workers for all sessions, since an idle stream has no
// goroutine. A worker never waits for a client. A session that would have to wait gets a goroutine of its own.
//
// Users are served in turn, and a turn ends after a slice of time. So a user whose streams take much time waits behind
// all others, and nobody waits for that user longer than a slice. Where several users have streams, one user's streams
// are served by all workers but one at most. If they had all processors, events would also be read from the network
// late.
//
// One worker does the work alone as long as it needs no longer than helpAfter; only then do the others help. If all of
// them worked at once, they would take the processors from everything else, which is faster only where many streams are
// woken. A worker in a long turn does not count as the one at work: others would wait until its turn ends.
type workers struct {
	helpAfter time.Duration

	mu     sync.Mutex
	more   sync.Cond
	lines  map[string]*line // the lines of users who have streams
	first  *line            // the lines that wait to be served, in this order
	last   *line
	since  time.Time // since when there are lines that wait
	total  int       // workers
	long   int       // workers that serve a line whose last turn took a whole slice
	asleep int       // workers that sleep and were not called
	closed bool
}

// servable is what the workers serve: a session or a group.
type servable interface {
	// work serves it for a worker, whose task it may use meanwhile. It reports whether that took a whole slice.
	work(task *budget.Task) (long bool)
	place() *waiting
}

// waiting is where one waits to be served.
type waiting struct {
	line *line
	next servable // behind this one in the line
}

func (w *waiting) place() *waiting { return w }

// line holds the sessions of one user that were woken, in this order, and groups that are served in this user's turn.
type line struct {
	user        string
	streams     int
	served      int  // how many workers serve it at the moment
	long        bool // its last turn took a whole slice
	listed      bool // it is among the lines that wait
	first, last servable
	next        *line
}

// helpAfter is how long one worker works alone. By default, events are gathered for as long. One worker serves some five
// hundred streams in this time.
const helpAfter = 5 * time.Millisecond

func newWorkers() *workers {
	w := &workers{helpAfter: helpAfter, lines: map[string]*line{}}
	w.more.L = &w.mu
	return w
}

// join returns the line of a user who has one more stream.
func (w *workers) join(user string) *line {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lines[user]
	if l == nil {
		l = &line{user: user}
		w.lines[user] = l
	}
	l.streams++
	return l
}

// leave records that a stream has ended. It is in no line then.
func (w *workers) leave(l *line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.streams--; l.streams == 0 {
		delete(w.lines, l.user)
	}
}

// push arranges for one to be served. The caller must not touch it any more.
func (w *workers) push(s servable) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wait(s)
}

// pushAmong does the same for one that is served for several users: it waits in the first of their lines in which nobody does.
func (w *workers) pushAmong(s servable, lines []*line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := lines[0]
	for _, l := range lines {
		if l.first == nil && l.served == 0 {
			at = l
			break
		}
	}
	s.place().line = at
	w.wait(s)
}

// wait puts one at the end of its line. The lock is held.
func (w *workers) wait(s servable) {
	if w.first == nil {
		w.since = time.Now()
	}
	l := s.place().line
	if l.first != nil {
		l.last.place().next, l.last = s, s
	} else {
		l.first, l.last = s, s
		if w.allows(l) {
			w.append(l)
		}
	}
	w.call()
}

// allows reports whether one more worker may serve a line.
func (w *workers) allows(l *line) bool {
	return l.served == 0 || l.served < w.total-1 || len(w.lines) == 1
}

// shared reports whether several users have streams.
func (w *workers) shared() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines) > 1
}

// append puts a line behind the others.
func (w *workers) append(l *line) {
	l.listed = true
	if w.first == nil {
		w.first, w.last = l, l
		return
	}
	w.last.next, w.last = l, l
}

// call wakes a worker if no other will soon have time: if all are asleep, in long turns, or late.
func (w *workers) call() {
	if w.asleep > 0 && (w.asleep+w.long >= w.total || time.Since(w.since) > w.helpAfter) {
		w.asleep--
		w.more.Signal()
	}
}

// run is one worker; it ends when the workers are closed and nothing is left to be served.
func (w *workers) run() {
	w.mu.Lock()
	w.total++
	w.mu.Unlock()
	var last *line
	var long bool
	var task budget.Task
	turns := 0 // long turns since this processor last looked around
	for s := w.pop(nil, false); s != nil; s = w.pop(last, long) {
		last = s.place().line // read now, since it belongs to another goroutine once it was served
		if long = s.work(&task); !long {
			continue
		}
		// Goroutines that were woken on this processor wait for this one. And Go looks for what came from the network only
		// on a processor that has nothing else to do, while another one may be collecting garbage.
		if turns++; turns%lookAround == 0 && w.shared() {
			time.Sleep(time.Microsecond)
		} else {
			runtime.Gosched()
		}
	}
}

// lookAround is how many long turns a worker serves before it lets its processor look for what came from the network.
const lookAround = 4

// serves counts one worker more, or less, that serves a line.
func (w *workers) serves(l *line, change int) {
	l.served += change
	if l.long {
		w.long += change
	}
}

// turned notes how long a turn took.
func (w *workers) turned(l *line, long bool) {
	if l.long == long {
		return
	}
	if l.long = long; long {
		w.long += l.served
	} else {
		w.long -= l.served
	}
}

// pop returns who is served next. The worker names the line that it has served last, and whether that turn took a whole
// slice.
func (w *workers) pop(last *line, long bool) servable {
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
	l := w.first
	w.first, l.next, l.listed = l.next, nil, false
	s := l.first
	l.first, s.place().next = s.place().next, nil
	w.serves(l, 1)
	if l.first != nil && w.allows(l) {
		w.append(l)
	}
	if w.first != nil {
		w.call()
	}
	return s
}

func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.asleep = true, 0
	w.more.Broadcast()
}
