package rules

import (
	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

// ownerMark is the annotation, or label, that names an object's owner. An annotation can hold any name, a label cannot.
const ownerMark = "kubecast.io/owner"

// Owner is whom an object of any kind, given as resource[.group], names as its owner; "" if nobody,
// or if the configured expression cannot be evaluated for it.
func (s *Set) Owner(kind string, o *cluster.Object) string {
	if s.owner != nil {
		owner, err := s.owner.evaluate(input{object: parse(o)})
		if err != nil {
			return ""
		}
		return owner
	}
	return ownerOf(o, builtins[kind].owner)
}

// ownerOf is the owner by the mark, else by what the object's kind has for it.
func ownerOf(o *cluster.Object, paths []string) string {
	if owner := o.Path("metadata.annotations." + gjson.Escape(ownerMark)).Str; owner != "" {
		return owner
	}
	if owner := label(o, ownerMark); owner != "" {
		return owner
	}
	for _, path := range paths {
		if owner := o.Path(path).Str; owner != "" {
			return owner
		}
	}
	return ""
}

// label is the value of the first of some labels that an object has.
func label(o *cluster.Object, keys ...string) string {
	for _, key := range keys {
		if value := o.Get(key); value != "" {
			return value
		}
	}
	return ""
}
