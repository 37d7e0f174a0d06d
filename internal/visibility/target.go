package visibility

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/objectstatus"
)

// Target is what a Kubernetes path names: all objects of a resource in a cluster, those of a namespace, or one
// object.
type Target struct {
	Cluster   string // "" for the default one
	Group     string
	Version   string
	Resource  string
	Namespace string // "" for all, and for resources without namespaces
	Name      string // "" for all

	Subresource string // "log", of one object; else ""
}

// Parse reads /api/VERSION/… and /apis/GROUP/VERSION/…, with or without /clusters/NAME before it. It reports false
// for all other paths, subresources included, since the cache has none.
func Parse(name string) (t Target, ok bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(name, "/"), "/"), "/")
	for _, part := range parts {
		if part == "" {
			return Target{}, false
		}
	}
	if len(parts) > 2 && parts[0] == "clusters" {
		t.Cluster, parts = parts[1], parts[2:]
	}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return Target{}, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.Namespace, parts = parts[1], parts[2:]
	}
	switch len(parts) {
	case 1:
		t.Resource = parts[0]
	case 2:
		t.Resource, t.Name = parts[0], parts[1]
	default:
		return Target{}, false
	}
	return t, true
}

// ParseLog reads the path of a pod's log, with or without /clusters/NAME before it. It reports false for all other
// paths, and for names that no pod can have.
func ParseLog(name string) (t Target, ok bool) {
	pod, ok := strings.CutSuffix(strings.TrimSuffix(name, "/"), "/log")
	if !ok {
		return Target{}, false
	}
	t, ok = Parse(pod)
	if !ok || t.Group != "" || t.Version != "v1" || t.Resource != "pods" || t.Namespace == "" || t.Name == "" ||
		len(content.IsPathSegmentName(t.Namespace)) > 0 || len(content.IsPathSegmentName(t.Name)) > 0 {
		return Target{}, false
	}
	t.Subresource = "log"
	return t, true
}

// Request is the authorizer's question whether a verb may be done on the target.
func (t Target) Request(cluster, verb string) auth.Request {
	req := auth.Request{
		Cluster:   cluster,
		Verb:      verb,
		Group:     t.Group,
		Version:   t.Version,
		Resource:  t.Resource,
		Namespace: t.Namespace,
		Name:      t.Name,

		Subresource: t.Subresource,
	}
	// As at the API server, a Namespace counts as being within itself: a role in a namespace may allow to see the
	// Namespace, too.
	if AreNamespaces(t.Group, t.Resource) && t.Name != "" {
		req.Namespace = t.Name
	}
	return req
}

// GroupResource is the kind that is named, in any version.
func (t Target) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: t.Group, Resource: t.Resource}
}

// Paths reads paths of the objects of the kind that is named.
func (t Target) Paths() cache.Paths {
	kind := t.GroupResource()
	return cache.Paths{Resource: kind, Status: objectstatus.Of(kind), Requests: objectstatus.Requests(kind), Numbers: objectstatus.Numbers(kind)}
}

// Qualified is the resource with its group, as in Kubernetes' messages: jobs.batch.
func (t Target) Qualified() string {
	if t.Group == "" {
		return t.Resource
	}
	return t.Resource + "." + t.Group
}
