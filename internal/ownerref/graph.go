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
	tally   Tally                   // of what is only counted
	saying  *btree.BTreeG[*node[V]] // those that say something, in the order of what they say; nil: none
	between *btree.BTreeG[*node[V]] // those that have dependents themselves; nil: none
	tallied *btree.BTreeG[*node[V]] // those that have dependents, or something that is counted; nil: none
}

// Tally is how many objects belong to another one, and how many of these are stuck.
type Tally struct{ All, Stuck int }

func (t Tally) plus(other Tally) Tally { return Tally{t.All + other.All, t.Stuck + other.Stuck} }

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
		d := g.of(owner)
		if d.count++; d.count == 1 {
			g.placeAll(d.owner)
		}
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
		if n.says { // else it has no place in an order of what is said
			remove(d.saying, n)
		}
		remove(d.between, n)
		remove(d.tallied, n)
		if d.count--; d.count == 0 {
			g.tidy(d)
			g.placeAll(d.owner)
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

// Count adds to what belongs to an owner and is not kept as an object. What was added has to be taken away again.
func (g *Graph[V]) Count(owner ID, by Tally) {
	if by == (Tally{}) {
		return
	}
	d := g.of(owner)
	was := d.tally
	if d.tally = was.plus(by); (was == Tally{}) != (d.tally == Tally{}) {
		g.tidy(d)
		g.placeAll(d.owner)
	}
}

// CountNothing forgets all that was counted.
func (g *Graph[V]) CountNothing() {
	for _, d := range g.below {
		g.Count(d.owner, Tally{-d.tally.All, -d.tally.Stuck})
	}
}

// of are the dependents of an owner, which are few or none until something is added.
func (g *Graph[V]) of(owner ID) *dependents[V] {
	d := g.below[owner]
	if d == nil {
		d = &dependents[V]{owner: owner.Clone()}
		g.below[d.owner] = d
	}
	return d
}

// tidy forgets dependents if there are none.
func (g *Graph[V]) tidy(d *dependents[V]) {
	if d.count == 0 && d.tally == (Tally{}) {
		delete(g.below, d.owner)
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

// Best is what counts of all that is said below an object; ok is false if nothing is. Steps are
// what that cost: how many objects were looked at.
func (g *Graph[V]) Best(id ID) (best V, ok bool, steps int) {
	steps = g.walk(id, func(d *dependents[V]) *btree.BTreeG[*node[V]] {
		if top, says := most(d.saying); says && (!ok || g.less(best, top.value)) {
			best, ok = top.value, true
		}
		return d.between
	})
	return best, ok, steps
}

// Said is what counts of what those say that name an object themselves; ok is false if nothing is
// said. Unlike Best it costs the same whatever is below.
func (g *Graph[V]) Said(id ID) (best V, ok bool) {
	for _, d := range []*dependents[V]{g.below[id], g.below[id.label()]} {
		if d == nil {
			continue
		}
		if top, says := most(d.saying); says && (!ok || g.less(best, top.value)) {
			best, ok = top.value, true
		}
	}
	return best, ok
}

// LeastSaid is what counts least of what those say that name an object themselves; ok is false if nothing is said. It costs as
// much as Said.
func (g *Graph[V]) LeastSaid(id ID) (least V, ok bool) {
	for _, d := range []*dependents[V]{g.below[id], g.below[id.label()]} {
		if d == nil || d.saying == nil {
			continue
		}
		if bottom, says := d.saying.Min(); says && (!ok || g.less(bottom.value, least)) {
			least, ok = bottom.value, true
		}
	}
	return least, ok
}

// Sum is all that was counted below an object. Steps are as Best's.
func (g *Graph[V]) Sum(id ID) (sum Tally, steps int) {
	steps = g.walk(id, func(d *dependents[V]) *btree.BTreeG[*node[V]] {
		sum = sum.plus(d.tally)
		return d.tallied
	})
	return sum, steps
}

// walk visits the dependents of an object, and of those of them to which the visit leads.
func (g *Graph[V]) walk(id ID, visit func(*dependents[V]) *btree.BTreeG[*node[V]]) (steps int) {
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
					return steps
				}
				seen[d] = struct{}{}
				if further := visit(d); further != nil {
					further.Scan(func(n *node[V]) bool {
						next = append(next, n.id)
						return len(next) < maxBelow
					})
				}
			}
		}
		level = next
	}
	return steps
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

// placeAll is called when an owner has come to have dependents, or what is counted, or to have none.
func (g *Graph[V]) placeAll(owner ID) {
	for n := g.nodes[owner.label()]; n != nil; n = n.twin {
		if owner.matches(n.id) {
			g.place(n)
		}
	}
}

// place puts an object among those that stand between, or takes it away there.
func (g *Graph[V]) place(n *node[V]) {
	stands, counts := false, false
	for _, d := range []*dependents[V]{g.below[n.id], g.below[n.id.label()]} {
		if d != nil {
			stands, counts = stands || d.count > 0, true
		}
	}
	for _, d := range n.owners {
		d.between = placed(d.between, n, stands)
		d.tallied = placed(d.tallied, n, counts)
	}
}

// placed is a tree with a node, or without it.
func placed[V any](tree *btree.BTreeG[*node[V]], n *node[V], in bool) *btree.BTreeG[*node[V]] {
	if in {
		return put(tree, n, byID)
	}
	remove(tree, n)
	return tree
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
