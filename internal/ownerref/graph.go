package ownerref

import (
	"cmp"

	"github.com/tidwall/btree"
)

// maxBelow is how many objects below one are visited: those that have others below them again. What these others say is
// kept in order, so a job of however many pods is one step.
const maxBelow = 10_000

// Graph is objects that say something, and what stands between them and the objects to which they belong. It is for one
// goroutine at a time.
type Graph[V any] struct {
	less  func(a, b V) bool
	nodes map[ID]*node[V]       // by namespace and uid
	below map[ID]*dependents[V] // by what is named as an owner
}

// node is an object.
type node[V any] struct {
	id     ID
	owners []*dependents[V]
	value  V
	says   bool
	twin   *node[V] // another object of the same namespace and uid, which only servers that are not Kubernetes' own have
}

// dependents are the objects that name one owner.
type dependents[V any] struct {
	owner   ID
	count   int
	saying  *btree.BTreeG[*node[V]] // those that say something, in the order of what they say; nil: none
	between *btree.BTreeG[*node[V]] // those that have dependents themselves; nil: none
}

// NewGraph returns an empty Graph, whose order says which of two statements counts: the greater one.
func NewGraph[V any](less func(a, b V) bool) *Graph[V] {
	return &Graph[V]{less: less, nodes: map[ID]*node[V]{}, below: map[ID]*dependents[V]{}}
}

// Get is what was put for an object, and whose it is.
func (g *Graph[V]) Get(id ID) (value V, owners []ID, ok bool) {
	n := g.find(id)
	if n == nil {
		return value, nil, false
	}
	for _, d := range n.owners {
		owners = append(owners, d.owner)
	}
	return n.value, owners, true
}

// Put puts an object, or puts it anew: whose it is, and what it says, if it says anything.
func (g *Graph[V]) Put(id ID, owners []ID, value V, says bool) {
	g.Remove(id)
	n := &node[V]{id: id.Clone(), value: value, says: says, twin: g.nodes[id.label()]}
	g.nodes[n.id.label()] = n
	for _, owner := range owners {
		d := g.below[owner]
		if d == nil {
			d = &dependents[V]{owner: owner.Clone()}
			g.below[d.owner] = d
			g.countBetween(d.owner)
		}
		d.count++
		n.owners = append(n.owners, d)
		if says {
			d.saying = put(d.saying, n, g.bySaid)
		}
	}
	g.place(n)
}

// Replace replaces what an object says by what counts the same.
func (g *Graph[V]) Replace(id ID, value V) {
	if n := g.find(id); n != nil {
		n.value = value
	}
}

// Remove forgets an object.
func (g *Graph[V]) Remove(id ID) {
	n := g.find(id)
	if n == nil {
		return
	}
	for _, d := range n.owners {
		remove(d.saying, n)
		remove(d.between, n)
		if d.count--; d.count == 0 {
			delete(g.below, d.owner)
			g.countBetween(d.owner)
		}
	}
	key := id.label()
	switch first := g.nodes[key]; {
	case first != n:
		for first.twin != n {
			first = first.twin
		}
		first.twin = n.twin
	case n.twin != nil:
		g.nodes[key] = n.twin
	default:
		delete(g.nodes, key)
	}
}

// Each visits all objects.
func (g *Graph[V]) Each(visit func(id ID, value V)) {
	for _, n := range g.nodes {
		for ; n != nil; n = n.twin {
			visit(n.id, n.value)
		}
	}
}

// Above visits what an object belongs to, as far as that is known; see the function Above.
func (g *Graph[V]) Above(id ID, visit func(owner ID)) {
	_, owners, _ := g.Get(id)
	Above(owners, func(owner ID) ([]ID, bool) {
		visit(owner)
		_, owners, _ := g.Get(owner)
		return owners, true
	})
}

// Best is what counts of all that is said below an object; ok is false if nothing is. Steps are what that cost: how many
// objects were looked at.
func (g *Graph[V]) Best(id ID) (best V, ok bool, steps int) {
	seen := map[*dependents[V]]struct{}{}
	level := []ID{id}
	for range MaxHeight {
		var next []ID
		for _, id := range level {
			for _, d := range []*dependents[V]{g.below[id], g.below[id.label()]} {
				if _, before := seen[d]; before || d == nil {
					continue
				}
				if steps++; steps > maxBelow {
					return best, ok, steps
				}
				seen[d] = struct{}{}
				if top, says := most(d.saying); says && (!ok || g.less(best, top.value)) {
					best, ok = top.value, true
				}
				if d.between != nil {
					d.between.Scan(func(n *node[V]) bool {
						next = append(next, n.id)
						return len(next) < maxBelow
					})
				}
			}
		}
		level = next
	}
	return best, ok, steps
}

// find is the object that is named; nil if there is none.
func (g *Graph[V]) find(id ID) *node[V] {
	for n := g.nodes[id.label()]; n != nil; n = n.twin {
		if id.matches(n.id) {
			return n
		}
	}
	return nil
}

// countBetween is called when an owner has come to have dependents, or to have none.
func (g *Graph[V]) countBetween(owner ID) {
	for n := g.nodes[owner.label()]; n != nil; n = n.twin {
		if owner.matches(n.id) {
			g.place(n)
		}
	}
}

// place puts an object among those that stand between, or takes it away there.
func (g *Graph[V]) place(n *node[V]) {
	stands := g.below[n.id] != nil || g.below[n.id.label()] != nil
	for _, d := range n.owners {
		if stands {
			d.between = put(d.between, n, byID)
		} else {
			remove(d.between, n)
		}
	}
}

func (g *Graph[V]) bySaid(a, b *node[V]) bool {
	if g.less(a.value, b.value) || g.less(b.value, a.value) {
		return g.less(a.value, b.value)
	}
	return byID(b, a)
}

func byID[V any](a, b *node[V]) bool {
	return cmp.Or(
		cmp.Compare(a.id.Namespace, b.id.Namespace), cmp.Compare(a.id.UID, b.id.UID), cmp.Compare(a.id.Group, b.id.Group), cmp.Compare(a.id.Kind, b.id.Kind), cmp.Compare(a.id.Name, b.id.Name),
	) < 0
}

func put[V any](tree *btree.BTreeG[*node[V]], n *node[V], less func(a, b *node[V]) bool) *btree.BTreeG[*node[V]] {
	if tree == nil {
		tree = btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
	}
	tree.Set(n)
	return tree
}

func remove[V any](tree *btree.BTreeG[*node[V]], n *node[V]) {
	if tree != nil {
		tree.Delete(n)
	}
}

func most[V any](tree *btree.BTreeG[*node[V]]) (*node[V], bool) {
	if tree == nil {
		return nil, false
	}
	return tree.Max()
}
