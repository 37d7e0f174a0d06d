package eventstream

import (
	"runtime"
	"sync"
	"time"
)

// workers serve the sessions that were woken, a few for all of them: an idle stream has no goroutine. A worker never
// waits for a client; a session that would have to is given a goroutine of its own.
//
// They are served by user, in turn, and a turn ends after a slice of time: whose streams take much wait behind everybody
// else's, and nobody waits for them longer than that. Where there are streams of others, one worker is left to them: with all
// processors taken it would also be later that their events are read at all.
//
// One worker does the work as long as that takes no longer than patience; only then do the others help. To have all of
// them at it at once takes the processors from everybody else, and is sooner done only where many streams are woken. A
// worker that serves somebody who always has more to be told does not count for that: others would wait for its turn's end.
type workers struct {
	patience time.Duration

	mu     sync.Mutex
	more   sync.Cond
	lines  map[string]*line // of users who have streams
	first  *line            // of those who wait to be served, in the order in which they will
	last   *line
	since  time.Time // there have been some
	total  int       // workers
	long   int       // of them, those who serve lines that are long
	asleep int       // of them, and not called
	closed bool
}

// line is the sessions of one user that were woken, in their order.
type line struct {
	user        string
	streams     int
	served      int  // by so many workers at the moment
	long        bool // what was told last took a whole turn
	listed      bool // among those who wait
	first, last *session
	next        *line
}

// helpAfter is the patience of the workers: as long as events are gathered by default, and as it takes one of them to
// serve some five hundred streams.
const helpAfter = 5 * time.Millisecond

func newWorkers() *workers {
	w := &workers{patience: helpAfter, lines: map[string]*line{}}
	w.more.L = &w.mu
	return w
}

// join gives the line of a user who has one more stream.
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

// leave says that a stream has ended, which is in no line then.
func (w *workers) leave(l *line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.streams--; l.streams == 0 {
		delete(w.lines, l.user)
	}
}

// push has a session served, which the caller must not touch any more.
func (w *workers) push(ss *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil {
		w.since = time.Now()
	}
	l := ss.line
	if l.first != nil {
		l.last.next, l.last = ss, ss
	} else {
		l.first, l.last = ss, ss
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

// call wakes a worker if nobody else will come to it soon: all are asleep, or within long turns, or late.
func (w *workers) call() {
	if w.asleep > 0 && (w.asleep+w.long >= w.total || time.Since(w.since) > w.patience) {
		w.asleep--
		w.more.Signal()
	}
}

// run is one worker; it ends when the workers are closed and nothing is left to be served.
func (w *workers) run() {
	w.mu.Lock()
	w.total++
	w.mu.Unlock()
	var served *line
	var long bool
	turns := 0 // long ones, since others were let run
	for ss := w.pop(nil, false); ss != nil; ss = w.pop(served, long) {
		served = ss.line // it is another's once it is served
		if long = ss.work(); !long {
			continue
		}
		// What was woken on this processor meanwhile waits for it; and only a processor with nothing to do looks for what
		// came from the network, while another may be collecting garbage.
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

// pop is who is served next, by a worker that has served a line until now, in a turn that took a whole slice or not.
func (w *workers) pop(served *line, long bool) *session {
	w.mu.Lock()
	defer w.mu.Unlock()
	if served != nil {
		w.serves(served, -1)
		w.turned(served, long)
		if served.first != nil && !served.listed && w.allows(served) {
			w.append(served)
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
	ss := l.first
	l.first, ss.next = ss.next, nil
	w.serves(l, 1)
	if l.first != nil && w.allows(l) {
		w.append(l)
	}
	if w.first != nil {
		w.call()
	}
	return ss
}

func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.asleep = true, 0
	w.more.Broadcast()
}
