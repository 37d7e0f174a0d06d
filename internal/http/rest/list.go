package rest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/render"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// get answers one object.
func (h *Handler) get(w http.ResponseWriter, r *http.Request, id auth.Identity, t visibility.Target, accepted reply.Form) error {
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	v, err := render.ParseView(t.Paths(), query, accepted)
	if err != nil {
		return err
	}
	version, err := versionOf(query)
	if err != nil {
		return err
	}
	granted, err := h.access.OpenSynced(r.Context(), id, t, "get")
	if err != nil {
		return err
	}
	defer granted.Release()
	store := granted.Store
	if id.Gateway && version == 0 { // which relies on it that this is how it is now, past all caches
		now, err := granted.Kinds.Cluster().Get(r.Context(), store.Kind(), t.Namespace, t.Name)
		switch {
		case apierrors.IsNotFound(err):
			return noObject(t)
		case err != nil:
			return reply.Unavailable("the cluster cannot be asked how it is now", time.Second, err)
		}
		version = now.Version()
	}
	if err := access.AwaitVersion(r.Context(), store, version); err != nil {
		return err
	}
	epoch := epochOf(r.Context(), granted)
	reply.Warn(w, store.Warnings())
	o := store.Snapshot().Get(t.Namespace, t.Name)
	if o == nil {
		return noObject(t)
	}
	printer := render.NewPrinter(r.Context(), granted.Kinds.Cluster(), store.Kind(), v)
	setHeaders(w)
	if reply.NotModified(w, r, etag(epoch, granted, contentOfObject(o), v)) {
		return nil
	}
	return h.write(w, r, id, printer.Object(o))
}

// isTheirs reports whether the caller may be shown a page of a snapshot that was kept: a permission
// in a namespace shows nothing of one that had its name before.
func (h *Handler) isTheirs(ctx context.Context, granted access.Grant, id *auth.Identity, p page, task *budget.Task) bool {
	if !p.part.IsBound() {
		return true
	}
	now := granted.Store.Snapshot()
	objects := slices.Collect(p.part.List(p.snapshot, cache.Selector{}.Stepping(task.Step), "", ""))
	return task.Err() == nil && h.access.AreTheirs(ctx, granted.Kinds, id, p.part, "list", now, objects)
}

// noObject is a 404 in the API server's own words.
func noObject(t visibility.Target) error {
	return &reply.Error{
		Code:    http.StatusNotFound,
		Reason:  metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("%s %q not found", t.Qualified(), t.Name),
		Details: &metav1.StatusDetails{Name: t.Name, Group: t.Group, Kind: t.Resource},
	}
}

// write writes an answer that is one object, on a line of its own.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, id auth.Identity, body string) error {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+len(lineEnd)))
	if len(body) < smallAnswer && (len(body) < worthCoding || h.opts.Codings.For(r.Header) == nil) {
		return writeSmall(w, body, h.opts.WriteTimeout)
	}
	out := h.newListWriter(w, r, id.QuotaOwner())
	out.text(body)
	out.text(lineEnd)
	return out.close()
}

// lineEnd ends each answer of an API server.
const lineEnd = "\n"

// list answers the objects that the selectors select, all or a page of them, or how many there are.
func (h *Handler) list(w http.ResponseWriter, r *http.Request, id auth.Identity, t visibility.Target, accepted reply.Form) error {
	query, err := request.Query(r)
	if err != nil {
		return err
	}
	req, err := parseList(t, query, accepted)
	if err != nil {
		return err
	}
	granted, err := h.access.OpenSynced(r.Context(), id, t, "list")
	if err != nil {
		return err
	}
	defer granted.Release()
	store, visible := granted.Store, visibility.VisibleTarget{Target: t, Visible: granted.Visible}
	if id.Gateway && req.asked.version == 0 && query.Get("continue") == "" && t.Group == "" && t.Resource == "namespaces" {
		// See get. Of other lists, a gateway relies on none to be of now.
		if req.asked.version, err = granted.Kinds.Cluster().Newest(r.Context(), store.Kind()); err != nil {
			return reply.Unavailable("the cluster cannot be asked how it is now", time.Second, err)
		}
	}
	if err := access.AwaitVersion(r.Context(), store, req.asked.version); err != nil {
		return err
	}
	if req.asked.exactly {
		if err := access.AwaitAll(r.Context(), store, req.asked.version); err != nil {
			return err
		}
	}
	epoch := epochOf(r.Context(), granted)
	task := budget.NewTask(r.Context(), h.opts.Processors, id.QuotaOwner())
	defer task.Rest()
	page, err := h.pages.open(store, visible, epoch, req, func(kept page) bool { return h.isTheirs(r.Context(), granted, &id, kept, task) })
	if err != nil {
		return err
	}
	setHeaders(w)
	reply.Warn(w, store.Warnings())
	if epoch != "" {
		w.Header().Set(cluster.HistoryHeader, granted.History(epoch))
	}
	if page.whole() && reply.NotModified(w, r, etag(epoch, granted, contentOf(page.changed), req.View)) {
		return nil
	}
	req.selector = req.selector.Stepping(task.Step)
	if req.counting {
		return h.count(w, r, id, page, req, task)
	}
	printer := render.NewPrinter(r.Context(), granted.Kinds.Cluster(), store.Kind(), req.View)
	// The continue token stands in the list's metadata, so it has to be known before the first item.
	items, rest, err := h.pages.read(r.Context(), page, req, reader{id.QuotaOwner(), task})
	if err != nil {
		return err
	}
	out := h.newListWriter(w, r, id.QuotaOwner())
	out.of(store, page.snapshot)
	out.task = task
	form := store.Form()
	form.Untyped = form.Untyped && req.View.Form == reply.FormJSON
	out.list(printer, items, listMeta(page, rest, form), form)
	return out.close()
}

