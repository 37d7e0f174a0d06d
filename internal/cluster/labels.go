package cluster

import (
	"strings"

	"github.com/tidwall/gjson"
)

// The labels of an object are kept as the JSON object that they are, {"app":"web","tier":"db"}, and are read in
// place. Keys and values of labels need no escapes, so the substring of a pair identifies it. So an index of pairs
// needs no memory for their text.

// LabelPair is the form in which EachLabel presents the label key=value.
func LabelPair(key, value string) string { return `"` + key + `":"` + value + `"` }

// EachLabel calls f with each label in the form of LabelPair, which is a substring of the object's JSON.
func (o *Object) EachLabel(f func(pair string)) {
	for rest := o.labels; ; {
		pair, _, _, tail, ok := nextLabel(rest)
		if !ok {
			return
		}
		f(pair)
		rest = tail
	}
}

func (o *Object) Lookup(label string) (string, bool) {
	for rest := o.labels; ; {
		_, key, value, tail, ok := nextLabel(rest)
		if !ok {
			return "", false
		}
		if key == label {
			return value, true
		}
		rest = tail
	}
}

func (o *Object) Has(label string) bool { _, ok := o.Lookup(label); return ok }

func (o *Object) Get(label string) string { value, _ := o.Lookup(label); return value }

// nextLabel splits the first pair off the rest of a labels object; the rest begins with '{' or ','.
func nextLabel(rest string) (pair, key, value, tail string, ok bool) {
	if len(rest) < len(`{"":""`) {
		return "", "", "", "", false
	}
	rest = rest[1:]
	keyEnd := strings.IndexByte(rest[1:], '"') + 1
	valueStart := keyEnd + len(`":"`)
	valueEnd := strings.IndexByte(rest[valueStart:], '"') + valueStart
	return rest[:valueEnd+1], rest[1:keyEnd], rest[valueStart:valueEnd], rest[valueEnd+1:], true
}

// plainLabels reports whether the labels can be read in place: a flat object of strings without white space or
// escapes, as the API server itself writes them. An aggregated API server may validate less. Labels that are not
// plain stay in the object, but no selector finds them.
func plainLabels(raw string) bool {
	if strings.ContainsAny(raw, " \t\r\n\\") {
		return false
	}
	plain := true
	gjson.Parse(raw).ForEach(func(_, value gjson.Result) bool {
		plain = value.Type == gjson.String
		return plain
	})
	return plain
}

// HasLabel reports whether the object has the label that a pair in the form of LabelPair names.
func (o *Object) HasLabel(pair string) bool {
	for rest := o.labels; ; {
		own, _, _, tail, ok := nextLabel(rest)
		if !ok || own == pair {
			return ok
		}
		rest = tail
	}
}
