package cache

import (
	"iter"
	"slices"
	"unsafe"

	"github.com/tidwall/btree"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Ranking is the beginning of an order, and how many objects the order has in all. It stays right while objects come,
// change and go: each costs O(log n), and so does finding what stands at a place. Nobody looks at the places behind the
// first thousands, and to keep all of a million objects in each of the orders that people ask for would take more memory
// than the objects do. It is for one goroutine; a copy never changes and may be read concurrently.
//
// These hold:
//
//  1. If last is nil, all objects are held. Else exactly those are held that do not stand behind it.
//  2. beyond is the number of objects that are not held.
type Ranking struct {
	order  Order
	keep   int
	byName *btree.BTreeG[*sortEntry]
	ranked *btree.BTreeG[*sortEntry] // the same as byName in the order of Kubernetes' lists
	last   *sortEntry
	beyond int
}

// heldAtFirst and heldAtMost say how many objects are held of an order that has more, in terms of how many are to be
// kept. So as many as are kept may leave before it has to be looked for what follows them.
const (
	heldAtFirst = 2
	heldAtMost  = 4
)

// Ranking puts objects, which come in the order of Kubernetes' lists, in order. It is to keep the first so many of them, at
// least 1. It calls step as Sort does.
func (o Order) Ranking(objects iter.Seq[*cluster.Object], keep int, step func(bytes int) bool) *Ranking {
	r := &Ranking{order: o, keep: max(keep, 1), byName: btree.NewBTreeGOptions(func(a, b *sortEntry) bool { return lessObject(a.object, b.object) }, treeOptions)}
	first := r.first(objects, step)
	entries := make([]*sortEntry, len(first))
	for i, e := range first {
		entries[i] = &e // each by itself: together, one that stays would keep all
	}
	if r.ranked = r.byName; len(o.terms) > 0 {
		r.ranked = btree.NewBTreeGOptions(func(a, b *sortEntry) bool { return o.compareEntries(*a, *b) < 0 }, treeOptions)
		for _, e := range entries {
			r.ranked.Load(e)
		}
	}
	for _, e := range entries {
		r.byName.Set(e)
	}
	return r
}

// first finds the objects that are held, in order, and counts the others.
func (r *Ranking) first(objects iter.Seq[*cluster.Object], step func(bytes int) bool) (held []sortEntry) {
	more := true
	found := make([]SortValue, len(r.order.terms))
	for object := range objects {
		if more = step == nil || step(object.Size()); !more {
			break
		}
		r.order.read(found, object)
		e := sortEntry{found, object}
		if r.isBeyond(e) {
			r.beyond++
			continue
		}
		e.values = slices.Clone(found)
		if held = append(held, e); len(held) > heldAtMost*r.keep {
			r.order.sort(held, step)
			left := heldAtFirst * r.keep
			r.beyond += len(held) - left
			clear(held[left:])
			held = held[:left]
			r.ends(held[left-1])
		}
	}
	if more {
		r.order.sort(held, step)
	}
	return held
}

func (r *Ranking) isBeyond(e sortEntry) bool {
	return r.last != nil && r.order.compareEntries(e, *r.last) > 0
}

// ends makes an entry the last of those that are held.
func (r *Ranking) ends(e sortEntry) {
	// Its object may go, and is not needed.
	r.last = &sortEntry{e.values, cluster.Probe(e.object.GetNamespace(), e.object.GetName())}
}

// Put adds an object, or replaces the one of its name. If not all objects are held, it has to be told whether there was one.
func (r *Ranking) Put(o *cluster.Object, was bool) {
	e := &sortEntry{values: r.order.values(o), object: o}
	if r.isBeyond(*e) {
		if r.take(e) || !was {
			r.beyond++
		}
		return
	}
	old, replaced := r.byName.Set(e)
	if !replaced && was && r.last != nil {
		r.leftBeyond()
	}
	if r.ranked != r.byName {
		if replaced && r.order.compareValues(old.values, e.values) != 0 {
			r.ranked.Delete(old)
		}
		r.ranked.Set(e)
	}
	if r.ranked.Len() > heldAtMost*r.keep {
		r.shorten()
	}
}

// shorten holds fewer objects.
func (r *Ranking) shorten() {
	for r.ranked.Len() > heldAtFirst*r.keep {
		e, _ := r.ranked.PopMax()
		if r.ranked != r.byName {
			r.byName.Delete(e)
		}
		r.beyond++
	}
	e, _ := r.ranked.Max()
	r.ends(*e)
}

// Remove takes out the object of the name of another one, and reports whether there was one. If not all objects are held, it
// has to be told.
func (r *Ranking) Remove(o *cluster.Object, was bool) bool {
	if r.take(&sortEntry{object: o}) {
		return true
	}
	if was && r.last != nil {
		r.leftBeyond()
		return true
	}
	return false
}

// take takes out what is held by the name of an entry.
func (r *Ranking) take(e *sortEntry) bool {
	old, found := r.byName.Delete(e)
	if found && r.ranked != r.byName {
		r.ranked.Delete(old)
	}
	return found
}

// leftBeyond counts one less of those that are not held.
func (r *Ranking) leftBeyond() {
	if r.beyond--; r.beyond == 0 {
		r.last = nil
	}
}

// HoldsAll reports whether all objects are held.
func (r *Ranking) HoldsAll() bool { return r.last == nil }

// Holds reports whether it is known what stands on the first so many places.
func (r *Ranking) Holds(places int) bool { return r.last == nil || r.ranked.Len() >= places }

// Get finds an object that is held, or nil.
func (r *Ranking) Get(namespace, name string) *cluster.Object {
	if e, found := r.byName.Get(&sortEntry{object: cluster.Probe(namespace, name)}); found {
		return e.object
	}
	return nil
}

// Len is the number of objects, of which not all need be held.
func (r *Ranking) Len() int { return r.ranked.Len() + r.beyond }

// Window appends the objects that stand on so many places from one on, of those that are held.
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
	c := *r
	c.byName = r.byName.Copy()
	if c.ranked = c.byName; r.ranked != r.byName {
		c.ranked = r.ranked.Copy()
	}
	return &c
}

// Sorted is a copy of which all objects are held as a list.
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
