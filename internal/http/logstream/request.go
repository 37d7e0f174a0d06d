package logstream

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/logs"
	"github.com/kubecast/kubecast/internal/visibility"
)

// logRequest is what a request asks for.
type logRequest struct {
	pods     visibility.Target // pods/log: what the caller must be allowed to get
	owner    visibility.Target // whose pods; no resource: nobody's, but those that are selected
	selector cache.Selector
	only     []string // containers' names; empty: all
	start    logs.Start
	search   string // only lines that contain it
	once     bool   // only what is there
}

const (
	defaultTail = 1000
	maxTail     = 1_000_000
	maxSearch   = 1024 // bytes
)

// parameters may stand in a query, beside those of all streams.
var parameters = []string{"labelSelector", "fieldSelector", "container", "tailLines", "sinceTime", "sinceSeconds", "search", "follow"}

// parse reads a request. Its errors are those of requests.
func parse(path string, query url.Values) (q logRequest, err error) {
	if q.pods, q.owner, err = targets(path); err != nil {
		return q, err
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case !slices.Contains(parameters, name):
			return q, reply.BadRequest("%s: there is no such parameter of logs; there are %s", reply.Shortened(name), strings.Join(parameters, ", "))
		case len(query[name]) > 1:
			return q, reply.BadRequest("%s: given more than once", name)
		}
	}
	selects := query.Get("labelSelector") != "" || query.Get("fieldSelector") != ""
	if selects && (q.owner.Resource != "" || q.pods.Name != "") {
		return q, reply.BadRequest("labelSelector and fieldSelector: the path names what is to be read already")
	}
	if q.selector, err = q.pods.Paths().Selector(query.Get("labelSelector"), query.Get("fieldSelector")); err != nil {
		return q, reply.BadRequest("%s", err)
	}
	if text := query.Get("container"); text != "" {
		q.only = strings.Split(text, ",")
		if slices.Contains(q.only, "") || len(q.only) > maxContainers {
			return q, reply.BadRequest("container: not a list of at most %d names", maxContainers)
		}
	}
	if q.search = query.Get("search"); len(q.search) > maxSearch || !utf8.ValidString(q.search) {
		return q, reply.BadRequest("search: more than %d bytes, or no text", maxSearch)
	}
	switch text := query.Get("follow"); text {
	case "", "true":
	case "false":
		q.once = true
	default:
		return q, reply.BadRequest("follow: %q is neither true nor false", reply.Shortened(text))
	}
	return q, q.parseStart(query)
}

func (q *logRequest) parseStart(query url.Values) error {
	tail, since, seconds := query.Get("tailLines"), query.Get("sinceTime"), query.Get("sinceSeconds")
	q.start.Tail = defaultTail
	if since != "" || seconds != "" {
		q.start.Tail = -1
	}
	if tail != "" {
		n, err := strconv.Atoi(tail)
		if err != nil || n < 0 || n > maxTail {
			return reply.BadRequest("tailLines: %q is not a number from 0 to %d", reply.Shortened(tail), maxTail)
		}
		q.start.Tail = n
	}
	switch {
	case since != "" && seconds != "":
		return reply.BadRequest("sinceTime and sinceSeconds: only one of them may be given")
	case since != "":
		at, err := time.Parse(time.RFC3339, since)
		if err != nil {
			return reply.BadRequest("sinceTime: %q is not a time such as 2026-01-31T09:00:00Z", reply.Shortened(since))
		}
		q.start.Since = at
	case seconds != "":
		n, err := strconv.Atoi(seconds)
		if err != nil || n < 1 || n > 1<<31 {
			return reply.BadRequest("sinceSeconds: %q is not a number of seconds", reply.Shortened(seconds))
		}
		q.start.Since = time.Now().Add(-time.Duration(n) * time.Second)
	}
	return nil
}

// targets reads a path: of a pod, of all pods of a namespace or of all, or of an object to which pods belong.
func targets(path string) (pods, owner visibility.Target, err error) {
	rest, _ := strings.CutPrefix(path, Prefix)
	t, ok := visibility.Parse(rest)
	switch {
	case !ok || !utf8.ValidString(rest):
		return pods, owner, reply.NotFound("below /logs stands the path of a pod, of pods or of what owns pods, such as /logs/apis/batch/v1/namespaces/default/jobs/train")
	case t.Group == "" && t.Version == "v1" && t.Resource == "pods":
		pods = t
	case t.Name == "" || t.Namespace == "", t.Group == "" && t.Resource != "replicationcontrollers": // nothing else of the core group makes pods
		return pods, owner, reply.NotFound("below /logs stands the path of one owner of pods in its namespace, or of pods")
	default:
		owner = t
		pods = visibility.Target{Cluster: t.Cluster, Version: "v1", Resource: "pods", Namespace: t.Namespace}
	}
	if pods.Name != "" && pods.Namespace == "" {
		return pods, owner, reply.NotFound("the server could not find the requested resource: pods are in namespaces")
	}
	pods.Subresource = "log"
	return pods, owner, nil
}

// selects reports whether a pod is one that is asked for, as far as its own text says.
func (q *logRequest) selects(match func(*cluster.Object) bool, o *cluster.Object) bool {
	return (q.pods.Namespace == "" || o.GetNamespace() == q.pods.Namespace) &&
		(q.pods.Name == "" || o.GetName() == q.pods.Name) && (match == nil || match(o))
}
