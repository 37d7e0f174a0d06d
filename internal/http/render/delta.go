package render

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Patched returns the data of an event that tells how the wanted fields of an object changed from one state to the
// next. It has the object's uid and resourceVersion, which must be plain texts, and the RFC 7386 patch. It is "" if the
// patch would not be shorter than the object, or would not be exact. In a merge patch null means absence, so a value
// that becomes null, or contains one, cannot be expressed.
//
// The states are compared as they are written. What is written alike is skipped, and nothing is decoded. A value that
// is the same but written in another way is told as changed, which is longer, but true. Libraries decode both states
// and build the patch from that. This costs thirty times as much (BenchmarkPatched), in memory above all. It would be
// needed for each event, and for each client that watches with patches of other fields.
func Patched(fields *Fields, before, after *cluster.Object) string {
	return patched(fields, after.UID(), after.GetResourceVersion(), fields.source(before), fields.source(after))
}

func patched(fields *Fields, uid, version string, before, after source) string {
	if !isObject(before.json) || !isObject(after.json) {
		return ""
	}
	var tree fieldTree
	if fields != nil {
		tree = fields.root
	}
	d := differences.Get().(*difference)
	defer d.done()
	d.patch = append(d.patch, `{"uid":`...)
	d.patch = strconv.AppendQuote(d.patch, uid)
	d.patch = append(d.patch, `,"resourceVersion":"`...)
	d.patch = append(d.patch, version...)
	d.patch = append(d.patch, `","patch":`...)
	begin := len(d.patch)
	d.objects(tree, before.json, after.json, 0)
	if before.status != after.status {
		d.patch = appendStatus(d.patch, after.status)
	}
	size := len(d.patch) - begin
	if d.inexact || size >= len(after.json) {
		return ""
	}
	if fields != nil && size > shortPatch && size >= fields.size(after) {
		return ""
	}
	d.patch = append(d.patch, '}')
	return string(d.patch)
}

const (
	shortPatch = 128 // bytes; what every projection keeps of an object with a uid is longer
	// deepest is the level down to which two objects are compared member by member; each level is read once more. If
	// they differ below that, there is no patch, and the object is told whole.
	deepest = 32
)

// difference collects a merge patch.
type difference struct {
	patch   []byte
	space   []member // the members of all objects that are being compared
	inexact bool
}

var differences = sync.Pool{New: func() any { return new(difference) }}

func (d *difference) done() {
	clear(d.space[:cap(d.space)]) // the pool must not keep objects alive
	*d = difference{patch: d.patch[:0], space: d.space[:0]}
	if cap(d.patch) <= largestScratch {
		differences.Put(d)
	}
}

// member is a member of an object.
type member struct {
	key, rawKey string
	value       string // as it is written
}

func isObject(value string) bool { return value != "" && value[0] == '{' }

// members are the members of an object. Encoders write them in an order, so those of two states are in nearly the same
// order.
type members struct {
	all   []member
	next  int            // where the next key is likely to be
	index map[string]int // only of long objects, once a key was not at next
}

func (d *difference) members(object string) members {
	begin := len(d.space)
	gjson.Parse(object).ForEach(func(key, value gjson.Result) bool {
		d.space = append(d.space, member{key.Str, key.Raw, value.Raw})
		return true
	})
	return members{all: d.space[begin:len(d.space):len(d.space)]}
}

const longObject = 16

// find returns the place of a key, or -1.
func (m *members) find(key string) (at int) {
	if m.next < len(m.all) && m.all[m.next].key == key {
		m.next++
		return m.next - 1
	}
	if len(m.all) <= longObject {
		for at := range m.all {
			if m.all[at].key == key {
				m.next = at + 1
				return at
			}
		}
		return -1
	}
	if m.index == nil {
		m.index = make(map[string]int, len(m.all))
		for at := range m.all {
			m.index[m.all[at].key] = at
		}
	}
	at, ok := m.index[key]
	if !ok {
		return -1
	}
	m.next = at + 1
	return at
}

// objects appends the patch from one object to another. It reports whether the patch has any member.
func (d *difference) objects(tree fieldTree, was, is string, depth int) (some bool) {
	space := len(d.space)
	defer func() { d.space = d.space[:space] }()
	old, now := d.members(was), d.members(is)
	d.patch = append(d.patch, '{')
	for i := range now.all {
		m := &now.all[i]
		sub, wanted := tree.below(m.key)
		if !wanted {
			continue
		}
		at := old.find(m.key)
		if at >= 0 && old.all[at].value == m.value {
			continue
		}
		mark := len(d.patch)
		d.key(m, some)
		if at < 0 {
			d.whole(sub, m.value)
		} else if !d.changed(sub, old.all[at].value, m.value, depth) {
			d.patch = d.patch[:mark]
			continue
		}
		if some = true; d.inexact {
			return some
		}
	}
	for i := range old.all {
		m := &old.all[i]
		if _, wanted := tree.below(m.key); wanted && now.find(m.key) < 0 {
			d.key(m, some)
			d.patch = append(d.patch, "null"...)
			some = true
		}
	}
	d.patch = append(d.patch, '}')
	return some
}

func (d *difference) key(m *member, more bool) {
	if more {
		d.patch = append(d.patch, ',')
	}
	d.patch = append(d.patch, m.rawKey...)
	d.patch = append(d.patch, ':')
}

// changed appends the patch of a value that is written in another way than before. It returns false if nothing wanted
// differs.
func (d *difference) changed(tree fieldTree, was, is string, depth int) bool {
	if isObject(was) && isObject(is) {
		if depth == deepest {
			d.inexact = true // as a whole value, it would not remove members that only the old one has
			return true
		}
		return d.objects(tree, was, is, depth+1)
	}
	mark := len(d.patch)
	d.whole(tree, is)
	return tree == nil || !bytes.Equal(d.patch[mark:], tree.project(nil, gjson.Parse(was)))
}

// whole appends a new value as a whole. With nulls in some places it is inexact: see hasNull.
func (d *difference) whole(tree fieldTree, is string) {
	mark := len(d.patch)
	d.patch = tree.project(d.patch, gjson.Parse(is))
	d.inexact = d.inexact || hasNull(d.patch[mark:])
}

// hasNull reports whether a JSON value has a null that a merge patch cannot express: as the value
// itself, as a member of an object, since it would remove that, and as an element of an array,
// since some libraries drop it and so make the array shorter.
//
// Within an array, a member that is null is what RFC 7386 says: arrays are taken as they are. So
// the conditions of pods can be told, of which each has such a member (lastProbeTime). The
// libraries that drop it there make an object that means the same to Kubernetes.
func hasNull(value []byte) bool {
	if !bytes.Contains(value, []byte("null")) {
		return false
	}
	quoted, arrays := false, 0
	var before byte // the character of JSON's structure that came last
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == 'n' && (arrays == 0 || before != ':'): // outside of strings, nothing but null begins with an n
			return true
		case c == '[':
			arrays++
		case c == ']':
			arrays--
		}
		if !quoted && (c == '[' || c == ',' || c == ':') {
			before = c
		}
	}
	return false
}
