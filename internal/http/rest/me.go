package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

// Me is the answer to GET /auth/me: who the caller is, until when, and what they may watch where. So a portal can
// show only what works.
type Me struct {
	Username  string      `json:"username"`
	Groups    []string    `json:"groups"`
	Anonymous bool        `json:"anonymous"`
	ExpiresAt *time.Time  `json:"expiresAt"` // null: never
	Clusters  []MyCluster `json:"clusters"`
}

type MyCluster struct {
	Name    string   `json:"name"`
	Default bool     `json:"default"`
	Watch   []MyKind `json:"watch"`
}

// MyKind says how much of a kind the caller may watch: all of it, or the namespaces and the names, of which there may
// be none.
type MyKind struct {
	Group      string              `json:"group"`
	Resource   string              `json:"resource"`
	All        bool                `json:"all"`
	Namespaces []string            `json:"namespaces"`
	Names      map[string][]string `json:"names,omitempty"` // by namespace; names under "" are visible in every namespace
	Unknown    bool                `json:"unknown,omitempty"`
}

// none reports whether nothing of the kind may be watched, as far as is known.
func (k MyKind) none() bool { return !k.All && len(k.Namespaces) == 0 && len(k.Names) == 0 }

// MaxMyKinds bounds the kinds about which one request may ask, and myKindsAtOnce those that are decided concurrently.
// In authorizer mode sar, each may cost the API server some questions; MaxQuestions bounds the questions for all of
// them together.
const (
	MaxMyKinds    = 50
	myKindsAtOnce = 4
	MaxQuestions  = 2500 // enough for ten kinds, if the caller sees some of 250 namespaces
)

// Me answers GET /auth/me. The parameter kinds names the kinds in question, as in pods,jobs.batch; without it, they
// are the kinds that are cached now.
func (h *Handler) Me(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	for name := range query {
		if name != "kinds" {
			return reply.BadRequest("unknown parameter %.50q; known: kinds", name)
		}
	}
	var asked []MyKind
	if query.Has("kinds") {
		for _, name := range strings.Split(query.Get("kinds"), ",") {
			resource, group, _ := strings.Cut(name, ".")
			if resource == "" || len(name) > 317 { // a DNS label, a dot, and a DNS name
				return reply.BadRequest("kinds is a list such as pods,jobs.batch; %.50q is no kind", name)
			}
			asked = append(asked, MyKind{Group: group, Resource: resource})
		}
		if len(asked) > MaxMyKinds {
			return reply.BadRequest("%d kinds are asked about; allowed: %d", len(asked), MaxMyKinds)
		}
	}
	answer := Me{Username: id.Username, Groups: id.Groups, Anonymous: id.Anonymous}
	if !id.ExpiresAt.IsZero() {
		expires := id.ExpiresAt.UTC()
		answer.ExpiresAt = &expires
	}
	ctx, cancel := context.WithTimeout(auth.WithQuestions(r.Context(), MaxQuestions), h.opts.SyncTimeout)
	defer cancel()
	for i, kinds := range h.access.All() {
		var mine []MyKind
		if asked != nil {
			mine = h.mayWatch(ctx, id, kinds, asked)
		} else { // which kinds are cached is told only for kinds that the caller may watch
			mine = slices.DeleteFunc(h.mayWatch(ctx, id, kinds, cachedKinds(kinds)), MyKind.none)
		}
		answer.Clusters = append(answer.Clusters, MyCluster{Name: kinds.Cluster().Name(), Default: i == 0, Watch: mine})
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone is no error
	return nil
}

func cachedKinds(kinds *cache.Kinds) []MyKind {
	cached := []MyKind{}
	for _, store := range kinds.All() {
		if len(cached) < MaxMyKinds {
			cached = append(cached, MyKind{Group: store.Kind().Group, Resource: store.Kind().Resource})
		}
	}
	return cached
}

// mayWatch fills in what may be watched. A kind that cannot be decided is marked as unknown, since the others are
// useful without it.
func (h *Handler) mayWatch(ctx context.Context, id auth.Identity, kinds *cache.Kinds, about []MyKind) []MyKind {
	filled := make([]MyKind, len(about))
	var asking errgroup.Group
	asking.SetLimit(myKindsAtOnce)
	for i, kind := range about {
		asking.Go(func() error {
			scope, err := h.access.Scope(ctx, id, kinds, kind.Group, kind.Resource, "watch")
			if err != nil {
				h.opts.Log.Warn("what a caller may watch cannot be decided", "cluster", kinds.Cluster().Name(), "kind", kind.Resource, "error", err)
			}
			kind.All, kind.Namespaces, kind.Names, kind.Unknown = scope.All, append([]string{}, scope.Namespaces...), scope.Names, err != nil
			filled[i] = kind
			return nil
		})
	}
	_ = asking.Wait() // none returns an error
	return filled
}
