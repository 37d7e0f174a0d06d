package cache

import (
	"maps"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// apply brings an object into the state, and appends the changes that this makes. An object that is known at this
// version changes nothing. One that replaces another of the same name, as the uid shows, is a deletion and an
// addition.
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

// differ brings the content of a list into the state, and returns the changes that this makes. A nil object in
// pending is one that the list lacks.
func (s state) differ(pending map[string]*cluster.Object, version uint64) (changes []change) {
	for _, key := range slices.Sorted(maps.Keys(pending)) { // in the trees' order
		if o := pending[key]; o != nil {
			changes = s.apply(o, changes)
		} else if old := s.find(key); old != nil {
			s.remove(old)
			changes = append(changes, change{Type: stream.Deleted, Object: old.WithVersion(version), Old: old})
		}
	}
	return changes
}

// amend brings into the state the objects whose content differs from the state's at the same version, and appends
// these changes. client-go does not notify of them, since it compares only versions. Two things make them: an API
// server that was upgraded writes objects with new fields, and one whose etcd was restored uses versions a second
// time.
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

// rewritten reports whether a change that a list found contradicts a history that was seen completely up to a
// version: the object claims to be from that time, but it was not there then. A deletion contradicts nothing, since a
// list gives it no version.
func rewritten(c change, seen uint64) bool {
	return c.Type != stream.Deleted && c.Object.Version() <= seen
}

// inHistory orders the changes that a list found: deletions come first, then the others by version, in which order
// they happened.
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
