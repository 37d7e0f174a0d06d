package http

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
)

// clusters are those that are served at one time. They are replaced together, and never changed.
type clusters struct {
	all    []*cache.Kinds // the first is the default one
	byName map[string]*cache.Kinds
}

// SetClusters replaces the clusters that are served; the first is the default one. It does nothing to those that are not
// among them any more: their streams end when their kinds do (cache.Kinds.Remove).
func (s *Server) SetClusters(all []*cache.Kinds) error {
	if len(all) == 0 {
		return errors.New("there must be one")
	}
	now := &clusters{all: all, byName: map[string]*cache.Kinds{}}
	for _, kinds := range all {
		now.byName[kinds.Cluster().Name()] = kinds
	}
	s.clusters.Store(now)
	return nil
}

// cluster finds a cluster by the name in a path; "" is the default one.
func (s *Server) cluster(name string) (*cache.Kinds, error) {
	now := s.clusters.Load()
	if name == "" {
		return now.all[0], nil
	}
	if kinds := now.byName[name]; kinds != nil {
		return kinds, nil
	}
	return nil, notFound("there is no cluster of this name")
}

// readiness is why a cluster cannot be served yet, or nil.
func (s *Server) readiness(kinds *cache.Kinds) error {
	var other error
	if s.opts.Ready != nil {
		other = s.opts.Ready(kinds.Cluster().Name())
	}
	return errors.Join(other, kinds.Ready())
}

// clusterState is one entry of /clusters.
type clusterState struct {
	Name    string      `json:"name"`
	Default bool        `json:"default"`
	State   string      `json:"state"` // live, stale (it is away, or a watch is lost) or starting (a kind to preload is not read yet)
	Kinds   []kindState `json:"kinds"` // that are cached now
}

type kindState struct {
	Group    string    `json:"group"`
	Version  string    `json:"version"`
	Resource string    `json:"resource"`
	State    string    `json:"state"` // live, or why not: starting, unreachable, refused
	Since    time.Time `json:"since"`
}

// listClusters tells everyone who is signed in which clusters there are, and how they are.
func (s *Server) listClusters(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.caller(r); err != nil {
		return err
	}
	answer := struct {
		Clusters []clusterState `json:"clusters"`
	}{}
	for i, kinds := range s.clusters.Load().all {
		answer.Clusters = append(answer.Clusters, stateOf(kinds, i == 0))
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone is no error
	return nil
}

func stateOf(kinds *cache.Kinds, isDefault bool) clusterState {
	c := clusterState{Name: kinds.Cluster().Name(), Default: isDefault, State: "live", Kinds: []kindState{}}
	for _, store := range kinds.All() {
		kind, upstream := store.Kind(), store.Upstream()
		if !upstream.Live && upstream.Synced {
			c.State = "stale"
		}
		c.Kinds = append(c.Kinds, kindState{kind.Group, kind.Version, kind.Resource, upstreamReason(upstream), upstream.Since.UTC()})
	}
	switch {
	case kinds.Cluster().Away() != nil:
		c.State = "stale"
	case kinds.Ready() != nil:
		c.State = "starting"
	}
	return c
}
