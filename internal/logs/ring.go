package logs

import (
	"context"
	"slices"
	"sync"
	"time"
)

// firstTail is how many lines a feed begins with.
const firstTail = 1000

// feed follows one run for all its readers, and keeps the end of its log in a ring.
type feed struct {
	follower follower
	bound    int // of the ring, in bytes
	told     func(lines []*Line)

	mu      sync.Mutex
	ring    []*Line
	first   uint64 // number of the ring's first line
	next    uint64 // number of the line that comes next
	bytes   int
	whole   bool  // the line with the number 0 is the log's first
	started bool  // what was there has been read, or some of it, and the rest comes slowly
	settled bool  // what was there has been read
	failing error // why the log cannot be read for now
	err     error // io.EOF, ErrGone or ErrUnreadable once no more will come
	waiting map[*Reader]Waiter
	readers int
	beside  int         // of these, those who read on a connection of their own
	idle    *time.Timer // ends it; nil while there are readers
	cancel  context.CancelFunc
}

func (f *feed) tell(_ context.Context, lines []*Line) {
	f.told(lines)
	f.mu.Lock()
	for _, line := range lines {
		f.ring = append(f.ring, line)
		f.bytes += line.size()
		f.next++
	}
	evicted := 0
	for f.bytes > f.bound && evicted < len(f.ring)-1 {
		f.bytes -= f.ring[evicted].size()
		f.ring[evicted] = nil
		evicted++
	}
	f.ring = f.ring[evicted:]
	f.first += uint64(evicted)
	f.wakeAll()
}

func (f *feed) start() {
	f.mu.Lock()
	if f.started {
		f.mu.Unlock()
		return
	}
	f.started, f.whole = true, f.follower.whole
	f.wakeAll()
}

func (f *feed) settle() {
	f.start()
	f.mu.Lock()
	if f.settled {
		f.mu.Unlock()
		return
	}
	f.settled = true
	f.wakeAll()
}

func (f *feed) trouble(err error) {
	f.mu.Lock()
	changed := (f.failing == nil) != (err == nil)
	if f.failing = err; !changed {
		f.mu.Unlock()
		return
	}
	f.wakeAll() // they may have to say so
}

func (f *feed) finish(err error) {
	f.mu.Lock()
	f.started, f.settled, f.whole, f.err = true, true, f.follower.whole, err
	f.wakeAll()
}

// wakeAll wakes those who wait. The lock is held, and given up before.
func (f *feed) wakeAll() {
	var woken []Waiter
	for r, w := range f.waiting {
		woken = append(woken, w)
		delete(f.waiting, r)
	}
	f.mu.Unlock()
	for _, w := range woken {
		w.Wake()
	}
}

// after is the number of the line behind a position; ok is false if that is not to be found in the
// ring. The position of a place at which lines are missing never is: there may be two such places
// within one second, and lines between them. The lock is held.
func (f *feed) after(p LinePosition) (next uint64, ok bool) {
	// Those who come to the ring from behind are near its end.
	for i := len(f.ring) - 1; i >= 0; i-- {
		if f.ring[i].Reset == "" && f.ring[i].After == p {
			return f.first + uint64(i) + 1, true
		}
	}
	return 0, false
}

// from is the number of the first line of a start that names no position; ok is false if the ring
// does not reach so far back. The lock is held.
func (f *feed) from(start Start) (next uint64, ok bool) {
	whole := f.whole && f.first == 0
	next, ok = f.next-min(f.next-f.first, uint64(max(start.Tail, 0))), whole || f.next-f.first >= uint64(max(start.Tail, 0))
	if start.Whole || start.Tail < 0 {
		next, ok = f.first, whole
	}
	if !start.Since.IsZero() {
		since := start.Since.Truncate(time.Second)
		i := slices.IndexFunc(f.ring, func(l *Line) bool { return !l.Time.Before(since) })
		switch {
		case i < 0 && len(f.ring) > 0:
			return f.next, true
		case i > 0 || whole:
			return max(next, f.first+uint64(max(i, 0))), true
		}
		ok = ok && start.Tail >= 0 && !start.Whole // so many later ones are enough
	}
	return next, ok
}
