package cache

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/btree"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Grouping says by which values objects are counted: those at one path, or the pairs at two.
type Grouping struct {
	text   string
	values []value
}

// Grouping reads one or two paths with a comma between them, written as in field selectors.
func (p Paths) Grouping(text string) (Grouping, error) {
	g := Grouping{text: text}
	for part := range strings.SplitSeq(text, ",") {
		at, err := p.parse(part)
		if err != nil {
			return Grouping{}, err
		}
		g.values = append(g.values, at)
	}
	if len(g.values) > maxGrouped {
		return Grouping{}, fmt.Errorf("%d paths are more than %d", len(g.values), maxGrouped)
	}
	return g, nil
}

const maxGrouped = 2

// String is the grouping as it was asked for; "" if nothing is to be counted.
func (g Grouping) String() string { return g.text }

// group is an object's values; the second is "" for a grouping by one path.
type group [maxGrouped]string

func (g Grouping) of(o *cluster.Object) (values group) {
	for i := range g.values {
		values[i] = g.values[i].text(o)
	}
	return values
}

// CountBy counts objects by their values. Before each object it calls step with the number of bytes
// that it is about to read. If step returns false, it ends with what it has counted.
func CountBy(objects iter.Seq[*cluster.Object], by Grouping, step func(bytes int) bool) *Tally {
	t := by.Tally()
	for o := range objects {
		if !step(o.Size()) {
			break
		}
		t.Add(o)
	}
	return t
}

// Tally counts objects that come and go. It is for one goroutine; a copy never changes and may be read concurrently.
//
// One user may ask for many, each with as many groups as there are objects. So a group has one
// text, and is in two trees.
type Tally struct {
	by     Grouping
	groups *btree.BTreeG[*tallied] // in the order of their values; nil in a copy
	counts *btree.BTreeG[*tallied]
	bytes  int64
}

// tallied is a group in the trees. It never changes: another count is another one.
type tallied struct {
	values string // one after the other
	first  int32  // the length of the first one
	count  int32
}

func (t *tallied) group() group { return group{t.values[:t.first], t.values[t.first:]} }

// Tally counts nothing yet.
func (g Grouping) Tally() *Tally {
	return &Tally{by: g, groups: btree.NewBTreeGOptions(lessGroup, treeOptions), counts: btree.NewBTreeGOptions(lessTallied, treeOptions)}
}

func (g group) compare(other group) int {
	return cmp.Or(strings.Compare(g[0], other[0]), strings.Compare(g[1], other[1]))
}

func lessGroup(a, b *tallied) bool { return a.group().compare(b.group()) < 0 }

func lessTallied(a, b *tallied) bool {
	return cmp.Or(cmp.Compare(b.count, a.count), a.group().compare(b.group())) < 0
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
const tallyBytes = 64

func (t *Tally) add(values group, n int32) {
	now := &tallied{values: values[0] + values[1], first: int32(len(values[0])), count: n}
	before, counted := t.groups.Get(now)
	if counted {
		t.counts.Delete(before)
		now.values, now.count = before.values, before.count+n
	} else {
		now.values = strings.Clone(now.values) // where one of the two is empty, it is a part of the object's JSON
		t.bytes += int64(len(now.values) + tallyBytes)
	}
	if now.count == 0 {
		t.groups.Delete(now)
		t.bytes -= int64(len(now.values) + tallyBytes)
		return
	}
	t.groups.Set(now)
	t.counts.Set(now)
}

// Size is about how many bytes the tally occupies.
func (t *Tally) Size() int64 { return t.bytes }

// Copy is the tally at this moment; it costs the same however many values there are.
func (t *Tally) Copy() *Tally { return &Tally{by: t.by, counts: t.counts.Copy(), bytes: t.bytes} }

// AppendJSON appends the counts, so many at most (0 is all), as an array of {"value","count"}, or
// {"values","count"} for two paths: the most frequent values first, and equally frequent ones in
// the order of the values.
func (t *Tally) AppendJSON(dst []byte, most int) []byte {
	if n := t.counts.Len(); most == 0 || most >= n {
		most = n
		dst = slices.Grow(dst, int(t.bytes)-tallyBytes*n+n*len(`,{"values":["",""],"count":1000}`)) // or it would grow many times
	}
	dst = append(dst, '[')
	n := 0
	t.counts.Scan(func(at *tallied) bool {
		if n == most {
			return false
		}
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		// An error means invalid UTF-8, which the API server never sends. As much as can be written
		// is written even then.
		values := at.group()
		if len(t.by.values) == 1 {
			dst, _ = jsontext.AppendQuote(append(dst, `{"value":`...), values[0])
		} else {
			dst, _ = jsontext.AppendQuote(append(dst, `{"values":[`...), values[0])
			dst, _ = jsontext.AppendQuote(append(dst, ','), values[1])
			dst = append(dst, ']')
		}
		dst = strconv.AppendInt(append(dst, `,"count":`...), int64(at.count), 10)
		dst = append(dst, '}')
		return true
	})
	return append(dst, ']')
}
