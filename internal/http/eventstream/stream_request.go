package eventstream

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/render"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/stream"
)

// watchRequest is one watch that a client asks for.
type watchRequest struct {
	name     string // "" on a stream of a single one
	target   access.Target
	selector cache.Selector
	// after is resourceVersion=: start after this version, without a snapshot; 0: not asked for.
	after uint64
	// quiet is sendInitialEvents=false: start now, without a snapshot.
	quiet bool
	// fields is what is wanted of each object; nil: all.
	fields *render.Fields
	// deltas asks for merge patches in place of modified objects.
	deltas bool
	// conflate is the interval within which at most one modification of each object is told; 0: all are.
	conflate time.Duration
}

// streamRequest is what a client asks of an event stream.
type streamRequest struct {
	watches   []watchRequest
	heartbeat time.Duration // 0: the server's own
}

const (
	maxWatches   = 32
	minHeartbeat = 5 * time.Second
	maxHeartbeat = 60 * time.Second
	minConflate  = 10 * time.Millisecond
	maxConflate  = time.Minute
)

// Parameters of event streams. Those of a watch stand in its own query, or on /stream beside the watches as the
// default for all.
var (
	watchParameters = []string{"labelSelector", "fieldSelector", "search", "resourceVersion", "sendInitialEvents",
		"fields", "deltas", "conflate"}
	positionParameters   = []string{"lastEventId", "last_event_id"}
	connectionParameters = append([]string{"heartbeat"}, positionParameters...)
	// What Kubernetes' clients add to a watch, and what holds of every event stream anyway.
	ignoredParameters = []string{"watch", "allowWatchBookmarks", "timeoutSeconds", "resourceVersionMatch", "pretty", "limit"}
	listParameters    = []string{"sort", "countBy", "continue"}
	// What is taken off the address before a handler sees it; see signin.TakeTicket.
	takenParameters = []string{request.TicketParameter}
)

// Parameters are the names of those that an event stream may have, and each of its watches.
func Parameters() []string { return slices.Concat(watchParameters, connectionParameters) }

// parseSingle reads the request for a stream of one watch, whose path is the request's own.
func parseSingle(t access.Target, query url.Values) (streamRequest, error) {
	if err := checkParameters(query); err != nil {
		return streamRequest{}, err
	}
	w, err := parseWatch("", t, query, nil)
	if err != nil {
		return streamRequest{}, err
	}
	req := streamRequest{watches: []watchRequest{w}}
	return req, req.connection(query)
}

// parseMulti reads the query of /stream: watches under names of the client's choice, and parameters.
func parseMulti(query url.Values) (streamRequest, error) {
	var req streamRequest
	var names []string
	defaults := url.Values{}
	// The order of the query is lost; a stable one keeps event ids comparable.
	for _, key := range slices.Sorted(maps.Keys(query)) {
		values := query[key]
		switch {
		case isParameter(key) && stream.ValidName(key) && strings.HasPrefix(values[0], "/"):
			return req, reply.BadRequest("%s: a watch cannot be called so, since it is the name of a parameter", key)
		case isParameter(key):
			defaults[key] = values
		case !stream.ValidName(key):
			return req, reply.BadRequest("%q is neither a parameter nor the name of a watch ([a-z][a-z0-9]*)", key)
		case len(values) > 1:
			return req, reply.BadRequest("%s: two watches have this name", key)
		default:
			names = append(names, key)
		}
	}
	if err := checkParameters(defaults); err != nil {
		return req, err
	}
	switch {
	case len(names) == 0:
		return req, reply.BadRequest("no watch is named: /stream?NAME=PATH, for example /stream?pods=/api/v1/pods")
	case len(names) > maxWatches:
		return req, reply.BadRequest("%d watches are more than the %d that one stream may have", len(names), maxWatches)
	}
	for _, name := range names {
		t, own, err := parseAddress(query.Get(name))
		if err != nil {
			return req, reply.BadRequest("%s%s", prefix(name), err)
		}
		w, err := parseWatch(name, t, own, defaults)
		if err != nil {
			return req, err
		}
		req.watches = append(req.watches, w)
		if err := req.connection(own); err != nil {
			return req, reply.BadRequest("%s%s", prefix(name), err)
		}
	}
	return req, req.connection(defaults)
}

