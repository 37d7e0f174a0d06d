package cluster

import (
	"context"
	"fmt"
)

// Get reads one object as it is now, past all caches. An error wraps ErrUnavailable, and what the API server answered, if it did.
func (c *Cluster) Get(ctx context.Context, kind Kind, namespace, name string) (*Object, error) {
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
