package cluster

import (
	"mime"
	"strings"

	"github.com/tidwall/gjson"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// cacheable are the verbs that the gateway serves. It can cache a kind if the API server has the last two.
var cacheable = []string{"get", "list", "watch"}

// podLog is the only subresource that is served, as it is named in discovery in its unaggregated form.
const podLog = "pods/log"

// SelfReviews are the resources by which callers ask what they may do, or who they are, with the
// kind of each. The gateway answers these itself, so they are the only ones of which one can be
// created.
var SelfReviews = map[schema.GroupVersionResource]schema.GroupVersionKind{
	authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews"): authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"),
	authorizationv1.SchemeGroupVersion.WithResource("selfsubjectrulesreviews"):  authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"),
	authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews"):      authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"),
}

// IsSelfReview reports whether a resource, in any version, is one of SelfReviews.
func IsSelfReview(group, resource string) bool {
	for review := range SelfReviews {
		if review.Group == group && review.Resource == resource {
			return true
		}
	}
	return false
}

// readable makes discovery documents describe the gateway: only the kinds that can be listed and
// watched and may be served, with only the verbs get, list and watch, and without subresources but
// pods' logs. Of metrics.k8s.io, these are get and list. Reviews of oneself keep their verb create.
// Other documents stay as they are.
//
// Clients rely on discovery: kubectl chooses by verbs what `get all` asks for, and dashboards hide what cannot be
// done. The gateway answers requests for what is left out with 404 or 405.
type readable struct {
	serves func(group, resource string) bool // nil: all kinds
}

func (r readable) document(d *Document) (*Document, error) {
	media, _, err := mime.ParseMediaType(d.ContentType)
	if err != nil || media != "application/json" || !gjson.ValidBytes(d.Body) {
		return d, nil
	}
	var body []byte
	switch document := gjson.ParseBytes(d.Body); document.Get("kind").Str {
	case "APIResourceList":
		group, version, _ := strings.Cut(document.Get("groupVersion").Str, "/")
		if version == "" { // "v1" alone is the core group's
			group = ""
		}
		body = edited(nil, document, map[string]edit{"resources": r.resources(group, "name")})
	case "APIGroupDiscoveryList":
		body = edited(nil, document, map[string]edit{"items": ofEach(func(dst []byte, group gjson.Result) []byte {
			resources := r.resources(group.Get("metadata.name").Str, "resource")
			return edited(dst, group, map[string]edit{"versions": ofEach(func(dst []byte, version gjson.Result) []byte {
				return edited(dst, version, map[string]edit{"resources": resources})
			})})
		})})
	default:
		return d, nil
	}
	if d.Body[len(d.Body)-1] == '\n' {
		body = append(body, '\n')
	}
	return &Document{Body: body, ContentType: d.ContentType, Hash: d.Hash}, nil
}

// edit appends what takes a value's place; nothing, if the value is left out.
type edit func(dst []byte, value gjson.Result) []byte

// edited appends an object with some of its members edited, in its own order: clients compare
// documents, and people read them.
func edited(dst []byte, object gjson.Result, edits map[string]edit) []byte {
	dst = append(dst, '{')
	first := true
	object.ForEach(func(key, value gjson.Result) bool {
		before := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		dst = append(append(dst, key.Raw...), ':')
		at := len(dst)
		if edit := edits[key.Str]; edit == nil {
			dst = append(dst, value.Raw...)
		} else {
			dst = edit(dst, value)
		}
		if len(dst) == at {
			dst = dst[:before]
			return true
		}
		first = false
		return true
	})
	return append(dst, '}')
}

// ofEach edits the objects in an array, and leaves out what is edited to nothing.
func ofEach(one edit) edit {
	return func(dst []byte, array gjson.Result) []byte {
		dst = append(dst, '[')
		begin := len(dst)
		array.ForEach(func(_, element gjson.Result) bool {
			if !element.IsObject() {
				return true
			}
			before := len(dst)
			if before > begin {
				dst = append(dst, ',')
			}
			at := len(dst)
			if dst = one(dst, element); len(dst) == at {
				dst = dst[:before]
			}
			return true
		})
		return append(dst, ']')
	}
}

// resources leaves the resources of a group that the gateway serves.
func (r readable) resources(group, name string) edit {
	onlyGet := func(dst []byte, _ gjson.Result) []byte { return append(dst, `["get"]`...) }
	return ofEach(func(dst []byte, resource gjson.Result) []byte {
		text := resource.Get(name).Str
		switch {
		case IsSelfReview(group, text):
			return append(dst, resource.Raw...)
		case group == "" && text == podLog && (r.serves == nil || r.serves("", "pods")):
			return edited(dst, resource, map[string]edit{"verbs": onlyGet})
		case strings.Contains(text, "/"), r.serves != nil && !r.serves(group, text):
			return dst
		}
		verbs := verbsOf(group, text, resource.Get("verbs"))
		if verbs == nil {
			return dst
		}
		return edited(dst, resource, map[string]edit{
			"verbs": func(dst []byte, _ gjson.Result) []byte {
				return append(append(append(dst, `["`...), strings.Join(verbs, `","`)...), `"]`...)
			},
			"subresources": func(dst []byte, all gjson.Result) []byte {
				if group != "" || text != "pods" {
					return dst
				}
				return ofEach(func(dst []byte, sub gjson.Result) []byte {
					if sub.Get("subresource").Str != "log" {
						return dst
					}
					return edited(dst, sub, map[string]edit{"verbs": onlyGet})
				})(dst, all)
			},
		})
	})
}

// verbsOf returns the verbs that the gateway serves of a resource; nil if it does not serve the resource.
func verbsOf(group, resource string, verbs gjson.Result) (served []string) {
	has := map[string]bool{}
	verbs.ForEach(func(_, verb gjson.Result) bool {
		has[verb.Str] = true
		return true
	})
	switch {
	case IsMeasured(group, resource) && has["list"]: // from which gets are answered, too
		return []string{"get", "list"}
	case IsMeasured(group, resource), !has["list"], !has["watch"]:
		return nil
	}
	for _, verb := range cacheable {
		if has[verb] {
			served = append(served, verb)
		}
	}
	return served
}