// listMeta returns a list's metadata as JSON, in the order in which the API server writes it.
func listMeta(page page, rest rest, form cluster.ListForm) []byte {
	version := append(strconv.AppendUint([]byte(`"resourceVersion":"`), page.revision.Version, 10), '"')
	var more []byte
	if rest.token != "" || form.Untyped {
		more = append(append(append(more, `"continue":"`...), rest.token...), '"')
	}
	if rest.items > 0 {
		more = strconv.AppendInt(append(more, `,"remainingItemCount":`...), int64(rest.items), 10)
	}
	meta := []byte{'{'}
	switch {
	case form.Untyped:
		meta = append(append(append(meta, more...), ','), version...)
	case more != nil:
		meta = append(append(append(meta, version...), ','), more...)
	default:
		meta = append(meta, version...)
	}
	return append(meta, '}')
}

// count answers how many objects have each value at a path, or each pair of values at two.
func (h *Handler) count(w http.ResponseWriter, r *http.Request, id auth.Identity, page page, req listRequest, task *budget.Task) error {
	counts := cache.CountBy(page.part.List(page.snapshot, req.selector, "", ""), req.countBy, task.Step)
	if task.Err() != nil {
		return task.Err()
	}
	body := counts.AppendJSON([]byte(`{"counts":`), req.limit)
	body = strconv.AppendUint(append(body, `,"resourceVersion":"`...), page.revision.Version, 10)
	body = append(body, `"}`...)
	task.Rest() // no other user waits while the client takes this
	out := h.newListWriter(w, r, id.QuotaOwner())
	out.bytes(body)
	return out.close()
}

func setHeaders(w http.ResponseWriter) {
	header := w.Header()
	header["Content-Type"], header["Cache-Control"] = typeJSON, notShared
	header["Vary"] = append(header["Vary"], differs...)
}

// Values of headers that all answers share; net/http copies them.
var typeJSON, notShared, differs = []string{"application/json"}, []string{"no-cache, private"}, []string{reply.DiffersBy}

// etag names what an answer depends on beside its address: the history (epoch), its content in
// that, the form that the Accept header chose, and the caller's visibility. It is weak, since an
// unchanged list may still carry a newer version. If the epoch is not known, there is no ETag.
func etag(epoch string, granted access.Grant, content string, v render.View) string {
	if v.Form.IsTable() || epoch == "" { // ages depend on the moment
		return ""
	}
	return `W/"` + epoch + "." + content + "." + strconv.Itoa(int(v.Form)) + granted.Visible.Tag() + `"`
}

// contentOf names what a list has that last changed at a revision.
func contentOf(changed stream.Revision) string {
	name := strconv.FormatUint(changed.Version, 10)
	if changed.Part > 1 {
		name += "-" + strconv.Itoa(changed.Part)
	}
	return name
}

// contentOfObject names what an object has. Its version is not enough: when a definition changes,
// its objects have other defaults, at the same versions.
func contentOfObject(o *cluster.Object) string {
	return o.GetResourceVersion() + "-" + strconv.FormatUint(uint64(o.Sum()), 36)
}

// epochOf is the epoch of what was granted; "" if it is not known. It is asked for before the
// content is read: what was of a history that has ended meanwhile then has that history's epoch,
// which nobody is told again.
func epochOf(ctx context.Context, granted access.Grant) string {
	epoch, err := granted.Epoch(ctx)
	if err != nil {
		return ""
	}
	return epoch
}
