package cache

import (
	"maps"
	"slices"
	"sync"

	"github.com/tidwall/btree"

	"github.com/kubecast/kubecast/internal/cluster"
)

// load fills an empty state; it sorts objects in place. To put them in one by one in another order would search each
// tree anew for each object, mostly in memory that is not in the processor's cache. In the trees' own order, the next
// place is beside the last.
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

// load fills an empty index with what each adds. For one value, the objects must be added in the order of objects.
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

// grow fills an empty tree with sorted items. A tree that only grows at its end splits each full node, and leaves
// half of it empty for ever. So every other item comes first, and the rest then fill the free halves.
func grow[T any](tree *btree.BTreeG[T], items []T) {
	for i := 1; i < len(items); i += 2 {
		tree.Load(items[i])
	}
	var hint btree.PathHint
	for i := 0; i < len(items); i += 2 {
		tree.SetHint(items[i], &hint)
	}
}
