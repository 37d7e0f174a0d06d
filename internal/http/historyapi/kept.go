package historyapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/visibility"
)

// isOfOneJob reports whether the request is for what is kept of one job.
func (q *historyRequest) isOfOneJob() bool { return q.view == viewSpec || q.view == viewLog }

// job reads which job is asked about. There is no owner=me: callers are shown what the object said
// if they may get it, whoever is named as its owner.
func (q *historyRequest) job(query url.Values, t visibility.Target) (err error) {
	for name := range query {
		if name != "view" && name != "uid" && (name != "pod" || q.view != viewLog) {
			return reply.BadRequest("%s: has no meaning with view=%s, which is of one job", name, q.view)
		}
	}
	if q.filter.UIDs, err = valuesOf("uid", query["uid"]); err != nil {
		return err
	}
	if t.Name == "" || len(q.filter.UIDs) != 1 {
		return reply.BadRequest("view=%s: is of one job: its name ends the path, and its uid is needed", q.view)
	}
	pods, err := valuesOf("pod", query["pod"])
	if err == nil && query.Has("pod") && (len(pods) != 1 || len(pods[0]) > store.MostPodUID) {
		err = reply.BadRequest("pod: is the uid of one pod")
	}
	if len(pods) == 1 {
		q.pod = pods[0]
	}
	return err
}

// keptKind is the kind of what is asked for.
func (q *historyRequest) keptKind() store.KeptKind {
	if q.pod != "" {
		return store.KeptOfPod(q.pod)
	}
	return store.KeptKind(q.view)
}

// kept answers what is kept of a job, if the caller may see the job; of a log, if they may also read logs where it is.
func (h *Handler) kept(ctx context.Context, p *page, id auth.Identity, g access.Grant, t visibility.Target, q historyRequest) error {
	asked := []store.Filter{q.filter}
	if q.view == viewLog {
		readable, err := h.withLogs(ctx, id, t, q.filter)
		if err != nil {
			return err
		}
		asked = append(asked, readable)
	}
	kind := t.Qualified()
	for _, f := range asked {
		found, err := p.from.Jobs(ctx, g.Kinds.Cluster(), kind, f, store.JobAfter{}, 1)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return notKept(q)
		}
	}
	text, err := p.from.Kept(ctx, g.Kinds.Cluster(), kind, q.filter.UIDs[0], q.keptKind())
	switch {
	case errors.Is(err, store.ErrNotKept):
		return notKept(q)
	case errors.Is(err, store.ErrOverBudget):
		return reply.NotFoundFor(reply.ReasonNotKept, "the "+q.view+" of the job is not kept: its namespace had used up its budget (history.keepBudget)")
	}
	p.body.Write(text)
	return err
}

func notKept(q historyRequest) error {
	return reply.NotFoundFor(reply.ReasonNotKept, "there is no such job, or its "+q.view+" is not kept")
}

// withLogs completes a filter with what the caller may see of jobs who may read the logs of all
// pods in their namespace. As with jobs, a permission in a namespace is one in the namespace that
// lives: it shows nothing that was written in a former one of its name.
func (h *Handler) withLogs(ctx context.Context, id auth.Identity, t visibility.Target, f store.Filter) (store.Filter, error) {
	logs := visibility.Target{Cluster: t.Cluster, Version: "v1", Resource: "pods", Namespace: t.Namespace, Subresource: "log"}
	g, kind, err := h.opts.Access.Find(ctx, id, logs, "get")
	if err == nil && g.Visible != nil {
		err = access.Forbidden(id, logs, "get") // which pod it was is not told to callers who may read the logs of some
	}
	if err != nil {
		auditrecord.Of(ctx).Decided(access.ReadOf(logs, "get"), err)
		return f, err
	}
	visible, err := h.narrow(ctx, g.Kinds, id, logs, kind, "get", nil)
	if err != nil {
		return f, err
	}
	err = restrict(ctx, &f, g.Kinds.Cluster(), visible)
	return f, err
}

// accepted reports whether a client accepts the form of the answer, and says which one that is.
func (q *historyRequest) accepted(h http.Header) (mediaType string, err error) {
	if q.view != viewLog {
		if reply.Negotiate(h) != reply.FormJSON {
			err = reply.NotAcceptable("the history is answered as application/json or text/event-stream")
		}
		return "application/json", err
	}
	form := reply.Choose(h, func(media string, _ map[string]string) reply.Form {
		if media == "text/plain" || media == "text/*" || media == "*/*" {
			return reply.FormText
		}
		return reply.FormNone
	})
	if h.Get("Accept") != "" && form != reply.FormText {
		err = reply.NotAcceptable("a log is answered as text/plain")
	}
	return "text/plain; charset=utf-8", err
}
