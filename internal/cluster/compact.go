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
	buf  []byte
}

// object makes an Object of a valid JSON value. It names the kind first (items of a list do not), leaves out what
// nobody reads (managedFields are half of a pod), and blanks what nobody may read.
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
	c.buf = append(c.buf[:0], `{"kind":"`...)
	c.buf = append(c.buf, c.kind.Kind...)
	c.buf = append(c.buf, `","apiVersion":"`...)
	c.buf = append(c.buf, c.kind.APIVersion()...)
	c.buf = append(c.buf, '"')
	secret := c.kind.isSecret()
	whole.ForEach(func(key, value gjson.Result) bool {
		switch {
		case key.Str == "kind" || key.Str == "apiVersion":
		case key.Str == "metadata" && value.IsObject():
			c.member(key)
			c.metadata(value)
		case secret && key.Str == "data":
			c.member(key)
			c.blanked(value)
		case secret && key.Str != "type" && key.Str != "immutable": // stringData, and what no Secret has
		default:
			c.member(key)
			c.buf = append(c.buf, value.Raw...)
		}
		return true
	})
	c.buf = append(c.buf, '}')
	o, err := NewObject(string(c.buf))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.kind, err)
	}
	return o, nil
}

// member begins a member of an object: the comma, unless it is the first, and the key.
func (c *compactor) member(key gjson.Result) {
	if c.buf[len(c.buf)-1] != '{' {
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

// annotations writes all but the last-applied configuration, which repeats the object. It reports whether any is left.
//
// Tools keep what a Secret says in its annotations, too: the whole of it as they last applied it, or a token (OpenShift's
// openshift.io/token-secret.value). Nobody can list them all, so what is listed is what says nothing.
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

// harmlessOnSecrets are the annotations of Secrets whose values are shown: they say to whom a Secret belongs or for whom it
// was issued, and are defined by those who write them to be nothing else. Of others the name is shown, as of data.
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

// blanked writes an object's keys with empty strings for values: what a Secret holds can be seen, not what it says.
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

// formatted reports whether a JSON value has white space between its tokens: line breaks would break the framing of
// events, and labels are not read in place with any. API servers write none; others may write as Python does.
func formatted(value []byte) bool {
	if bytes.IndexByte(value, '\n') >= 0 || bytes.IndexByte(value, '\r') >= 0 || bytes.IndexByte(value, '\t') >= 0 {
		return true // within a string they are escaped
	}
	for {
		i := bytes.Index(value, []byte(`": `))
		if i < 0 {
			return false
		}
		if i == 0 || value[i-1] != '\\' { // an escaped quote is a part of JSON within a string, as in annotations
			return true
		}
		value = value[i+1:]
	}
}

// view reads bytes as a string without a copy; what is made of it must not outlive the bytes.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
