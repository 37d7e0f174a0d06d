package http

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

// me is what GET /auth/me answers: who the caller is, until when, and what he may watch where, so that a portal can
// draw only what works.
type me struct {
	Username  string      `json:"username"`
	Groups    []string    `json:"groups"`
	Anonymous bool        `json:"anonymous"`
	ExpiresAt *time.Time  `json:"expiresAt"` // null: never
	Clusters  []myCluster `json:"clusters"`
}

type myCluster struct {
	Name    string   `json:"name"`
	Default bool     `json:"default"`
	Watch   []myKind `json:"watch"`
}

// myKind says what of a kind the caller may watch: all of it, or the namespaces and the names, of which there may be none.
type myKind struct {
	Group      string              `json:"group"`
	Resource   string              `json:"resource"`
	All        bool                `json:"all"`
	Namespaces []string            `json:"namespaces"`
	Names      map[string][]string `json:"names,omitempty"` // by namespace; under "" those of every namespace
	Unknown    bool                `json:"unknown,omitempty"`
}

// none reports whether nothing of the kind may be watched, as far as that is known.
func (k myKind) none() bool { return !k.All && len(k.Namespaces) == 0 && len(k.Names) == 0 }

// maxMyKinds bounds the kinds that one request may ask about, and myKindsAtOnce those that are asked about at once: each may cost
// the API server some questions (authorizer mode sar), of which maxQuestions are for all of them together.
const (
	maxMyKinds    = 50
	myKindsAtOnce = 4
	maxQuestions  = 2500 // ten kinds, in a cluster of 250 namespaces of which the caller sees some
)

// authMe answers GET /auth/me. The parameter kinds names what is asked about, as in pods,jobs.batch; without it that is
// what is cached now.
func (s *Server) authMe(w http.ResponseWriter, r *http.Request) error {
	id, err := s.caller(r)
	if err != nil {
		return err
	}
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	for name := range query {
		if name != "kinds" {
			return reply.BadRequest("unknown parameter %.50q; known: kinds", name)
		}
	}
	var asked []myKind
	if query.Has("kinds") {
		for _, name := range strings.Split(query.Get("kinds"), ",") {
			resource, group, _ := strings.Cut(name, ".")
			if resource == "" || len(name) > 317 { // a DNS label, a dot, and a DNS name
				return reply.BadRequest("kinds is a list such as pods,jobs.batch; %.50q is no kind", name)
			}
			asked = append(asked, myKind{Group: group, Resource: resource})
		}
		if len(asked) > maxMyKinds {
			return reply.BadRequest("%d kinds are asked about; allowed: %d", len(asked), maxMyKinds)
		}
	}
	answer := me{Username: id.Username, Groups: id.Groups, Anonymous: id.Anonymous}
	if !id.ExpiresAt.IsZero() {
		expires := id.ExpiresAt.UTC()
		answer.ExpiresAt = &expires
	}
	ctx, cancel := context.WithTimeout(auth.WithQuestions(r.Context(), maxQuestions), s.opts.SyncTimeout)
	defer cancel()
	for i, kinds := range s.access.All() {
		var mine []myKind
		if asked != nil {
			mine = s.mayWatch(ctx, id, kinds, asked)
		} else { // which kinds others look at is told to those who may look at them
			mine = slices.DeleteFunc(s.mayWatch(ctx, id, kinds, cachedKinds(kinds)), myKind.none)
		}
		answer.Clusters = append(answer.Clusters, myCluster{Name: kinds.Cluster().Name(), Default: i == 0, Watch: mine})
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone is no error
	return nil
}

func cachedKinds(kinds *cache.Kinds) []myKind {
	cached := []myKind{}
	for _, store := range kinds.All() {
		if len(cached) < maxMyKinds {
			cached = append(cached, myKind{Group: store.Kind().Group, Resource: store.Kind().Resource})
		}
	}
	return cached
}

// mayWatch fills in what may be watched. What cannot be decided is marked so, since the rest is of use without it.
func (s *Server) mayWatch(ctx context.Context, id auth.Identity, kinds *cache.Kinds, about []myKind) []myKind {
	filled := make([]myKind, len(about))
	var asking errgroup.Group
	asking.SetLimit(myKindsAtOnce)
	for i, kind := range about {
		asking.Go(func() error {
			scope, err := s.access.Scope(ctx, id, kinds, kind.Group, kind.Resource, "watch")
			if err != nil {
				s.log.Warn("what a caller may watch cannot be decided", "cluster", kinds.Cluster().Name(), "kind", kind.Resource, "error", err)
			}
			kind.All, kind.Namespaces, kind.Names, kind.Unknown = scope.All, append([]string{}, scope.Namespaces...), scope.Names, err != nil
			filled[i] = kind
			return nil
		})
	}
	_ = asking.Wait() // none returns one
	return filled
}
