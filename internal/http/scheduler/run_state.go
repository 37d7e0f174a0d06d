package scheduler

import "sync/atomic"

// RunState says whether a stream, or a group of them, is served, or is idle and waits to be woken.
// The goroutine that serves it owns it. The zero value is served.
type RunState struct{ state atomic.Int32 }

// Its states.
const (
	stateServed int32 = iota // or in the workers' queue
	stateWoken               // and woken since
	stateIdle                // a goroutine that wakes it has to have it served
	stateOver                // nobody wakes it any more
)

// Woken notes that there is something to look at. If it returns true, the caller owns it, and has
// to have it served.
func (a *RunState) Woken() bool {
	for {
		switch state := a.state.Load(); state {
		case stateServed:
			if a.state.CompareAndSwap(state, stateWoken) {
				return false
			}
		case stateIdle:
			if a.Take() {
				return true
			}
		default:
			return false
		}
	}
}

// Take makes the caller the owner, if it was idle.
func (a *RunState) Take() bool { return a.state.CompareAndSwap(stateIdle, stateServed) }

// Idle makes it idle, and is false if it was woken meanwhile. Until it is, its server still owns it.
func (a *RunState) Idle() bool {
	if a.state.CompareAndSwap(stateServed, stateIdle) {
		return true
	}
	a.state.Store(stateServed)
	return false
}

// End makes it one that nobody wakes any more. Its owner calls it.
func (a *RunState) End() { a.state.Store(stateOver) }

// IsIdle reports whether nobody serves it at the moment.
func (a *RunState) IsIdle() bool { return a.state.Load() == stateIdle }
