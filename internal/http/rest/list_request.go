package rest

import (
	"math"
	"net/url"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/render"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
)

// listRequest is what a client asks for in a list.
type listRequest struct {
	render.View
	selector cache.Selector
	order    cache.Order
	limit    int // 0: all
	offset   int // where a sorted list begins
	token    string
	asked    askedVersion
	counting bool // how many there are, by countBy, in place of the objects themselves
	countBy  cache.Grouping
}

func parseList(t visibility.Target, query url.Values, accepted reply.Form) (req listRequest, err error) {
	if req.View, err = render.ParseView(t.Paths(), query, accepted); err != nil {
		return req, err
	}
	if req.selector, err = t.Paths().Selector(query.Get("labelSelector"), query.Get("fieldSelector")); err != nil {
		return req, reply.BadSelector(err)
	}
	req.selector = req.selector.Search(query.Get("search"))
	if req.order, err = t.Paths().Order(query.Get("sort")); err != nil {
		return req, reply.BadRequest("sort: %s", err)
	}
	if req.limit, err = limitOf(query); err != nil {
		return req, err
	}
	if text := query.Get("timeoutSeconds"); text != "" { // lists are quick, but a text that is not a number is a mistake
		if _, err := reply.Number("timeoutSeconds", text); err != nil {
			return req, err
		}
	}
	req.token = query.Get("continue")
	if req.offset, err = offsetOf(query); err != nil {
		return req, err
	}
	if req.asked, err = askedVersionOf(query); err != nil {
		return req, err
	}
	if req.token != "" && req.asked.version != 0 {
		if _, _, err := decodeToken(req.token, req.order); err != nil {
			return req, err
		}
		return req, reply.BadRequest("specifying resource version is not allowed when using continue")
	}
	if req.counting = query.Has("countBy"); !req.counting {
		return req, nil
	}
	if req.countBy, err = t.Paths().Grouping(query.Get("countBy")); err != nil {
		return req, reply.BadRequest("countBy: %s", err)
	}
	for _, other := range []string{"sort", "fields", "continue", "offset"} {
		if query.Get(other) != "" {
			return req, reply.BadRequest("%s: has no meaning beside countBy", other)
		}
	}
	if accepted != reply.FormJSON {
		return req, reply.NotAcceptable("counts are answered as application/json only")
	}
	return req, nil
}

func limitOf(query url.Values) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return 0, nil
	}
	limit, err := reply.Number("limit", text)
	return int(min(limit, math.MaxInt)), err
}

// offsetOf returns how many objects of a sorted list come before the first one of the answer. As on
// a live page it names places, which move; continue goes on behind an object.
func offsetOf(query url.Values) (int, error) {
	text := query.Get("offset")
	if text == "" {
		return 0, nil
	}
	offset, err := strconv.Atoi(text)
	switch {
	case err != nil || offset < 0:
		return 0, reply.BadRequest("offset: %q is not a place", text)
	case query.Get("sort") == "" && !query.Has("countBy"): // countBy refuses both
		return 0, reply.BadRequest("offset: has no meaning without sort")
	case query.Get("continue") != "":
		return 0, reply.BadRequest("offset: has no meaning beside continue")
	}
	return offset, nil
}

// askedVersion is what a list's resourceVersion and resourceVersionMatch ask for, as Kubernetes defines them (API
// concepts, "Resource versions"): a list that is not older than a version, or exactly of that version.
type askedVersion struct {
	version uint64 // 0: any
	exactly bool
}

func askedVersionOf(query url.Values) (asked askedVersion, err error) {
	options := internalversion.ListOptions{
		ResourceVersion:      query.Get("resourceVersion"),
		ResourceVersionMatch: metav1.ResourceVersionMatch(query.Get("resourceVersionMatch")),
		Continue:             query.Get("continue"),
	}
	if query.Get("sendInitialEvents") != "" {
		options.SendInitialEvents = new(bool) // which no list may have
	}
	if err := reply.CheckOptions(&options); err != nil {
		return asked, err
	}
	if asked.version, err = versionOf(query); err != nil {
		return asked, err
	}
	asked.exactly = options.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	return asked, nil
}

// versionOf returns the version than which an answer must not be older; 0 for any.
func versionOf(query url.Values) (uint64, error) {
	text := query.Get("resourceVersion")
	if text == "" {
		return 0, nil
	}
	version, err := cluster.ParseVersion(text)
	if err != nil {
		return 0, reply.InvalidVersion(text, err)
	}
	return version, nil
}
