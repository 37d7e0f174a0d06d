package cache

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/tidwall/btree"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Grouping says by which values objects are counted: those at one path, or the pairs at two.
type Grouping struct {
	text  string
	paths []string // for gjson
}

// ParseGrouping reads one or two paths with a comma between them, written as in field selectors.
func ParseGrouping(text string) (Grouping, error) {
	g := Grouping{text: text}
	for part := range strings.SplitSeq(text, ",") {
		path, err := fieldPath(strings.TrimSpace(part))
		if err != nil {
			return Grouping{}, err
		}
		g.paths = append(g.paths, path)
	}
	if len(g.paths) > maxGrouped {
		return Grouping{}, fmt.Errorf("%d paths are more than %d", len(g.paths), maxGrouped)
	}
	return g, nil
}

const maxGrouped = 2

// String is the grouping as it was asked for; "" if nothing is to be counted.
func (g Grouping) String() string { return g.text }

// group is an object's values; the second is "" for a grouping by one path.
type group [maxGrouped]string

func (g Grouping) of(o *cluster.Object) (values group) {
	for i, path := range g.paths {
		values[i] = fieldValue(o, path)
	}
	return values
}

// Count is how many objects have a value at a path, or values at two.
type Count struct {
	Values []string // as in a field selector; "" if there is none
	Count  int
}

// MarshalJSON implements json.Marshaler: {"value","count"}, or {"values","count"} for two paths.
func (c Count) MarshalJSON() ([]byte, error) {
	switch len(c.Values) {
	case 0:
		return nil, errors.New("a count of no value")
	case 1:
		return json.Marshal(struct {
			Value string `json:"value"`
			Count int    `json:"count"`
		}{c.Values[0], c.Count})
	}
	return json.Marshal(struct {
		Values []string `json:"values"`
		Count  int      `json:"count"`
	}{c.Values, c.Count})
}

// CountBy counts objects by their values. The most frequent value comes first; equally frequent ones come in the order
// of the values. Before each object it calls step with the number of bytes that it is about to read. If step returns
// false, it ends with what it has counted.
func CountBy(objects iter.Seq[*cluster.Object], by Grouping, step func(bytes int) bool) []Count {
	t := by.Tally()
	for o := range objects {
		if !step(o.Size()) {
			break
		}
		t.Add(o)
	}
	return t.Counts(0)
}

// Tally counts objects that come and go. It is for one goroutine; a copy never changes and may be read concurrently.
type Tally struct {
	by     Grouping
	groups map[group]*tallied // nil in a copy
	counts *btree.BTreeG[*tallied]
	bytes  int64
}

// tallied is a group in the tree. It never changes: another count is another one.
type tallied struct {
	group
	count int
}

// Tally counts nothing yet.
func (g Grouping) Tally() *Tally {
	return &Tally{by: g, groups: map[group]*tallied{}, counts: btree.NewBTreeGOptions(lessTallied, treeOptions)}
}

func lessTallied(a, b *tallied) bool {
	return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.group[0], b.group[0]), strings.Compare(a.group[1], b.group[1])) < 0
}

// Add counts an object.
func (t *Tally) Add(o *cluster.Object) { t.add(t.by.of(o), 1) }

// Replace counts an object that was counted in another state, and reports whether that changed a count.
func (t *Tally) Replace(old, o *cluster.Object) bool {
	before, now := t.by.of(old), t.by.of(o)
	if before == now {
		return false
	}
	t.add(before, -1)
	t.add(now, 1)
	return true
}

// Remove counts an object no more, which was counted in this state.
func (t *Tally) Remove(o *cluster.Object) { t.add(t.by.of(o), -1) }

// tallyBytes is what a group occupies beside its values, in bytes.
const tallyBytes = 160

func (t *Tally) add(values group, n int) {
	before := t.groups[values]
	if before == nil {
		for i, value := range values {
			values[i] = strings.Clone(value) // or it would keep the object's JSON in memory
		}
		t.bytes += int64(len(values[0]) + len(values[1]) + tallyBytes)
	} else {
		values, n = before.group, n+before.count
		t.counts.Delete(before)
	}
	if n == 0 {
		delete(t.groups, values)
		t.bytes -= int64(len(values[0]) + len(values[1]) + tallyBytes)
		return
	}
	now := &tallied{values, n}
	t.groups[values] = now
	t.counts.Set(now)
}

// Size is about how many bytes the tally occupies.
func (t *Tally) Size() int64 { return t.bytes }

// Copy is the tally at this moment; it costs the same however many values there are.
func (t *Tally) Copy() *Tally { return &Tally{by: t.by, counts: t.counts.Copy(), bytes: t.bytes} }

// Counts are the counts in the order of CountBy, so many at most; 0 is all.
func (t *Tally) Counts(most int) []Count {
	if most == 0 {
		most = t.counts.Len()
	}
	counts := make([]Count, 0, min(most, t.counts.Len()))
	t.counts.Scan(func(at *tallied) bool {
		if len(counts) == most {
			return false
		}
		counts = append(counts, Count{at.group[:len(t.by.paths)], at.count})
		return true
	})
	return counts
}
