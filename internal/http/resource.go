package http

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// resource answers a Kubernetes path: an object, a list, or a stream of either.
func (s *Server) resource(w http.ResponseWriter, r *http.Request) error {
	id, err := s.caller(r)
	if healsByRetrying(err) && negotiate(r.Header) == formEvents {
		return s.refuse(w, r)
	}
	if err != nil {
		return err
	}
	if d, ok := parseDocument(r.URL.Path); ok {
		return s.document(w, r, d)
	}
	t, ok := parseTarget(r.URL.Path)
	if !ok {
		return noSuchPath(r.URL.Path)
	}
	switch accepted := negotiate(r.Header); {
	case accepted == formNone:
		return &reply{
			code:    http.StatusNotAcceptable,
			reason:  metav1.StatusReasonNotAcceptable,
			message: "only application/json and text/event-stream can be answered",
		}
	case accepted == formEvents:
		return s.singleStream(w, r, id, t)
	case isTrue(r.URL.Query().Get("watch")):
		return &reply{
			code:    http.StatusNotAcceptable,
			reason:  metav1.StatusReasonNotAcceptable,
			message: "a watch is answered as server-sent events: send Accept: text/event-stream",
		}
	case t.name != "":
		return s.get(w, r, id, t)
	}
	return s.list(w, r, id, t)
}

// noSuchPath says why a path below /api or /apis names nothing. Logs, proxies and the like are not objects: whoever asks
// the gateway for them shall know that he has to ask the API server.
func noSuchPath(path string) error {
	path = strings.TrimSuffix(path, "/")
	object, subresource := path[:strings.LastIndexByte(path, '/')], path[strings.LastIndexByte(path, '/')+1:]
	if t, ok := parseTarget(object); ok && t.name != "" && subresource != "" {
		return notFound(fmt.Sprintf("the gateway serves objects and no subresources: ask the API server itself for %s/%s", t.resource, subresource))
	}
	return notFound("the server could not find the requested resource")
}

// get answers one object.
func (s *Server) get(w http.ResponseWriter, r *http.Request, id auth.Identity, t target) error {
	store, release, err := s.synced(r.Context(), id, t, "get")
	if err != nil {
		return err
	}
	defer release()
	o := store.Snapshot().Get(t.namespace, t.name)
	if o == nil {
		return &reply{
			code:    http.StatusNotFound,
			reason:  metav1.StatusReasonNotFound,
			message: fmt.Sprintf("%s %q not found", t.qualified(), t.name),
			details: &metav1.StatusDetails{Name: t.name, Group: t.group, Kind: t.resource},
		}
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-cache, private")
	_, _ = w.Write([]byte(o.JSON())) // a client that has gone is no error
	return nil
}

// unbuiltListParameters are refused, since whoever asks for less must not get everything. What is unknown is passed
// over, as the API server does.
var unbuiltListParameters = []string{"sort", "search", "fields", "countBy"}

// list answers the objects that the selectors select, all or a page of them.
func (s *Server) list(w http.ResponseWriter, r *http.Request, id auth.Identity, t target) error {
	query, err := queryOf(r)
	if err != nil {
		return err
	}
	for _, key := range unbuiltListParameters {
		if query.Has(key) {
			return badRequest("%s: this parameter is not built yet for lists", key)
		}
	}
	selector, err := selectorOf(query)
	if err != nil {
		return err
	}
	limit, err := limitOf(query)
	if err != nil {
		return err
	}
	asked, err := askedVersionOf(query)
	if err != nil {
		return err
	}
	store, release, err := s.synced(r.Context(), id, t, "list")
	if err != nil {
		return err
	}
	defer release()
	page, err := s.pages.open(store, query.Get("continue"), store.Snapshot())
	if err != nil {
		return err
	}
	if err := asked.check(page.snapshot.Version()); err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-cache, private")

	// The continue token stands in the list's metadata, so it has to be known before the first item: the page is
	// collected first, as pointers.
	var items []*cluster.Object
	more := false
	for o := range page.snapshot.List(t.scope(), selector, page.namespace, page.name) {
		if limit > 0 && len(items) == limit {
			more = true
			break
		}
		items = append(items, o)
	}
	out := newListWriter(w, s.opts.Stream.WriteTimeout)
	out.text(`{"kind":"` + store.Kind().Kind + `List","apiVersion":"` + store.Kind().APIVersion() +
		`","metadata":{"resourceVersion":"` + strconv.FormatUint(page.snapshot.Version(), 10) + `"`)
	if more {
		out.text(`,"continue":"` + s.pages.next(store, page.snapshot, items[len(items)-1]) + `"`)
	}
	out.text(`},"items":[`)
	for i, o := range items {
		if i > 0 {
			out.text(",")
		}
		out.text(o.JSON())
	}
	out.text("]}\n")
	return out.close()
}

// synced finds the store of a target, waiting for its first list.
func (s *Server) synced(ctx context.Context, id auth.Identity, t target, verb string) (*cache.Store, func(), error) {
	store, release, err := s.use(ctx, id, t, verb)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.SyncTimeout)
	defer cancel()
	if err := store.WaitSynced(ctx); err != nil {
		release()
		return nil, nil, err
	}
	return store, release, nil
}

