package access

import (
	"errors"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// clusters are the clusters that are served at one moment. The value never changes; it is replaced as a whole.
type clusters struct {
	all    []*cache.Kinds // the first is the default one
	byName map[string]*cache.Kinds
}

// SetClusters replaces the clusters that are served; the first is the default one. It does nothing to clusters that
// are no longer among them: their streams end with their kinds (cache.Kinds.Remove).
func (a *Access) SetClusters(all []*cache.Kinds) error {
	if len(all) == 0 {
		return errors.New("there must be one")
	}
	now := &clusters{all: all, byName: map[string]*cache.Kinds{}}
	for _, kinds := range all {
		now.byName[kinds.Cluster().Name()] = kinds
	}
	a.clusters.Store(now)
	return nil
}

// Cluster finds a cluster by the name in a path; "" is the default one.
func (a *Access) Cluster(name string) (*cache.Kinds, error) {
	now := a.clusters.Load()
	if name == "" {
		return now.all[0], nil
	}
	if kinds := now.byName[name]; kinds != nil {
		return kinds, nil
	}
	return nil, reply.NotFound("there is no cluster of this name")
}

// All returns the clusters that are served, the default one first.
func (a *Access) All() []*cache.Kinds { return a.clusters.Load().all }
