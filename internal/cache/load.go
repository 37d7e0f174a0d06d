package cache

import (
	"maps"
	"slices"
	"sync"

	"github.com/tidwall/btree"

	"github.com/kubecast/kubecast/internal/cluster"
)

// load fills an empty state. To put objects in one by one, in whatever order, means to search each tree for each of them
// in memory that is in no processor cache; in their order, the next place is beside the last one.
func (s state) load(objects []*cluster.Object) {
	slices.SortFunc(objects, compareObjects)
	var loading sync.WaitGroup
	for _, p := range s.paths {
		loading.Go(func() {
			p.load(func(add func(value string, o *cluster.Object)) {
				for _, o := range objects {
					add(fieldValue(o, p.path), o)
				}
			})
		})
	}
	loading.Go(func() {
		s.labels.load(func(add func(value string, o *cluster.Object)) {
			for _, o := range objects {
				o.EachLabel(func(pair string) { add(pair, o) })
			}
		})
	})
	grow(s.objects, objects)
	loading.Wait()
}

// load fills an empty index with what is added, for each value in the order of objects.
func (i *index) load(each func(add func(value string, o *cluster.Object))) {
	places := map[string]int{}
	var byValue [][]entry
	total := 0
	each(func(value string, o *cluster.Object) {
		place, known := places[value]
		if !known {
			place = len(byValue)
			places[value] = place
			byValue = append(byValue, nil)
		}
		byValue[place] = append(byValue[place], entry{value, o})
		total++
	})
	entries := make([]entry, 0, total)
	for _, value := range slices.Sorted(maps.Keys(places)) {
		entries = append(entries, byValue[places[value]]...)
	}
	grow(i.tree, entries)
}

// grow fills an empty tree with what is sorted: first every other item, since a tree that grows at its end splits its nodes
// into halves and does not come back to them, and then those that fill the halves up.
func grow[T any](tree *btree.BTreeG[T], items []T) {
	for i := 1; i < len(items); i += 2 {
		tree.Load(items[i])
	}
	var hint btree.PathHint
	for i := 0; i < len(items); i += 2 {
		tree.SetHint(items[i], &hint)
	}
}
