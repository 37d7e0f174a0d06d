package budget

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Task is long work that is done in time slices: after each, it gives its turn to the next in the
// queue. Work that is done within a free quantum needs no turn. That is much less than a time
// slice. Otherwise a user who begins much work and abandons it would never have to wait. A task is
// for one goroutine.
type Task struct {
	queue *Queue // nil: the task has one time slice, within its caller's turn
	ctx   context.Context
	user  string

	release func() // nil: it has no turn
	spent   int    // bytes since the clock was last read
	until   time.Time
	err     error
}

// ErrOver means that the only time slice of a task has passed.
var ErrOver = errors.New("the time slice is over")

const (
	timeSlice   = time.Millisecond
	freeQuantum = timeSlice / 4
	clockEach   = 64 << 10 // bytes of work between two readings of the clock; some 0.1 ms
)

// NewTask returns a task that takes its turns from a queue.
func NewTask(ctx context.Context, queue *Queue, user string) *Task {
	return &Task{queue: queue, ctx: ctx, user: user, until: time.Now().Add(freeQuantum)}
}

// Slice is a task of one time slice, after which Step returns false. It is a value, so that a
// worker can use one place in memory for all its slices: there may be one for each event and
// client.
func Slice() Task { return Task{until: time.Now().Add(timeSlice)} }

// For makes the turns that the task takes from now on another user's.
func (t *Task) For(user string) { t.user = user }

// Step is called between pieces of the work, with the size of one: the number of bytes looked at, or as many as would
// take the same time. It may wait for a turn. It returns false if the task is to be given up: no turn could be had
// (see Queue.Take), or its only time slice has passed.
func (t *Task) Step(bytes int) bool {
	if t.spent += bytes; t.spent < clockEach {
		return t.err == nil
	}
	t.spent = 0
	now := time.Now()
	if t.err != nil || now.Before(t.until) {
		return t.err == nil
	}
	if t.queue == nil {
		t.err = ErrOver
		return false
	}
	t.Rest()
	runtime.Gosched() // let goroutines run that need no turn
	if t.release, t.err = t.queue.Take(t.ctx, t.user); t.err != nil {
		t.release = nil
		return false
	}
	t.until = time.Now().Add(timeSlice)
	return true
}

// Rest gives the turn back, because the task is done, or about to wait for something.
func (t *Task) Rest() {
	if t.release != nil {
		t.release()
		t.release = nil
		t.until = time.Time{} // more needs another turn
		t.spent = clockEach
	}
}

// Err is why the task was given up; nil if it was not.
func (t *Task) Err() error { return t.err }
