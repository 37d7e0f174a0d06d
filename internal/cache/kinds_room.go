package cache

import (
	"github.com/kubecast/kubecast/internal/cluster"
)

// makeRoom lets one more store be started for a user, if need be by stopping one that is idle. The lock is held.
//
// A user may take a kind as long as more are free than are in use by them alone: so one user has at most half of all, two have
// a third each, and whoever comes next finds some left. What several use is on nobody's account, nor is what the gateway itself
// keeps.
func (k *Kinds) makeRoom(user string) error {
	if k.opts.AtMost == 0 {
		return nil
	}
	inUse, alone := 0, map[string]int{}
	for _, r := range k.stores {
		if len(r.users) > 0 {
			inUse++
		}
		if len(r.users) == 1 {
			for only := range r.users {
				alone[only]++
			}
		}
	}
	if user != "" && alone[user] >= k.opts.AtMost-inUse {
		return ErrTooManyKinds
	}
	if len(k.stores) >= k.opts.AtMost {
		kind, r := k.mostIdle()
		switch {
		case r != nil:
			k.stopOne(kind, r)
		case user != "": // those that are idle have not been started yet
			return ErrTooManyKinds
		}
	}
	return nil
}

// mostIdle is the store to be stopped first: of those who used most of what is idle, what was not used for longest. So who
// reads one kind after the other stops their own.
func (k *Kinds) mostIdle() (found cluster.Kind, _ *running) {
	idle := map[string]int{} // by who used it last
	for _, r := range k.stores {
		if len(r.users) == 0 {
			idle[r.last]++
		}
	}
	var first *running
	for kind, r := range k.stores {
		if len(r.users) > 0 || r.stop == nil {
			continue
		}
		if first == nil || idle[r.last] > idle[first.last] || idle[r.last] == idle[first.last] && r.idle.Before(first.idle) {
			found, first = kind, r
		}
	}
	return found, first
}
