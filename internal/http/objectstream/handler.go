// Package objectstream owns the event streams of the objects that a path names, and the watches in Kubernetes' own form:
// what is asked of them, where their clients go on, what becomes of the objects, and what callers may see of them.
//
// What it promises: a client holds what its caller may see of the cluster's state at the position that it was told, or is
// told that it has missed something. Nothing is told of an object to somebody who may not see it at that time.
//
// What it refuses: to keep anything for a client but a place in the kind's ring, and modifications that are held back.
package objectstream

import (
	"context"
	"net/url"
	"slices"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Options configure a Handler.
type Options struct {
	Access *access.Access
	// Pages reads what is asked of counts and pages: of a path whose query has one of
	// eventstream.LiveQueryParameters. It may be nil: then these are refused.
	Pages eventstream.Parser
}

// Handler opens watches.
type Handler struct{ opts Options }

// New returns a Handler.
func New(opts Options) *Handler { return &Handler{opts} }

// Parsers are how objects are asked for, by the first parts of their paths.
func (h *Handler) Parsers() eventstream.Parsers {
	objects := eventstream.Sources{Parse: h.Stream, Defaults: true}
	return eventstream.Parsers{"api": objects, "apis": objects}
}

// Stream is an eventstream.Parser: it reads what is asked of a watch.
func (h *Handler) Stream(name, path string, query url.Values) (eventstream.Opener, error) {
	if h.opts.Pages != nil && asksLiveQuery(query) {
		return h.opts.Pages(name, path, query)
	}
	req, err := parse(path, query)
	if err != nil {
		return nil, err
	}
	req.name = name
	return func(ctx context.Context, id auth.Identity) (eventstream.Source, error) {
		granted, err := h.opts.Access.Open(ctx, id, req.target, "watch")
		if err != nil {
			return nil, err
		}
		return newWatch(h.opts.Access, &id, req, granted), nil
	}, nil
}

// asksLiveQuery reports whether a query makes a watch counts or a page.
func asksLiveQuery(query url.Values) bool {
	return slices.ContainsFunc(eventstream.LiveQueryParameters(), query.Has)
}

// parse reads a watch of the objects that a path names.
func parse(path string, query url.Values) (watchRequest, error) {
	t, ok := visibility.Parse(path)
	if !ok {
		return watchRequest{}, reply.BadRequest("%q is not the path of a Kubernetes resource", path)
	}
	if err := eventstream.CheckParameters(query); err != nil {
		return watchRequest{}, err
	}
	return parseWatch(t, query)
}