// parseAddress reads the path and query that a watch would be a GET of.
func parseAddress(text string) (t access.Target, query url.Values, err error) {
	address, err := url.Parse(text)
	if err != nil || address.IsAbs() || address.Host != "" || !strings.HasPrefix(address.Path, "/") || address.Fragment != "" {
		return t, nil, fmt.Errorf("%q is not a path", text)
	}
	t, ok := access.Parse(address.Path)
	if !ok {
		return t, nil, fmt.Errorf("%q is not the path of a Kubernetes resource", address.Path)
	}
	if query, err = url.ParseQuery(address.RawQuery); err != nil {
		return t, nil, errors.New("the query of its path is malformed")
	}
	for _, key := range positionParameters {
		if query.Has(key) {
			return t, nil, fmt.Errorf("%s: there is one position for all watches, beside them", key)
		}
	}
	return t, query, checkParameters(query)
}

func isParameter(key string) bool {
	return slices.Contains(watchParameters, key) || slices.Contains(connectionParameters, key) ||
		slices.Contains(ignoredParameters, key) || slices.Contains(listParameters, key) || slices.Contains(takenParameters, key)
}

// checkParameters refuses what is unknown or not built: a client that asked for less than it gets, or for something
// else, must not find out by wrong data.
func checkParameters(query url.Values) error {
	for _, key := range slices.Sorted(maps.Keys(query)) {
		switch {
		case slices.Contains(listParameters, key):
			return reply.BadRequest("%s: has no meaning for an event stream", key)
		case slices.Contains(takenParameters, key):
			return reply.BadRequest("%s: is the request's, so it stands beside its watches", key)
		case !isParameter(key):
			return reply.BadRequest("%s: unknown parameter of an event stream", key)
		case len(query[key]) > 1:
			return reply.BadRequest("%s: given more than once", key)
		}
	}
	return nil
}

func parseWatch(name string, t access.Target, own, defaults url.Values) (watchRequest, error) {
	get := func(key string) string {
		if own.Has(key) {
			return own.Get(key)
		}
		return defaults.Get(key)
	}
	w := watchRequest{name: name, target: t}
	var err error
	if w.selector, err = cache.ParseSelector(get("labelSelector"), get("fieldSelector")); err != nil {
		return w, reply.BadRequest("%s%s", prefix(name), err)
	}
	w.selector = w.selector.Search(get("search"))
	if err := w.view(get); err != nil {
		return w, reply.BadRequest("%s%s", prefix(name), err)
	}
	initial := get("sendInitialEvents")
	if initial != "" && initial != "true" && initial != "false" {
		return w, reply.BadRequest("%ssendInitialEvents: %q is neither true nor false", prefix(name), initial)
	}
	if text := get("resourceVersion"); text != "" {
		if w.after, err = cluster.ParseVersion(text); err != nil {
			return w, reply.BadRequest("%sresourceVersion: Invalid value: %q", prefix(name), text)
		}
	}
	switch initial {
	case "true": // the snapshot is asked for, of whatever version
		w.after = 0
	case "false":
		w.quiet = w.after == 0
	}
	return w, nil
}

// view reads the parameters that say how much the client wants to be told.
func (w *watchRequest) view(get func(string) string) (err error) {
	if text := get("fields"); text != "" {
		if w.fields, err = render.ParseFields(text); err != nil {
			return err
		}
	}
	switch text := get("deltas"); text {
	case "":
	case "merge-patch":
		w.deltas = true
	default:
		return fmt.Errorf("deltas: %q is not merge-patch", text)
	}
	if text := get("conflate"); text != "" {
		interval, err := time.ParseDuration(text)
		if err != nil || interval < 0 {
			return fmt.Errorf("conflate: %q is not a duration such as 250ms", text)
		}
		if interval > 0 {
			w.conflate = min(max(interval, minConflate), maxConflate)
		}
	}
	return nil
}

func prefix(name string) string {
	if name == "" {
		return ""
	}
	return name + ": "
}

// connection reads the parameters that concern the connection; the shortest heartbeat counts.
func (r *streamRequest) connection(query url.Values) error {
	if text := query.Get("heartbeat"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return reply.BadRequest("heartbeat: %q is not a duration such as 15s", text)
		}
		d = min(max(d, minHeartbeat), maxHeartbeat)
		if r.heartbeat == 0 || d < r.heartbeat {
			r.heartbeat = d
		}
	}
	return nil
}

// positionOf is the position that a client sends: in the header, which is what an EventSource does that reconnects, or
// else in the query, where those who cannot set headers put it.
func positionOf(h http.Header, query url.Values) string {
	position := h.Get("Last-Event-ID")
	for _, key := range positionParameters {
		if position == "" {
			position = strings.TrimSpace(query.Get(key))
		}
	}
	return position
}
