package cache

import (
	"maps"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// apply brings the state up to an object, and appends what that changes: nothing if it is known, a deletion and an
// addition if it is another one of the same name.
func (s state) apply(o *cluster.Object, changes []change) []change {
	old := s.get(o.GetNamespace(), o.GetName())
	switch {
	case old == nil:
		changes = append(changes, change{Type: stream.Added, Object: o})
	case old.UID() != o.UID():
		changes = append(changes,
			change{Type: stream.Deleted, Object: old.WithVersion(o.Version()), Old: old},
			change{Type: stream.Added, Object: o})
	case old.Version() == o.Version():
		return changes
	default:
		changes = append(changes, change{Type: stream.Modified, Object: o, Old: old})
	}
	s.put(o)
	return changes
}

// differ brings the state up to what a list at a version brought, by key, and returns what that changes.
func (s state) differ(pending map[string]*cluster.Object, version uint64) (changes []change) {
	for _, key := range slices.Sorted(maps.Keys(pending)) { // in their order, which is that of the trees
		if o := pending[key]; o != nil {
			changes = s.apply(o, changes)
		} else if old := s.find(key); old != nil {
			s.remove(old)
			changes = append(changes, change{Type: stream.Deleted, Object: old.WithVersion(version), Old: old})
		}
	}
	return changes
}

// amend brings the state up to what has other content than it had at the same version, and appends what that changes.
// client-go does not notify of it, since it compares versions only. An API server that was upgraded writes objects with
// fields that it did not have before; and one that was restored gives versions a second time.
func (s state) amend(listed []any, changes []change) []change {
	for _, item := range listed {
		o := item.(*cluster.Object)
		old := s.get(o.GetNamespace(), o.GetName())
		if old != nil && old != o && old.Version() == o.Version() && old.JSON() != o.JSON() {
			s.put(o)
			changes = append(changes, change{Type: stream.Modified, Object: o, Old: old})
		}
	}
	return changes
}

// rewritten reports whether a list found what contradicts a history that was seen completely up to a version: a
// state from before it that was not there then. (A deletion has no version of its own.)
func rewritten(c change, seen uint64) bool {
	return c.Type != stream.Deleted && c.Object.Version() <= seen
}

// inHistory orders what a list found: what is gone first, then by version, which is the order in which it happened.
func inHistory(a, b change) int {
	if gone := b.Type == stream.Deleted; gone != (a.Type == stream.Deleted) {
		if gone {
			return 1
		}
		return -1
	}
	switch va, vb := a.Object.Version(), b.Object.Version(); {
	case va < vb:
		return -1
	case va > vb:
		return 1
	}
	return 0
}

// find looks an object up by the key that cluster.Object.Key makes.
func (s state) find(key string) *cluster.Object {
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		namespace, name = "", key
	}
	return s.get(namespace, name)
}
