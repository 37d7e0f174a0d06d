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
	"github.com/kubecast/kubecast/internal/http/render"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/stream"
)

// streamRequest is what a client asks of an event stream.
type streamRequest struct {
	openings  []opening     // of its sources
	several   bool          // there may be several sources, each of which has a name
	heartbeat time.Duration // 0: the server's own
	text      bool          // lines are answered, and no events
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
	// Parameters that Kubernetes' clients add to a watch, and that ask for what every event stream does anyway.
	ignoredParameters = []string{"watch", "allowWatchBookmarks", "timeoutSeconds", "resourceVersionMatch", "pretty"}
	listParameters    = []string{"continue"}
	// Parameters that make a watch another source: counts, or a page.
	liveQueryParameters = []string{"countBy", "limit", "sort", "offset"}
	// Parameters that are taken off the address before a handler sees it; see signin.TakeTicket.
	takenParameters = []string{request.TicketParameter}
)

// Parameters are the names of all parameters that an event stream, or one of its watches, may have.
func Parameters() []string {
	return slices.Concat(watchParameters, connectionParameters)
}

// LiveQueryParameters are the names of those that make a watch counts or a page.
func LiveQueryParameters() []string { return slices.Clone(liveQueryParameters) }

// WatchParameters are those that every watch may have, and that stand beside the watches on /stream as well.
func WatchParameters() []string { return slices.Concat(watchParameters, ignoredParameters) }

// Parsers says how sources are asked for, by the first part of their paths: "history", or "apis". That may stand below a
// cluster's.
type Parsers map[string]Sources

// Sources are those that some paths name.
type Sources struct {
	Parse Parser
	// Defaults says that parameters which stand beside the sources on /stream count for each of
	// these sources that has not its own.
	Defaults bool
}

// of is how the source of a path is asked for; its Parse is nil if there is none.
func (p Parsers) of(path string) Sources {
	if below, ok := strings.CutPrefix(path, "/clusters/"); ok {
		_, path, _ = strings.Cut(below, "/")
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return p[first]
}

// parseSingle reads the request for a stream of one source.
func parseSingle(parse Parser, path string, query url.Values) (req streamRequest, err error) {
	own := url.Values{}
	for key, values := range query {
		switch {
		case !slices.Contains(connectionParameters, key):
			own[key] = values
		case len(values) > 1:
			return req, reply.BadRequest("%s: given more than once", key)
		}
	}
	open, err := parse("", path, own)
	if err != nil {
		return req, err
	}
	req.openings = []opening{{open: open}}
	return req, req.connection(query)
}

// parseMulti reads the query of /stream: sources under names of the client's choice, and parameters.
func parseMulti(query url.Values, parsers Parsers) (streamRequest, error) {
	req := streamRequest{several: true}
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
	if err := CheckParameters(defaults); err != nil {
		return req, err
	}
	switch {
	case len(names) == 0:
		return req, reply.BadRequest("no watch is named: /stream?NAME=PATH, for example /stream?pods=/api/v1/pods")
	case len(names) > maxWatches:
		return req, reply.BadRequest("%d watches are more than the %d that one stream may have", len(names), maxWatches)
	}
	for _, name := range names {
		path, own, err := parseAddress(query.Get(name))
		if err != nil {
			return req, reply.BadRequest("%s%s", prefix(name), err)
		}
		of := parsers.of(path)
		if of.Parse == nil {
			return req, reply.BadRequest("%s%q is not the path of a Kubernetes resource", prefix(name), path)
		}
		asked := maps.Clone(own)
		for _, key := range watchParameters {
			if of.Defaults && defaults.Has(key) && !own.Has(key) {
				asked[key] = defaults[key]
			}
		}
		parse := func(_, path string, query url.Values) (Opener, error) { return of.Parse(name, path, query) }
		one, err := parseSingle(parse, path, asked)
		if err != nil {
			return req, named(name, err)
		}
		req.openings = append(req.openings, opening{name, one.openings[0].open})
		if err := req.connection(own); err != nil {
			return req, reply.BadRequest("%s%s", prefix(name), err)
		}
	}
	return req, req.connection(defaults)
}

// named is an error about one of several sources.
func named(name string, err error) error {
	failed := *reply.To(err)
	failed.Message = prefix(name) + failed.Message
	return &failed
}

// parseAddress reads the path and query that a source would be a GET of.
func parseAddress(text string) (path string, query url.Values, err error) {
	address, err := url.Parse(text)
	if err != nil || address.IsAbs() || address.Host != "" || !strings.HasPrefix(address.Path, "/") || address.Fragment != "" {
		return "", nil, fmt.Errorf("%q is not a path", text)
	}
	if query, err = url.ParseQuery(address.RawQuery); err != nil {
		return "", nil, errors.New("the query of its path is malformed")
	}
	for _, key := range positionParameters {
		if query.Has(key) {
			return "", nil, fmt.Errorf("%s: there is one position for all watches, beside them", key)
		}
	}
	for _, key := range takenParameters {
		if query.Has(key) {
			return "", nil, fmt.Errorf("%s: is the request's, so it stands beside its watches", key)
		}
	}
	return address.Path, query, nil
}

func isParameter(key string) bool {
	return slices.Contains(watchParameters, key) || slices.Contains(connectionParameters, key) ||
		slices.Contains(liveQueryParameters, key) || slices.Contains(ignoredParameters, key) || slices.Contains(listParameters, key) || slices.Contains(takenParameters, key)
}

// CheckParameters refuses parameters that are unknown or not built. Otherwise a client that asked
// for less than it gets, or for something else, would find out only by wrong data.
func CheckParameters(query url.Values) error {
	for _, key := range slices.Sorted(maps.Keys(query)) {
		switch {
		case slices.Contains(listParameters, key):
			return reply.BadRequest("%s: has no meaning for an event stream", key)
		case slices.Contains(liveQueryParameters, key):
			return reply.BadRequest("%s: stands in the query of the watch that it concerns", key)
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

// ParseProjection reads the parameters that say how much of each object the client wants, and at
// most how often; conflate is 0 if it does not say.
func ParseProjection(of cache.Paths, get func(string) string) (v Projection, conflate time.Duration, err error) {
	if text := get("fields"); text != "" {
		if v.fields, err = render.ParseFields(of, text); err != nil {
			return v, 0, err
		}
	}
	switch text := get("deltas"); text {
	case "":
	case "merge-patch":
		v.deltas = true
	default:
		return v, 0, fmt.Errorf("deltas: %q is not merge-patch", text)
	}
	if text := get("conflate"); text != "" {
		interval, err := time.ParseDuration(text)
		if err != nil || interval < 0 {
			return v, 0, fmt.Errorf("conflate: %q is not a duration such as 250ms", text)
		}
		if interval > 0 {
			conflate = min(max(interval, minConflate), maxConflate)
		}
	}
	return v, conflate, nil
}

func prefix(name string) string {
	if name == "" {
		return ""
	}
	return name + ": "
}

// connection reads the parameters that concern the connection. If there are several heartbeats, the shortest counts.
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

// PositionOf is the position that a client sends. An EventSource that reconnects sends it in a header. Clients that
// cannot set headers put it into the query.
func PositionOf(h http.Header, query url.Values) string {
	position := h.Get("Last-Event-ID")
	for _, key := range positionParameters {
		if position == "" {
			position = strings.TrimSpace(query.Get(key))
		}
	}
	return position
}
