package cache

import (
	"iter"
	"slices"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// Snapshot is a store's content at one version. It never changes, holds no lock, and may be read concurrently.
type Snapshot struct {
	// Head is where the topic stood: a cursor that begins there reads all that happened after this snapshot.
	Head     stream.Head
	state    state
	revision *revision
	holds    int64 // with replaced: what replacedBytes counted at that moment, in bytes
	replaced int64
}

// Version is the version up to which the snapshot contains every change.
func (s *Snapshot) Version() uint64 { return s.Head.Version }

// Len is the number of objects.
func (s *Snapshot) Len() int { return s.state.objects.Len() }

// Get finds an object, or nil.
func (s *Snapshot) Get(namespace, name string) *cluster.Object { return s.state.get(namespace, name) }

// List returns the objects of the namespaces that a selector selects, in the order of Kubernetes'
// lists. It begins behind afterNamespace and afterName, the key of the last object of the page
// before; both are "" for the first page.
//
// An index is used where the selector asks for one label pair, or for one value of an indexed path.
func (s *Snapshot) List(within stream.NamespaceSet, selector Selector, afterNamespace, afterName string) iter.Seq[*cluster.Object] {
	return func(yield func(*cluster.Object) bool) {
		namespaces := within.Namespaces()
		if within.All() {
			namespaces = []string{""}
		}
		index, value, rest := s.indexFor(selector)
		for _, namespace := range namespaces {
			from := cluster.Probe(namespace, "")
			if after := cluster.Probe(afterNamespace, afterName); afterName != "" && lessObject(from, after) {
				from = after
			}
			more := true
			s.walk(index, value, from, func(o *cluster.Object) bool {
				if namespace != "" && o.GetNamespace() != namespace {
					return false
				}
				if rest.step != nil && !rest.step(rest.Cost(o)) {
					more = false
					return false
				}
				if afterName != "" && o.GetName() == afterName && o.GetNamespace() == afterNamespace || !rest.Matches(o) {
					return true
				}
				more = yield(o)
				return more
			})
			if !more {
				return
			}
		}
	}
}

// walk visits objects in order, from one key on: all of them, or those that have a value in an index.
func (s *Snapshot) walk(index *index, value string, from *cluster.Object, visit func(*cluster.Object) bool) {
	if index == nil {
		s.state.objects.Ascend(from, visit)
		return
	}
	index.tree.Ascend(entry{value, from}, func(e entry) bool {
		return e.value == value && visit(e.object)
	})
}

// indexFor chooses an index and the value to look up in it, and returns the selector that is left to be checked. The
// index is nil if none fits.
func (s *Snapshot) indexFor(selector Selector) (_ *index, value string, rest Selector) {
	for i, f := range selector.fields {
		for _, p := range s.state.paths {
			if !f.not && f.plain() && p.path == f.path {
				rest = selector
				rest.fields = slices.Concat(selector.fields[:i], selector.fields[i+1:])
				rest.tree = newTerms(rest.fields)
				return p, f.want, rest
			}
		}
	}
	if len(selector.pairs) > 0 {
		rest = selector
		if selector.onePair {
			rest.labels, rest.pairs = nil, nil
		}
		return s.state.labels, selector.pairs[0], rest
	}
	return nil, "", selector
}
