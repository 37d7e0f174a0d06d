package cache

import (
	"cmp"
	"iter"
	"slices"
	"strings"
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
//  3. left has all objects that were there and are not, of those that left since it was emptied last.
type Ranking struct {
	order  Order
	keep   int
	ranked *btree.BTreeG[*sortEntry]
	held   map[*cluster.Object]*sortEntry // nil in a copy
	last   *sortEntry
	beyond int
	left   *btree.BTreeG[cluster.ObjectIdentity]
	forgot int // how often left was emptied
}

func lessIdentity(a, b cluster.ObjectIdentity) bool {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.UID, b.UID)) < 0
}

// mostLeft is how many objects are remembered that have left.
const mostLeft = 4096

// heldAtFirst and heldAtMost say how many objects are held of an order that has more, in terms of how many are to be
// kept. So as many as are kept may leave before it has to be looked for what follows them.
const (
	heldAtFirst = 2
	heldAtMost  = 4
)

// Ranking puts objects, which come in the order of Kubernetes' lists, in order. It is to keep the first so many of them, at
// least 1. It calls step as Sort does.
func (o Order) Ranking(objects iter.Seq[*cluster.Object], keep int, step func(bytes int) bool) *Ranking {
	r := &Ranking{order: o, keep: max(keep, 1), left: btree.NewBTreeGOptions(lessIdentity, treeOptions)}
	r.ranked = btree.NewBTreeGOptions(func(a, b *sortEntry) bool { return o.compareEntries(*a, *b) < 0 }, treeOptions)
	first := r.first(objects, step)
	r.held = make(map[*cluster.Object]*sortEntry, len(first))
	for _, e := range first { // each by itself: together, one that stays would keep all
		r.ranked.Load(&e)
		r.held[e.object] = &e
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

// Change replaces a state of an object by the next one of the same name. Either is nil where there is none, or it is not
// selected. It reports whether there was one, or is one now. The former state must be the same pointer as when it came; if
// all objects are held, it may also be one that was never there.
func (r *Ranking) Change(old, now *cluster.Object) bool {
	before := r.held[old]
	if before != nil {
		delete(r.held, old)
	}
	wasBeyond := before == nil && old != nil && r.last != nil
	var e *sortEntry
	if now != nil {
		e = &sortEntry{values: r.order.values(now), object: now}
	}
	isBeyond := e != nil && r.isBeyond(*e)
	if before != nil && (e == nil || r.order.compareEntries(*before, *e) != 0) {
		r.ranked.Delete(before)
	}
	switch {
	case isBeyond:
		r.beyond++
	case e != nil:
		r.ranked.Set(e)
		r.held[now] = e
	}
	if wasBeyond {
		r.beyond--
	}
	if r.beyond == 0 {
		r.last = nil
	}
	if r.ranked.Len() > heldAtMost*r.keep {
		r.shorten()
	}
	was := before != nil || wasBeyond
	r.remember(old, was, now)
	return was || now != nil
}

// remember notes what has left, and what has come back.
func (r *Ranking) remember(old *cluster.Object, was bool, now *cluster.Object) {
	switch {
	case was && now == nil:
		if r.left.Len() >= mostLeft {
			r.left = btree.NewBTreeGOptions(lessIdentity, treeOptions)
			r.forgot++
		}
		r.left.Set(old.Identity())
	case !was && now != nil && r.left.Len() > 0:
		r.left.Delete(now.Identity())
	}
}

// Left reports whether an object has left that was there once, if it was not forgotten since.
func (r *Ranking) Left(o *cluster.Object) bool {
	_, left := r.left.Get(o.Identity())
	return left
}

// Forgot is how often it was forgotten which objects have left: there may be too many.
func (r *Ranking) Forgot() int { return r.forgot }

// shorten holds fewer objects.
func (r *Ranking) shorten() {
	for r.ranked.Len() > heldAtFirst*r.keep {
		e, _ := r.ranked.PopMax()
		delete(r.held, e.object)
		r.beyond++
	}
	e, _ := r.ranked.Max()
	r.ends(*e)
}

// HoldsAll reports whether all objects are held.
func (r *Ranking) HoldsAll() bool { return r.last == nil }

// Holds reports whether it is known what stands on the first so many places.
func (r *Ranking) Holds(places int) bool { return r.last == nil || r.ranked.Len() >= places }

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

// Copy is the ranking at this moment; it costs the same however many objects there are. It takes no changes.
func (r *Ranking) Copy() *Ranking {
	c := *r
	c.ranked, c.held, c.left = r.ranked.Copy(), nil, r.left.Copy()
	return &c
}

// Sorted is a copy of which all objects are held as a list.
func (r *Ranking) Sorted() *Sorted { return &Sorted{order: r.order, ranking: r} }

// Size is about how many bytes the ranking occupies beside its objects.
func (r *Ranking) Size() int64 {
	const (
		inTree = 12 // bytes of a pointer in a tree, whose nodes are not full
		inMap  = 24 // bytes of two pointers in a map, which is not full
	)
	entry := unsafe.Sizeof(sortEntry{}) + uintptr(len(r.order.terms))*unsafe.Sizeof(SortValue{})
	return int64(r.ranked.Len())*(int64(entry)+inTree+inMap) + int64(r.left.Len())*int64(unsafe.Sizeof(cluster.ObjectIdentity{}))*2
}
