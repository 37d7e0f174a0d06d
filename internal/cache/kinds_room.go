package cache

import (
	"github.com/kubecast/kubecast/internal/cluster"
)

// SetAtMost changes Options.AtMost. Kinds beyond it stay until they are idle.
func (k *Kinds) SetAtMost(kinds int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opts.AtMost = kinds
}

// makeRoom makes room for one more store for a user, if need be by stopping an idle one. The caller holds the lock.
// The error is ErrTooManyKinds.
//
// A user may take one more kind while more kinds are free than the user alone has in use. So one user gets at most
// half of all, two users get a third each, and the next user always finds some left. A kind with several users counts
// for none of them. The gateway itself is not limited.
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
		case user != "": // none is idle but those that have not been started yet
			return ErrTooManyKinds
		}
	}
	return nil
}

// mostIdle is the store to stop first: the one that has been idle longest, of the user who used most of the idle ones
// last. So a user who reads one kind after the other stops their own kinds, not those of others.
func (k *Kinds) mostIdle() (found cluster.Kind, _ *running) {
	idle := map[string]int{} // by the user who used it last
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
