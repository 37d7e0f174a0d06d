package cache

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

// terms is what a selector asks of several fields, as a tree of keys: an object is read once for all of them. For
// each path it finds the same value as gjson.
type terms struct {
	root     node
	required int // terms that do not hold unless their field is found
}

type node struct {
	keys  map[string]*node
	terms []fieldTerm // conditions on the value at this place
}

// newTerms returns nil for fewer than two fields: for one, gjson reads no further than it has to.
// Nor is there a tree for a field whose value may be in one of two places.
func newTerms(fields []fieldTerm) *terms {
	if len(fields) < 2 || slices.ContainsFunc(fields, func(f fieldTerm) bool { return f.or != "" }) {
		return nil
	}
	t := &terms{}
	for _, f := range fields {
		keys, err := SplitPath(f.field)
		if err != nil {
			return nil // cannot be: Paths.Selector refuses it
		}
		at := &t.root
		for _, key := range keys {
			if at.keys == nil {
				at.keys = map[string]*node{}
			}
			if at.keys[key] == nil {
				at.keys[key] = &node{}
			}
			at = at.keys[key]
		}
		at.terms = append(at.terms, f)
		if f.requires() {
			t.required++
		}
	}
	return t
}

// requires reports whether the term does not hold for an object without such a field.
func (f *fieldTerm) requires() bool { return !f.holdsFor("") }

func (t *terms) match(o *cluster.Object) bool {
	found := 0
	return t.root.match(gjson.Parse(o.JSON()), &found) && found == t.required
}

// match reports whether the value contradicts no term at this place or below. It counts the terms whose field had to
// be found.
func (n *node) match(value gjson.Result, found *int) bool {
	for i := range n.terms {
		f := &n.terms[i]
		if !f.holdsFor(value.String()) {
			return false
		}
		if f.requires() {
			*found++
		}
	}
	if len(n.keys) == 0 || !value.IsObject() && !value.IsArray() {
		return true
	}
	holds, place, left := true, 0, len(n.keys)
	value.ForEach(func(key, member gjson.Result) bool {
		name := key.Str
		if value.IsArray() {
			name = strconv.Itoa(place)
			place++
		}
		below := n.keys[name]
		if below == nil {
			return true
		}
		if holds = below.match(member, found); !holds {
			return false
		}
		left--
		return left > 0
	})
	return holds
}
