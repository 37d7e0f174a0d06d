package historyapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/jobs/wire"
	"github.com/kubecast/kubecast/internal/visibility"
)

// What a job is a part of, and what its parts are, are jobs of other kinds. A caller is told of
// them what they would find in these kinds' own lists.

// links are what a page says of its jobs' parents and children.
type links struct {
	handler  *Handler
	page     *page
	caller   auth.Identity
	in       access.Grant
	target   visibility.Target        // of the page
	own      bool                     // the caller asks for their own jobs
	sees     map[string]*store.Filter // by kind: what of it the caller may see; nil: nothing
	parents  map[string]bool          // by uid: those that the caller may see
	children map[string]int           // by uid of the parent
}

// read finds what is to be said of some jobs.
func (l *links) read(ctx context.Context, jobList []*jobs.Job) error {
	l.parents, l.children = map[string]bool{}, map[string]int{}
	above, uids := map[string][]string{}, make([]string, len(jobList))
	for i, j := range jobList {
		if uids[i] = j.UID; j.Parent.UID != "" {
			above[j.Parent.Resource] = append(above[j.Parent.Resource], j.Parent.UID)
		}
	}
	for kind, uids := range above {
		f, err := l.visible(ctx, kind)
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		of := *f
		of.UIDs = slices.Compact(slices.Sorted(slices.Values(uids)))
		found, err := l.page.from.Jobs(ctx, l.in.Kinds.Cluster(), kind, of, store.JobAfter{}, len(of.UIDs))
		if err != nil {
			return err
		}
		for _, parent := range found {
			l.parents[parent.UID] = true
		}
	}
	kinds, err := l.page.from.KindsOfParts(ctx, l.in.Kinds.Cluster(), l.target.Qualified(), uids)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		f, err := l.visible(ctx, kind)
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		of := *f
		of.Parents = uids
		found, err := l.page.from.Parts(ctx, l.in.Kinds.Cluster(), kind, of)
		if err != nil {
			return err
		}
		for parent, n := range found {
			l.children[parent] += n
		}
	}
	return nil
}

// visible is what the caller may see of a kind's history, where the page is of; nil: nothing.
func (l *links) visible(ctx context.Context, kind string) (*store.Filter, error) {
	if f, known := l.sees[kind]; known {
		return f, nil
	}
	f, err := l.look(ctx, kind)
	if err == nil {
		l.sees[kind] = f
	}
	return f, err
}

func (l *links) look(ctx context.Context, kind string) (*store.Filter, error) {
	if !l.handler.opts.Jobs.Records(kind) { // any more
		return nil, nil
	}
	resource, group, _ := strings.Cut(kind, ".")
	t := visibility.Target{Cluster: l.target.Cluster, Group: group, Resource: resource, Namespace: l.target.Namespace}
	if there, err := l.in.Kinds.Cluster().Preferred(ctx, group, resource); err == nil {
		t.Version = there.Version
	}
	g, of, own, err := l.handler.permit(ctx, l.caller, t, "list", l.own)
	if err == nil {
		g.Visible, err = l.handler.narrow(ctx, g.Kinds, l.caller, t, of, "list", g.Visible)
	}
	if failed := reply.To(err); err != nil && (failed.Code == http.StatusForbidden || failed.Code == http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &store.Filter{Namespace: t.Namespace}
	if own {
		f.Own = l.caller.Username
	}
	return f, restrict(ctx, f, g.Kinds.Cluster(), g.Visible)
}

// told is a job as the caller is told it.
func (l *links) told(job wire.Job) wire.Job {
	if job.Parent != nil && !l.parents[job.Parent.UID] {
		job.Parent = nil
	}
	children := l.children[job.UID]
	job.Children = &children
	return job
}
