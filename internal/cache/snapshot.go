package cache

import (
	"iter"
	"slices"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// Snapshot is a store's content at one version. It never changes, holds no lock, and may be read concurrently.
type Snapshot struct {
	// Head is where the topic stood: a cursor that begins there is told all that this snapshot lacks.
	Head     stream.Head
	state    state
	holds    int64 // bytes, and what had been replaced by then; see turnover
	replaced int64
}

// Version is the version up to which the snapshot contains every change.
func (s *Snapshot) Version() uint64 { return s.Head.Version }

// Len is the number of objects.
func (s *Snapshot) Len() int { return s.state.objects.Len() }

// Get finds an object, or nil.
func (s *Snapshot) Get(namespace, name string) *cluster.Object { return s.state.get(namespace, name) }

// List is the objects of the scope that a selector selects, in the order of Kubernetes' lists, after the key
// (namespace and name) of the last one of the page before; "" and "" for the first page.
//
// An index is used where the selector asks for one label pair, or for one value of an indexed path.
func (s *Snapshot) List(scope stream.Scope, selector Selector, afterNamespace, afterName string) iter.Seq[*cluster.Object] {
	return func(yield func(*cluster.Object) bool) {
		namespaces := scope.Namespaces()
		if scope.All() {
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

// walk visits in order, from one key on, all objects, or those that have a value in an index.
func (s *Snapshot) walk(index *index, value string, from *cluster.Object, visit func(*cluster.Object) bool) {
	if index == nil {
		s.state.objects.Ascend(from, visit)
		return
	}
	index.tree.Ascend(entry{value, from}, func(e entry) bool {
		return e.value == value && visit(e.object)
	})
}

// indexFor chooses an index and the value to look up in it, and says what is left to be checked of what it finds. The
// index is nil if none fits.
func (s *Snapshot) indexFor(selector Selector) (_ *index, value string, rest Selector) {
	for i, f := range selector.fields {
		for _, p := range s.state.paths {
			if !f.not && p.path == f.path {
				rest = selector
				rest.fields = slices.Concat(selector.fields[:i], selector.fields[i+1:])
				rest.tree = newTerms(rest.fields)
				return p, f.value, rest
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
