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
	State   string      `json:"state"` // live, stale (away, or a watch is lost) or starting (a kind to preload is not read yet)
	Kinds   []kindState `json:"kinds"` // those that are cached now
}

type kindState struct {
	Group    string    `json:"group"`
	Version  string    `json:"version"`
	Resource string    `json:"resource"`
	State    string    `json:"state"` // live, or why not: starting, unreachable, refused
	Since    time.Time `json:"since"`
}

// clusterWithin is how long /clusters waits for the decision whether the caller may know of a cluster. It is short,
// since /clusters is asked for when something is wrong.
const clusterWithin = 2 * time.Second

// Clusters answers GET /clusters: the clusters whose discovery the caller may read, with their states. Of the cached
// kinds, it names those that the caller may list, since the others would tell what other users look at.
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

// stateFor returns the part of a cluster's state that a caller may know; nil for nothing. If that cannot be decided,
// a user that is signed in is still told the cluster's name and state, which may be the reason.
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
			scope, err := h.access.Scope(ctx, id, kinds, kind.Group, kind.Resource, "list")
			seen[i] = err == nil && !scope.Empty()
			return nil
		})
	}
	_ = asking.Wait() // none returns an error
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
