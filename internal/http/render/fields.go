package render

import (
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
)

// Fields is the parameter fields=: the part of each object that a client wants, as a tree of keys. A nil Fields means
// all.
type Fields struct {
	Variant string // the parameter in a fixed spelling; names the form
	root    fieldTree
	status  func(*cluster.Object) string // what the member $status has; nil if it is not wanted
}

// fieldTree holds the wanted keys of a JSON object; a nil subtree means the whole value.
type fieldTree map[string]fieldTree

// always are the paths that every projection keeps: those that identify an object and its version.
var always = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"}

const maxFields = 64

// ParseFields reads comma-separated paths of a kind's objects. A dot within a key is written \. in them. A path goes
// into each element of the arrays on its way. For $status, objects have a member of that name behind all others.
func ParseFields(of cache.Paths, text string) (*Fields, error) {
	paths := strings.Split(text, ",")
	if len(paths) > maxFields {
		return nil, fmt.Errorf("fields: %d paths are more than %d", len(paths), maxFields)
	}
	p := &Fields{Variant: "fields=" + text, root: fieldTree{}}
	for _, path := range append(paths, always...) {
		if strings.TrimSpace(path) == cache.StatusPath {
			p.status = of.Status
			continue
		}
		keys, err := cache.SplitPath(path)
		if err == nil && !cache.IsMember(keys[0]) {
			err = fmt.Errorf("%q is no member: it is to select, sort and count by", path)
		}
		if err != nil {
			return nil, fmt.Errorf("fields: %w", err)
		}
		p.root.want(keys)
	}
	return p, nil
}

func (t fieldTree) want(keys []string) {
	sub, known := t[keys[0]]
	switch {
	case len(keys) == 1:
		t[keys[0]] = nil
	case known && sub == nil: // all of it is wanted already
	default:
		if sub == nil {
			sub = fieldTree{}
			t[keys[0]] = sub
		}
		sub.want(keys[1:])
	}
}

// source is what a part of an object is made of: its JSON, and what is derived from it.
type source struct{ json, status string }

// source of an object; nothing is derived that is not wanted.
func (p *Fields) source(o *cluster.Object) source {
	if p == nil || p.status == nil {
		return source{json: o.JSON()}
	}
	return source{o.JSON(), p.status(o)}
}

// Of returns the wanted part of an object, as JSON on one line.
func (p *Fields) Of(o *cluster.Object) string {
	if p == nil {
		return o.JSON()
	}
	var of string
	p.made(p.source(o), func(projection []byte) { of = string(projection) })
	return of
}

// size returns the length of the wanted part, in bytes.
func (p *Fields) size(from source) (bytes int) {
	p.made(from, func(projection []byte) { bytes = len(projection) })
	return bytes
}

// made makes the wanted part of an object, and lends it to use.
func (p *Fields) made(from source, use func(projection []byte)) {
	buf := scratch.Get().(*[]byte)
	*buf = p.append((*buf)[:0], from)
	use(*buf)
	if cap(*buf) <= largestScratch {
		scratch.Put(buf)
	}
}

// append appends the wanted part of an object.
func (p *Fields) append(dst []byte, from source) []byte {
	dst = p.root.project(dst, gjson.Parse(from.json))
	if p.status == nil {
		return dst
	}
	return appendStatus(dst, from.status)
}

// appendStatus adds the member $status to an object at the end of dst.
func appendStatus(dst []byte, text string) []byte {
	dst = dst[:len(dst)-1]
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, `"`+cache.StatusPath+`":`...)
	dst, _ = jsontext.AppendQuote(dst, text) // an error means invalid UTF-8, which the API server never sends
	return append(dst, '}')
}

// scratch has buffers in which projections are made. What is kept is a copy of exactly the needed length.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

const largestScratch = 1 << 20

// below returns what is wanted of the member of that name, and whether anything is.
func (t fieldTree) below(key string) (sub fieldTree, wanted bool) {
	if t == nil {
		return nil, true
	}
	sub, wanted = t[key]
	return sub, wanted
}

func (t fieldTree) project(dst []byte, value gjson.Result) []byte {
	switch {
	case t == nil:
		return append(dst, value.Raw...)
	case value.IsArray():
		dst = append(dst, '[')
		first := true
		value.ForEach(func(_, element gjson.Result) bool {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = t.project(dst, element)
			return true
		})
		return append(dst, ']')
	case !value.IsObject():
		return append(dst, value.Raw...) // there is nothing below it to choose from
	}
	dst = append(dst, '{')
	first := true
	value.ForEach(func(key, member gjson.Result) bool {
		sub, wanted := t.below(key.Str)
		if !wanted {
			return true
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, key.Raw...)
		dst = append(dst, ':')
		dst = sub.project(dst, member)
		return true
	})
	return append(dst, '}')
}
