package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
)

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

// clusterWithin is how long /clusters waits to be told who may know of a cluster: it is asked for when something is not well.
const clusterWithin = 2 * time.Second

// Clusters tells which clusters there are and how they are to those who may read their discovery, and of the kinds that are
// cached those which the caller may list: which ones others look at is nobody's business.
func (h *Handler) Clusters(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	ctx, cancel := context.WithTimeout(auth.WithQuestions(r.Context(), MaxQuestions), clusterWithin)
	defer cancel()
	all := h.access.All()
	states := make([]*clusterState, len(all))
	var asking sync.WaitGroup
	for i, kinds := range all {
		asking.Go(func() { states[i] = h.stateFor(ctx, id, kinds, i == 0) })
	}
	asking.Wait()
	answer := struct {
		Clusters []*clusterState `json:"clusters"`
	}{slices.DeleteFunc(states, func(c *clusterState) bool { return c == nil })}
	if len(answer.Clusters) == 0 {
		return access.ForbiddenPath(id, "/clusters")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone is no error
	return nil
}

// stateFor is what of a cluster's state a caller may know; nil for nothing. While it cannot be decided, who is signed in is told
// that it is there and how it is, since that may be why.
func (h *Handler) stateFor(ctx context.Context, id auth.Identity, kinds *cache.Kinds, isDefault bool) *clusterState {
	allowed, err := h.access.MayRead(ctx, kinds, id, access.Discovery)
	if err == nil && !allowed || err != nil && id.Anonymous {
		return nil
	}
	state := stateOf(kinds, isDefault)
	if err != nil {
		state.Kinds = []kindState{}
		return &state
	}
	seen := make([]bool, len(state.Kinds))
	var asking errgroup.Group
	asking.SetLimit(myKindsAtOnce)
	for i, kind := range state.Kinds {
		asking.Go(func() error {
			scope, err := h.access.ScopeIn(ctx, id, kinds, auth.Request{Verb: "list", Group: kind.Group, Version: kind.Version, Resource: kind.Resource})
			seen[i] = err == nil && !scope.Empty()
			return nil
		})
	}
	_ = asking.Wait() // none returns one
	told := []kindState{}
	for i, kind := range state.Kinds {
		if seen[i] {
			told = append(told, kind)
		}
	}
	state.Kinds = told
	return &state
}

func stateOf(kinds *cache.Kinds, isDefault bool) clusterState {
	c := clusterState{Name: kinds.Cluster().Name(), Default: isDefault, State: "live", Kinds: []kindState{}}
	for _, store := range kinds.All() {
		kind, upstream := store.Kind(), store.Upstream()
		if !upstream.Live && upstream.Synced {
			c.State = "stale"
		}
		c.Kinds = append(c.Kinds, kindState{kind.Group, kind.Version, kind.Resource, reply.UpstreamReason(upstream), upstream.Since.UTC()})
	}
	switch {
	case kinds.Cluster().Away() != nil:
		c.State = "stale"
	case kinds.Ready() != nil:
		c.State = "starting"
	}
	return c
}
