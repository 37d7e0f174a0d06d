package budget

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// Task is something that takes long, done in slices: after each it gives its turn to whoever waits for one. What is done within
// a moment needs no turn: less than a slice, or who begins much and leaves would never wait. It is for one goroutine.
type Task struct {
	queue *Queue // nil: it has the turn of its caller, and Step says when that is over
	ctx   context.Context
	user  string

	release func() // nil: it has no turn
	spent   int    // since the clock was last looked at
	until   time.Time
	err     error
}

// ErrOver means that the only slice of a task is over.
var ErrOver = errors.New("the slice is over")

const (
	slice     = 2 * time.Millisecond
	moment    = slice / 8
	clockEach = 64 << 10 // bytes that are looked at between two looks at the clock; some 0.1 ms
)

// NewTask makes a task that takes its turns from a queue.
func NewTask(ctx context.Context, queue *Queue, user string) *Task {
	return &Task{queue: queue, ctx: ctx, user: user, until: time.Now().Add(moment)}
}

// Slice makes a task of one slice, after which Step is false.
func Slice() *Task { return &Task{until: time.Now().Add(slice)} }

// Step says that so many bytes have been looked at, or what takes as long, and is called before more are. It may wait for a
// turn. It is false if the task is to be given up: its context has ended, or its only slice.
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
	runtime.Gosched() // who needs no turn is to come to theirs, too
	if t.release, t.err = t.queue.Take(t.ctx, t.user); t.err != nil {
		t.release = nil
		return false
	}
	t.until = time.Now().Add(slice)
	return true
}

// Rest gives the turn back, since the task is over, or about to wait for something.
func (t *Task) Rest() {
	if t.release != nil {
		t.release()
		t.release = nil
		t.until = time.Time{} // more needs another turn
		t.spent = clockEach
	}
}

// Err is why the task was given up.
func (t *Task) Err() error { return t.err }
