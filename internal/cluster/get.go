package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Get reads one object as it is now, past all caches. An error wraps ErrUnavailable, and what the
// API server answered, if it did. The name may be anybody's text: one that no object can have, such
// as "../../x", is not found, and leads to no other path.
func (c *Cluster) Get(ctx context.Context, kind Kind, namespace, name string) (*Object, error) {
	if name == "" || len(content.IsPathSegmentName(name)) > 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Resource}, name)
	}
	if err := c.Away(); err != nil {
		return nil, err
	}
	path := []string{"/apis", kind.Group, kind.Version}
	if kind.Group == "" {
		path = []string{"/api", kind.Version}
	}
	if kind.Namespaced {
		path = append(path, "namespaces", namespace)
	}
	body, err := c.client.Get().AbsPath(append(path, kind.Resource, name)...).MaxRetries(0).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %s %s of cluster %s: %w", ErrUnavailable, kind, name, c.name, err)
	}
	return NewObject(string(body))
}
