package logs

import (
	"context"
	"sync"
)

// catchUp reads what a ring does not hold, for one reader, and no faster than that reads.
type catchUp struct {
	follower follower
	cancel   context.CancelFunc
	uncount  func() // counts its connection no more; the lock of the Feeds is held

	mu      sync.Mutex
	lines   []*Line
	bytes   int // that these take
	settled bool
	failing error
	err     error
	waiter  Waiter
	room    chan struct{} // holds a token once lines were taken
}

// catchUpBytes is how much may wait for its reader; one batch is more than that.
const catchUpBytes = 256 << 10

func newCatchUp() *catchUp { return &catchUp{room: make(chan struct{}, 1)} }

// tell implements sink. It waits for the reader.
func (p *catchUp) tell(ctx context.Context, lines []*Line) {
	p.change(func() {
		p.lines = append(p.lines, lines...)
		for _, line := range lines {
			p.bytes += line.size()
		}
	})
	for p.isFull() {
		select {
		case <-p.room:
		case <-ctx.Done():
			return
		}
	}
}

func (p *catchUp) isFull() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines) > batchLines || p.bytes > catchUpBytes
}

func (p *catchUp) start() {}

func (p *catchUp) settle() { p.change(func() { p.settled = true }) }

func (p *catchUp) trouble(err error) {
	p.mu.Lock()
	changed := (p.failing == nil) != (err == nil)
	p.failing = err
	p.mu.Unlock()
	if changed {
		p.change(func() {}) // its reader may have to say so
	}
}

func (p *catchUp) finish(err error) { p.change(func() { p.settled, p.err = true, err }) }

func (p *catchUp) change(do func()) {
	p.mu.Lock()
	do()
	w := p.waiter
	p.waiter = nil
	p.mu.Unlock()
	if w != nil {
		w.Wake()
	}
}

// take appends lines to batch, up to its capacity. If there are none, the waiter is woken once
// there are; an error says that there will not be.
func (p *catchUp) take(batch []*Line, w Waiter) ([]*Line, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.lines), cap(batch)-len(batch))
	batch = append(batch, p.lines[:n]...)
	for _, line := range p.lines[:n] {
		p.bytes -= line.size()
	}
	clear(p.lines[:n])
	p.lines = p.lines[n:]
	if n > 0 {
		select {
		case p.room <- struct{}{}:
		default:
		}
		return batch, nil
	}
	if p.err == nil {
		p.waiter = w
	}
	return batch, p.err
}

// hasSettled reports whether what was there has been taken.
func (p *catchUp) hasSettled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settled && len(p.lines) == 0
}