// scope is whose objects the target names.
func (t target) scope() stream.Scope {
	if t.namespace == "" {
		return stream.AllNamespaces()
	}
	return stream.Namespaces(t.namespace)
}

func selectorOf(query url.Values) (cache.Selector, error) {
	selector, err := cache.ParseSelector(query.Get("labelSelector"), query.Get("fieldSelector"))
	if err != nil {
		return cache.Selector{}, badRequest("%s", err)
	}
	return selector, nil
}

func limitOf(query url.Values) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return 0, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 0 {
		return 0, badRequest("limit: %q is not a number of objects", text)
	}
	return limit, nil
}

// askedVersion is what a list's resourceVersion and resourceVersionMatch ask for, as Kubernetes defines them (API
// concepts, "Resource versions"): not older than a version, or exactly it.
type askedVersion struct {
	version uint64 // 0: any
	exactly bool
}

func askedVersionOf(query url.Values) (asked askedVersion, err error) {
	text, match := query.Get("resourceVersion"), query.Get("resourceVersionMatch")
	switch match {
	case "", "NotOlderThan", "Exact":
	default:
		return asked, badRequest("resourceVersionMatch: %q is neither NotOlderThan nor Exact", match)
	}
	if text == "" {
		if match != "" {
			return asked, badRequest("resourceVersionMatch is forbidden unless resourceVersion is provided")
		}
		return asked, nil
	}
	if asked.version, err = cluster.ParseVersion(text); err != nil {
		return asked, badRequest("resourceVersion: Invalid value: %q", text)
	}
	asked.exactly = match == "Exact"
	switch {
	case query.Get("continue") != "" && asked.version != 0:
		return asked, badRequest("specifying resource version is not allowed when using continue")
	case asked.exactly && asked.version == 0:
		return asked, badRequest("resourceVersionMatch: \"Exact\" is forbidden for resourceVersion \"0\"")
	}
	return asked, nil
}

// check fails unless a list of a version is what was asked for.
func (a askedVersion) check(have uint64) error {
	switch {
	case a.version > have:
		return &reply{
			code:       http.StatusGatewayTimeout,
			reason:     metav1.StatusReasonTimeout,
			message:    fmt.Sprintf("Too large resource version: %d, current: %d", a.version, have),
			retryAfter: time.Second,
			details: &metav1.StatusDetails{
				RetryAfterSeconds: 1,
				Causes:            []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}},
			},
		}
	case a.exactly && a.version < have:
		return expired(fmt.Sprintf("The resourceVersion for the provided list is too old: %d, current: %d", a.version, have), "")
	}
	return nil
}

func isTrue(text string) bool {
	value, err := strconv.ParseBool(text)
	return err == nil && value
}
