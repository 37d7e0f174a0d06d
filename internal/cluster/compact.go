package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
	corev1 "k8s.io/api/core/v1"
)

// compactor makes Objects of one kind from the values that its decoder reads, reusing one buffer.
type compactor struct {
	kind Kind
	held func(namespace, name string) *Object // what its reader has already; nil: nothing
	head string                               // with which an object begins that does not name its kind
	buf  []byte
}

// object makes an Object from a valid JSON value. It leaves out what no client needs (managedFields
// are half of a pod), and blanks what no client may read. What is left keeps its order, since
// clients compare answers: the kind stands where the API server wrote it, and first if it wrote
// none, as in the items of a list of most kinds.
func (c *compactor) object(value []byte) (*Object, error) {
	if formatted(value) {
		v := jsontext.Value(value)
		if err := v.Compact(); err != nil {
			return nil, err
		}
		value = v
	}
	whole := gjson.Parse(view(value))
	if !whole.IsObject() {
		return nil, errors.New("an object was expected")
	}
	if c.head == "" {
		c.head = c.kind.Head()
	}
	c.buf = append(c.buf[:0], c.head...)
	var text []byte
	switch hasKind, hasVersion := c.members(whole, true); {
	case hasKind && hasVersion:
		text = c.buf[len(c.head)-1:] // in the place of the comma
		text[0] = '{'
	case hasKind || hasVersion:
		c.buf = append(c.buf[:0], c.head...)
		c.members(whole, false)
		fallthrough
	default:
		text = c.buf
	}
	if o := c.again(text); o != nil {
		return o, nil
	}
	read := NewObject
	if c.kind.Measured {
		read = newMeasurement
	}
	o, err := read(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.kind, err)
	}
	return o, nil
}

// again is the object that the reader has already, if a text says just the same; else nil.
func (c *compactor) again(text []byte) *Object {
	if c.held == nil {
		return nil
	}
	metadata := gjson.Get(view(text), "metadata")
	o := c.held(metadata.Get("namespace").Str, metadata.Get("name").Str)
	if o == nil || o.json != view(text) {
		return nil
	}
	return o
}

// members writes the members of an object behind what the buffer has, and the object's end. Those
// that name the kind are among them if they are wanted, and name this kind; it returns which are.
func (c *compactor) members(whole gjson.Result, named bool) (hasKind, hasVersion bool) {
	secret := c.kind.isSecret()
	whole.ForEach(func(key, value gjson.Result) bool {
		switch {
		case key.Str == "kind":
			if named && !hasKind && value.Str == c.kind.Kind {
				hasKind = true
				c.member(key)
				c.buf = append(c.buf, value.Raw...)
			}
		case key.Str == "apiVersion":
			if named && !hasVersion && c.kind.isOf(value.Str) {
				hasVersion = true
				c.member(key)
				c.buf = append(c.buf, value.Raw...)
			}
		case key.Str == "metadata" && value.IsObject():
			c.member(key)
			c.metadata(value)
		case secret && key.Str == "data":
			c.member(key)
			c.blanked(value)
		case secret && key.Str != "type" && key.Str != "immutable": // left out: stringData, and members that no Secret has
		default:
			c.member(key)
			c.buf = append(c.buf, value.Raw...)
		}
		return true
	})
	c.buf = append(c.buf, '}')
	return hasKind, hasVersion
}

// member begins a member of an object: the comma, unless it is the first or stands there already, and the key.
func (c *compactor) member(key gjson.Result) {
	if last := c.buf[len(c.buf)-1]; last != '{' && last != ',' {
		c.buf = append(c.buf, ',')
	}
	c.buf = append(c.buf, key.Raw...)
	c.buf = append(c.buf, ':')
}

func (c *compactor) metadata(metadata gjson.Result) {
	c.buf = append(c.buf, '{')
	metadata.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "managedFields":
		case "annotations":
			if !value.IsObject() {
				break // null
			}
			before := len(c.buf)
			c.member(key)
			if !c.annotations(value) {
				c.buf = c.buf[:before]
			}
		default:
			c.member(key)
			c.buf = append(c.buf, value.Raw...)
		}
		return true
	})
	c.buf = append(c.buf, '}')
}

// annotations writes all annotations but the last-applied configuration, which repeats the object. It reports whether
// it wrote any.
//
// Tools keep the content of a Secret in its annotations, too: the whole of it as they last applied it, or a token
// (OpenShift's openshift.io/token-secret.value). Nobody can list all of these, so the list has the harmless ones
// instead.
func (c *compactor) annotations(annotations gjson.Result) (any bool) {
	secret := c.kind.isSecret()
	c.buf = append(c.buf, '{')
	annotations.ForEach(func(key, value gjson.Result) bool {
		if key.Str == corev1.LastAppliedConfigAnnotation {
			return true
		}
		c.member(key)
		if any = true; secret && !harmlessOnSecrets[key.Str] {
			c.buf = append(c.buf, `""`...)
		} else {
			c.buf = append(c.buf, value.Raw...)
		}
		return true
	})
	c.buf = append(c.buf, '}')
	return any
}

// harmlessOnSecrets are the annotations of Secrets whose values are shown. They say to whom a Secret belongs or was
// issued, and the tools that write them define them to say nothing else. Of all others only the name is shown, as of
// data.
var harmlessOnSecrets = map[string]bool{
	corev1.ServiceAccountNameKey: true,
	corev1.ServiceAccountUIDKey:  true,

	"cert-manager.io/alt-names":        true,
	"cert-manager.io/certificate-name": true,
	"cert-manager.io/common-name":      true,
	"cert-manager.io/ip-sans":          true,
	"cert-manager.io/issuer-group":     true,
	"cert-manager.io/issuer-kind":      true,
	"cert-manager.io/issuer-name":      true,
	"cert-manager.io/uri-sans":         true,
	"meta.helm.sh/release-name":        true,
	"meta.helm.sh/release-namespace":   true,
}

// blanked writes an object's keys with empty strings as values: clients see which keys a Secret has, but not what
// they say.
func (c *compactor) blanked(data gjson.Result) {
	if !data.IsObject() {
		c.buf = append(c.buf, "null"...)
		return
	}
	c.buf = append(c.buf, '{')
	data.ForEach(func(key, _ gjson.Result) bool {
		c.member(key)
		c.buf = append(c.buf, `""`...)
		return true
	})
	c.buf = append(c.buf, '}')
}

// formatted reports whether a JSON value has white space between its tokens. Line breaks would break the framing of
// events, and labels cannot be read in place with any white space. API servers write none, but aggregated ones may
// write JSON as Python does.
func formatted(value []byte) bool {
	if bytes.IndexByte(value, '\n') >= 0 || bytes.IndexByte(value, '\r') >= 0 || bytes.IndexByte(value, '\t') >= 0 {
		return true // within strings these are escaped
	}
	for {
		i := bytes.Index(value, []byte(`": `))
		if i < 0 {
			return false
		}
		if i == 0 || value[i-1] != '\\' { // an escaped quote belongs to JSON within a string, as in annotations
			return true
		}
		value = value[i+1:]
	}
}

// view reads bytes as a string without a copy. Neither it nor any part of it may be used after the bytes change.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
