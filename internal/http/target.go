package http

import (
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/trail"
)

// target is what a Kubernetes path names: a resource of a cluster, all of it, that of a namespace, or one object.
type target struct {
	cluster   string // "" for the default one
	group     string
	version   string
	resource  string
	namespace string // "" for all, and for what has none
	name      string // "" for all
}

// parseTarget reads /api/VERSION/… and /apis/GROUP/VERSION/…, behind /clusters/NAME or not. It is false for all
// other paths, subresources included: the cache has none.
func parseTarget(path string) (t target, ok bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	for _, part := range parts {
		if part == "" {
			return target{}, false
		}
	}
	if len(parts) > 2 && parts[0] == "clusters" {
		t.cluster, parts = parts[1], parts[2:]
	}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		t.version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		t.group, t.version, parts = parts[1], parts[2], parts[3:]
	default:
		return target{}, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.namespace, parts = parts[1], parts[2:]
	}
	switch len(parts) {
	case 1:
		t.resource = parts[0]
	case 2:
		t.resource, t.name = parts[0], parts[1]
	default:
		return target{}, false
	}
	return t, true
}

// request is the question whether a verb may be done to the target.
func (t target) request(cluster, verb string) auth.Request {
	req := auth.Request{
		Cluster:   cluster,
		Verb:      verb,
		Group:     t.group,
		Version:   t.version,
		Resource:  t.resource,
		Namespace: t.namespace,
		Name:      t.name,
	}
	// As at the API server, a namespace is in itself: who may see what is in it may be let see it, too.
	if t.group == "" && t.resource == "namespaces" && t.name != "" {
		req.Namespace = t.name
	}
	return req
}

// read is the target as the audit log names it.
func (t target) read(verb string) trail.Read {
	return trail.Read{
		Cluster: t.cluster, Group: t.group, Version: t.version, Resource: t.resource, Namespace: t.namespace, Name: t.name, Verb: verb,
	}
}

// qualified is the resource with its group, as in Kubernetes' messages: jobs.batch.
func (t target) qualified() string {
	if t.group == "" {
		return t.resource
	}
	return t.resource + "." + t.group
}

// forbidden is worded as the API server's own.
func forbidden(id auth.Identity, t target, verb string) error {
	message := t.qualified()
	if t.name != "" {
		message += fmt.Sprintf(" %q", t.name)
	}
	message += fmt.Sprintf(" is forbidden: User %q cannot %s resource %q in API group %q", id.Username, verb, t.resource, t.group)
	if t.namespace != "" {
		message += fmt.Sprintf(" in the namespace %q", t.namespace)
	} else {
		message += " at the cluster scope"
	}
	return &reply.Error{
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: message,
		Details: &metav1.StatusDetails{Name: t.name, Group: t.group, Kind: t.resource},
	}
}
