package cache

import (
	"iter"
	"unsafe"

	"github.com/tidwall/btree"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Ranking is objects in an order, kept in it while objects come, change and go: each costs O(log n), and so does
// finding what stands at a place. It is for one goroutine; a copy never changes and may be read concurrently.
type Ranking struct {
	order  Order
	byName *btree.BTreeG[*sortEntry]
	ranked *btree.BTreeG[*sortEntry] // the same as byName in the order of Kubernetes' lists
}

// Ranking puts objects, which come in the order of Kubernetes' lists, in order. It calls step as Sort does.
func (o Order) Ranking(objects iter.Seq[*cluster.Object], step func(bytes int) bool) *Ranking {
	r := &Ranking{order: o, byName: btree.NewBTreeGOptions(func(a, b *sortEntry) bool { return lessObject(a.object, b.object) }, treeOptions)}
	sorted := o.Sort(func(yield func(*cluster.Object) bool) { objects(yield) }, step)
	entries := make([]*sortEntry, len(sorted.entries))
	for i := range sorted.entries {
		e := sorted.entries[i] // each by itself: together, one that stays would keep all
		entries[i] = &e
	}
	if r.ranked = r.byName; len(o.terms) > 0 {
		r.ranked = btree.NewBTreeGOptions(func(a, b *sortEntry) bool {
			return o.compare(*a, b.values, b.object.GetNamespace(), b.object.GetName()) < 0
		}, treeOptions)
		for _, e := range entries {
			r.ranked.Load(e)
		}
	}
	for _, e := range entries {
		r.byName.Set(e)
	}
	return r
}

// Put adds an object, or replaces the one of its name.
func (r *Ranking) Put(o *cluster.Object) {
	e := &sortEntry{values: r.order.values(o), object: o}
	old, replaced := r.byName.Set(e)
	if r.ranked == r.byName {
		return
	}
	if replaced && r.order.compareValues(old.values, e.values) != 0 {
		r.ranked.Delete(old)
	}
	r.ranked.Set(e)
}

// Remove takes out the object of the name of another one, and reports whether there was one.
func (r *Ranking) Remove(o *cluster.Object) bool {
	old, found := r.byName.Delete(&sortEntry{object: o})
	if found && r.ranked != r.byName {
		r.ranked.Delete(old)
	}
	return found
}

// Get finds an object, or nil.
func (r *Ranking) Get(namespace, name string) *cluster.Object {
	if e, found := r.byName.Get(&sortEntry{object: cluster.Probe(namespace, name)}); found {
		return e.object
	}
	return nil
}

// Len is the number of objects.
func (r *Ranking) Len() int { return r.ranked.Len() }

// Window appends the objects that stand on so many places from one on.
func (r *Ranking) Window(to []*cluster.Object, offset, places int) []*cluster.Object {
	first, found := r.ranked.GetAt(offset)
	if !found {
		return to
	}
	r.ranked.Ascend(first, func(e *sortEntry) bool {
		to = append(to, e.object)
		places--
		return places > 0
	})
	return to
}

// Copy is the ranking at this moment; it costs the same however many objects there are.
func (r *Ranking) Copy() *Ranking {
	c := &Ranking{order: r.order, byName: r.byName.Copy()}
	if c.ranked = c.byName; r.ranked != r.byName {
		c.ranked = r.ranked.Copy()
	}
	return c
}

// Sorted is a copy as a list.
func (r *Ranking) Sorted() *Sorted { return &Sorted{order: r.order, ranking: r} }

// Size is about how many bytes the ranking occupies beside its objects.
func (r *Ranking) Size() int64 {
	const place = 12 // bytes of a pointer in a tree, whose nodes are not full
	entry := int64(unsafe.Sizeof(sortEntry{})+uintptr(len(r.order.terms))*unsafe.Sizeof(SortValue{})) + place
	if r.ranked != r.byName {
		entry += place
	}
	return int64(r.ranked.Len()) * entry
}
