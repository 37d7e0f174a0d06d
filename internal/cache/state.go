package cache

import (
	"strings"

	"github.com/tidwall/btree"

	"github.com/kubecast/kubecast/internal/cluster"
)

// state is what a store knows: its objects in order, and the indexes over them. All are copy-on-write trees, so a
// clone costs little: either side copies a node when it first changes it.
type state struct {
	objects *btree.BTreeG[*cluster.Object]
	labels  *index   // by label pair
	paths   []*index // by the value at a configured path
}

// index is an ordered set of (value, object).
type index struct {
	field string // as configured; "" for labels
	path  string // for gjson
	tree  *btree.BTreeG[entry]
}

// entry is an object with its value in an index. The value is part of the object's JSON wherever possible, so that an
// entry costs 24 bytes and no text of its own.
type entry struct {
	value  string
	object *cluster.Object
}

var treeOptions = btree.Options{NoLocks: true} // the store's lock guards them

func compareObjects(a, b *cluster.Object) int {
	return cluster.Compare(a.GetNamespace(), a.GetName(), b.GetNamespace(), b.GetName())
}

func lessObject(a, b *cluster.Object) bool { return compareObjects(a, b) < 0 }

func lessEntry(a, b entry) bool {
	if c := strings.Compare(a.value, b.value); c != 0 {
		return c < 0
	}
	return lessObject(a.object, b.object)
}

// newState returns an empty state with indexes over the fields. An error names the field that is not a path.
func newState(fields []string) (state, error) {
	s := state{
		objects: btree.NewBTreeGOptions(lessObject, treeOptions),
		labels:  &index{tree: btree.NewBTreeGOptions(lessEntry, treeOptions)},
	}
	for _, field := range fields {
		path, err := fieldPath(field)
		if err != nil {
			return state{}, err
		}
		s.paths = append(s.paths, &index{field: field, path: path, tree: btree.NewBTreeGOptions(lessEntry, treeOptions)})
	}
	return s, nil
}

func (s state) clone() state {
	c := state{objects: s.objects.Copy(), labels: s.labels.clone(), paths: make([]*index, len(s.paths))}
	for i, p := range s.paths {
		c.paths[i] = p.clone()
	}
	return c
}

func (i *index) clone() *index { return &index{field: i.field, path: i.path, tree: i.tree.Copy()} }

// get finds an object, or nil.
func (s state) get(namespace, name string) *cluster.Object {
	o, _ := s.objects.Get(cluster.Probe(namespace, name))
	return o
}

// put adds an object, or replaces the one of its key.
func (s state) put(o *cluster.Object) {
	old, replaced := s.objects.Set(o)
	if replaced {
		old.EachLabel(func(pair string) {
			if !o.HasLabel(pair) {
				s.labels.tree.Delete(entry{pair, old})
			}
		})
	}
	o.EachLabel(func(pair string) { s.labels.tree.Set(entry{pair, o}) })
	for _, p := range s.paths {
		value := fieldValue(o, p.path)
		if replaced {
			if before := fieldValue(old, p.path); before != value {
				p.tree.Delete(entry{before, old})
			}
		}
		p.tree.Set(entry{value, o})
	}
}

// remove takes an object out.
func (s state) remove(o *cluster.Object) {
	s.objects.Delete(o)
	o.EachLabel(func(pair string) { s.labels.tree.Delete(entry{pair, o}) })
	for _, p := range s.paths {
		p.tree.Delete(entry{fieldValue(o, p.path), o})
	}
}
