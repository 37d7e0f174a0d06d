package objectstream

import (
	"net/url"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
)

// watchRequest is one watch that a client asks for.
type watchRequest struct {
	name     string // "" on a stream of a single one
	target   visibility.Target
	selector cache.Selector
	// after is resourceVersion=: start after this version, without a snapshot; 0: not asked for.
	after uint64
	// quiet is sendInitialEvents=false: start now, without a snapshot.
	quiet bool
	// lists says that the client lists again by itself when it is told a reset.
	lists bool
	// relistEnds has the watch end where a relist passed over something; see cluster.RelistHeader.
	relistEnds bool
	view       eventstream.Projection
	// conflate is the interval within which at most one modification of each object is told; 0: all are.
	conflate time.Duration
}

func parseWatch(t visibility.Target, query url.Values) (w watchRequest, err error) {
	w.target = t
	if w.selector, err = t.Paths().Selector(query.Get("labelSelector"), query.Get("fieldSelector")); err != nil {
		return w, reply.BadRequest("%s", err)
	}
	w.selector = w.selector.Search(query.Get("search"))
	if w.view, w.conflate, err = eventstream.ParseProjection(t.Paths(), query.Get); err != nil {
		return w, reply.BadRequest("%s", err)
	}
	initial := query.Get("sendInitialEvents")
	if initial != "" && initial != "true" && initial != "false" {
		return w, reply.BadRequest("sendInitialEvents: %q is neither true nor false", initial)
	}
	if text := query.Get("resourceVersion"); text != "" {
		if w.after, err = cluster.ParseVersion(text); err != nil {
			return w, reply.BadRequest("resourceVersion: Invalid value: %q", text)
		}
	}
	switch initial {
	case "true": // the client asks for a snapshot, of any version
		w.after = 0
	case "false":
		w.quiet = w.after == 0
	}
	return w, nil
}
