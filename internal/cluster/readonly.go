package cluster

import (
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// cacheable are the verbs that the gateway serves. It can cache a kind if the API server has the last two.
var cacheable = []string{"get", "list", "watch"}

// podLog is the only subresource that is served, as it is named in discovery in its unaggregated form.
const podLog = "pods/log"

// SelfReviews are the resources by which callers ask what they may do, or who they are, with the kind of each. The gateway
// answers these itself, so they are the only ones of which one can be created.
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

// readable makes discovery documents describe the gateway: only the kinds that can be listed and watched and may be
// served, with only the verbs get, list and watch, and without subresources but pods' logs. Of metrics.k8s.io, these are get and list.
// Reviews of oneself keep their verb create.
// Other documents stay as they are.
//
// Clients rely on discovery: kubectl chooses by verbs what `get all` asks for, and dashboards hide what cannot be
// done. The gateway answers requests for what is left out with 404 or 405.
type readable struct {
	serves func(group, resource string) bool // nil: all kinds
}

func (r readable) document(d *Document) (*Document, error) {
	media, _, err := mime.ParseMediaType(d.ContentType)
	if err != nil || media != "application/json" {
		return d, nil
	}
	var head struct{ Kind string }
	if json.Unmarshal(d.Body, &head) != nil {
		return d, nil
	}
	var rewrite func(map[string]any)
	switch head.Kind {
	case "APIResourceList":
		rewrite = func(list map[string]any) {
			version, _ := list["groupVersion"].(string)
			group, _, _ := strings.Cut(version, "/")
			if group == version { // "v1" alone is the core group's
				group = ""
			}
			list["resources"] = r.resources(group, list["resources"], "name")
		}
	case "APIGroupDiscoveryList":
		rewrite = func(list map[string]any) {
			for _, group := range members(list["items"]) {
				metadata, _ := group["metadata"].(map[string]any)
				name, _ := metadata["name"].(string)
				for _, version := range members(group["versions"]) {
					version["resources"] = r.resources(name, version["resources"], "resource")
				}
			}
		}
	default:
		return d, nil
	}
	var document map[string]any
	if err := json.Unmarshal(d.Body, &document); err != nil {
		return nil, fmt.Errorf("a %s that is none: %w", head.Kind, err)
	}
	rewrite(document)
	body, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return &Document{Body: body, ContentType: d.ContentType, Hash: d.Hash}, nil
}

// resources returns the resources of a group that the gateway serves.
func (r readable) resources(group string, resources any, name string) []any {
	served := []any{}
	for _, resource := range members(resources) {
		text, _ := resource[name].(string)
		if IsSelfReview(group, text) {
			served = append(served, resource)
			continue
		}
		if group == "" && text == podLog && (r.serves == nil || r.serves("", "pods")) {
			resource["verbs"] = []any{"get"}
			served = append(served, resource)
			continue
		}
		if strings.Contains(text, "/") || r.serves != nil && !r.serves(group, text) {
			continue
		}
		verbs := verbsOf(group, text, resource["verbs"])
		if verbs == nil {
			continue
		}
		resource["verbs"] = verbs
		log := slices.DeleteFunc(members(resource["subresources"]), func(sub map[string]any) bool {
			return group != "" || text != "pods" || sub["subresource"] != "log"
		})
		delete(resource, "subresources")
		for _, sub := range log {
			sub["verbs"] = []any{"get"}
			resource["subresources"] = []any{sub}
		}
		served = append(served, resource)
	}
	return served
}

// verbsOf returns the verbs that the gateway serves of a resource; nil if it does not serve the resource.
func verbsOf(group, resource string, verbs any) (served []any) {
	all, _ := verbs.([]any)
	has := func(verb string) bool { return slices.Contains(all, any(verb)) }
	switch {
	case IsMeasured(group, resource) && has("list"): // from which gets are answered, too
		return []any{"get", "list"}
	case IsMeasured(group, resource), !has("list"), !has("watch"):
		return nil
	}
	for _, verb := range cacheable {
		if has(verb) {
			served = append(served, verb)
		}
	}
	return served
}

// members returns the objects in a JSON array, and skips all else.
func members(array any) (objects []map[string]any) {
	elements, _ := array.([]any)
	for _, element := range elements {
		if object, ok := element.(map[string]any); ok {
			objects = append(objects, object)
		}
	}
	return objects
}
