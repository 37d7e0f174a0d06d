package rest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/render"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/visibility"
)

// measured answers a get or a list of a kind that is measured, from a list that all callers share
// for a moment. Such objects have no versions, so there are no pages and no ETag: limit, continue
// and resourceVersion are passed over, as metrics-server does.
func (h *Handler) measured(w http.ResponseWriter, r *http.Request, id auth.Identity, t visibility.Target, accepted reply.Form) error {
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	for _, name := range []string{"limit", "continue", "resourceVersion", "resourceVersionMatch"} {
		query.Del(name)
	}
	req, err := parseList(t, query, accepted)
	switch {
	case err != nil:
		return err
	case req.counting || query.Get("sort") != "":
		return reply.BadRequest("what is measured can be neither sorted nor counted")
	}
	verb := "list"
	if t.Name != "" {
		verb = "get"
	}
	granted, kind, err := h.access.FindMeasured(r.Context(), id, t, verb)
	if err != nil {
		return err
	}
	all, err := granted.Kinds.Cluster().Measurements(r.Context(), kind)
	switch {
	case errors.Is(err, cluster.ErrNotMeasured):
		// In the API server's own words, and as there without Retry-After, at which kubectl would
		// try for 20 s to no avail.
		return reply.Unavailable(fmt.Sprintf("the server is currently unable to handle the request (get %s)", kind), 0, err)
	case err != nil:
		return err
	}
	printer := render.NewPrinter(r.Context(), granted.Kinds.Cluster(), kind, req.View)
	if t.Name != "" {
		o := all.Get(t.Namespace, t.Name)
		if o == nil {
			return noObject(t)
		}
		setHeaders(w)
		return h.write(w, r, id, printer.Object(o))
	}
	task := budget.NewTask(r.Context(), h.opts.Processors, id.QuotaOwner())
	defer task.Rest()
	var items []*cluster.Object
	for _, o := range all.In(t.Namespace) {
		if !task.Step(req.selector.Cost(o)) {
			return task.Err()
		}
		if granted.Visible.Sees(o) && req.selector.Matches(o) {
			items = append(items, o)
		}
	}
	setHeaders(w)
	out := h.newListWriter(w, r, id.QuotaOwner())
	out.task = task
	out.list(printer, items, []byte("{}"), cluster.ListForm{})
	return out.close()
}
