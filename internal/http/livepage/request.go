package livepage

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/livequery"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Options configure a Handler; all are required.
type Options struct {
	Access  *access.Access
	Queries *livequery.Registry
}

// Handler opens live counts and pages.
type Handler struct{ opts Options }

// New returns a Handler.
func New(opts Options) *Handler { return &Handler{opts} }

// request is what a client asks for.
type request struct {
	target   visibility.Target
	selector cache.Selector
	order    cache.Order
	by       cache.Grouping // of counts
	counts   bool           // and no page
	limit    int            // places of the page; of counts, how many values at most, and 0 for all
	offset   int
	fields   string
	view     eventstream.Projection
	conflate time.Duration // the client is told at most once in it
}

const (
	maxPlaces      = 500
	conflateCounts = 250 * time.Millisecond
	conflatePage   = 100 * time.Millisecond
)

// Stream is an eventstream.Parser: it reads what is asked of counts or a page.
func (h *Handler) Stream(name, path string, query url.Values) (eventstream.Opener, error) {
	req, err := parse(path, query)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, id auth.Identity) (eventstream.Source, error) {
		return h.open(ctx, id, name, req)
	}, nil
}

func parse(path string, query url.Values) (req request, err error) {
	t, ok := visibility.Parse(path)
	switch {
	case !ok:
		return req, reply.BadRequest("%q is not the path of a Kubernetes resource", path)
	case t.Name != "":
		return req, reply.BadRequest("a single object has neither pages nor counts")
	}
	req.target, req.counts = t, query.Has("countBy")
	taken := append(eventstream.WatchParameters(), "limit", "sort", "offset")
	refused := []string{"resourceVersion", "sendInitialEvents"}
	what := "a page"
	if req.counts {
		taken = append(eventstream.WatchParameters(), "limit", "countBy")
		refused, what = append(refused, "fields", "deltas"), "counts"
	}
	for key, values := range query {
		switch {
		case !slices.Contains(taken, key) || slices.Contains(refused, key) && values[0] != "":
			return req, reply.BadRequest("%s: has no meaning for %s", key, what)
		case len(values) > 1:
			return req, reply.BadRequest("%s: given more than once", key)
		}
	}
	if req.selector, err = t.Paths().Selector(query.Get("labelSelector"), query.Get("fieldSelector")); err != nil {
		return req, reply.BadRequest("%s", err)
	}
	req.selector = req.selector.Search(query.Get("search"))
	req.fields = query.Get("fields")
	if req.view, req.conflate, err = eventstream.ParseProjection(t.Paths(), query.Get); err != nil {
		return req, reply.BadRequest("%s", err)
	}
	if req.counts {
		return req, req.parseCounts(query)
	}
	return req, req.parsePage(query)
}

func (req *request) parseCounts(query url.Values) (err error) {
	if req.by, err = req.target.Paths().Grouping(query.Get("countBy")); err != nil {
		return reply.BadRequest("countBy: %s", err)
	}
	if req.conflate == 0 {
		req.conflate = conflateCounts
	}
	if text := query.Get("limit"); text != "" {
		if req.limit, err = strconv.Atoi(text); err != nil || req.limit < 0 {
			return reply.BadRequest("limit: %q is not a number of values", text)
		}
	}
	return nil
}

func (req *request) parsePage(query url.Values) (err error) {
	if req.order, err = req.target.Paths().Order(query.Get("sort")); err != nil {
		return reply.BadRequest("sort: %s", err)
	}
	if req.conflate == 0 {
		req.conflate = conflatePage
	}
	text := query.Get("limit")
	if req.limit, err = strconv.Atoi(text); err != nil || req.limit < 1 || req.limit > maxPlaces {
		return reply.BadRequest("limit: %q is not a number of places from 1 to %d, which a live page has", text, maxPlaces)
	}
	if text := query.Get("offset"); text != "" {
		if req.offset, err = strconv.Atoi(text); err != nil || req.offset < 0 {
			return reply.BadRequest("offset: %q is not a place", text)
		}
	}
	return nil
}

// mark names what is asked, and what of it may be seen, in event ids: a position says nothing of
// another page. It has the form of a visibility's name.
func (req *request) mark(visible *visibility.Visibility) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d %d %q %q", req.target, req.selector.Key(), req.order, req.offset, req.limit, req.fields, visible.Tag()))
	seen := markAll
	if visible != nil {
		seen = markSome
	}
	return seen + strings.ToLower(base32.HexEncoding.EncodeToString(sum[:5])[1:])
}

// What marks begin with: whether the caller saw all that was asked for.
const (
	markAll  = "sa"
	markSome = "sn"
)
