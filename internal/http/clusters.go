package http

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
)

// clusterState is one entry of /clusters.
type clusterState struct {
	Name    string      `json:"name"`
	Default bool        `json:"default"`
	State   string      `json:"state"` // live, stale (a watch is lost) or starting (a kind to preload is not read yet)
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
	for i, kinds := range s.opts.Clusters {
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
	if kinds.Ready() != nil {
		c.State = "starting"
	}
	return c
}
