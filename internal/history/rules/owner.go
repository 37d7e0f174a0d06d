package rules

import (
	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

// ownerMark is the annotation, or label, that names an object's owner. An annotation can hold any name, a label cannot.
const ownerMark = "kubecast.io/owner"

// Owner is whom an object of any kind, given as resource[.group], names as its owner; "" if nobody, or if the configured expression
// cannot be evaluated for it.
func (s *Set) Owner(kind string, o *cluster.Object) string {
	if s.owner != nil {
		owner, err := s.owner.evaluate(input{object: parse(o)})
		if err != nil {
			return ""
		}
		return owner
	}
	return (&Rule{ownerPaths: readyMade[kind].owner}).ownerOf(o)
}

func (r *Rule) ownerOf(o *cluster.Object) string {
	if owner := o.Path("metadata.annotations." + gjson.Escape(ownerMark)).Str; owner != "" {
		return owner
	}
	if owner := label(o, ownerMark); owner != "" {
		return owner
	}
	for _, path := range r.ownerPaths {
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
