package eventstream

import "sync/atomic"

// runState says whether a session or a group is served, or idle and waits to be woken. Whoever serves it owns it.
type runState struct{ state atomic.Int32 }

// Its states.
const (
	stateServed int32 = iota // or in the workers' queue
	stateWoken               // and woken since
	stateIdle                // who wakes it arranges that it is served
	stateOver
)

// woken notes that there is something to look at. If it is true, the caller has to arrange that it is served.
func (a *runState) woken() bool {
	for {
		switch state := a.state.Load(); state {
		case stateServed:
			if a.state.CompareAndSwap(state, stateWoken) {
				return false
			}
		case stateIdle:
			if a.take() {
				return true
			}
		default:
			return false
		}
	}
}

// take makes the caller the owner, if it was idle.
func (a *runState) take() bool { return a.state.CompareAndSwap(stateIdle, stateServed) }

// idle makes it idle, and is false if it was woken meanwhile. Until it is, its server still owns it.
func (a *runState) idle() bool {
	if a.state.CompareAndSwap(stateServed, stateIdle) {
		return true
	}
	a.state.Store(stateServed)
	return false
}
