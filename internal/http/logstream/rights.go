package logstream

import (
	"context"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Needs are what a caller must be allowed to do to be told what a path names.
func Needs(path string) ([]access.Need, error) {
	var q logRequest
	var err error
	if q.pods, q.owner, err = targets(path); err != nil {
		return nil, err
	}
	return q.needs(), nil
}

// needs are what a caller must be allowed to do, which is what kubectl logs would have to be: to
// read the text, of each pod; to list the pods, unless one is named; and to get the object to which
// they belong. So nothing is found in objects that the caller may not see, and none of these is
// looked for before all is allowed.
func (q *logRequest) needs() []access.Need {
	all := []access.Need{{Target: q.pods, Verb: "get"}}
	if q.pods.Name == "" {
		pods := q.pods
		pods.Subresource = ""
		all = append(all, access.Need{Target: pods, Verb: "list"})
	}
	if q.owner.Resource != "" {
		all = append(all, access.Need{Target: q.owner, Verb: "get"})
	}
	return all
}

// find authorizes a request: which pods the caller may see, and the kinds of pods and of their owner.
func (h *Handler) find(ctx context.Context, id auth.Identity, q logRequest) (granted access.Grant, pods, owner cluster.Kind, err error) {
	shows := auth.Scope{All: true}
	told := access.Need{Target: q.pods, Verb: "get"}
	for _, n := range q.needs() {
		var kind cluster.Kind
		if granted, kind, err = h.opts.Access.Find(ctx, id, n.Target, n.Verb); err != nil {
			told = n
			break
		}
		if n.Target == q.owner {
			owner = kind
			continue
		}
		pods, shows = kind, shows.And(granted.Visible.Shows())
	}
	if err == nil {
		var ok bool
		if granted.Visible, ok = visibility.Of(shows, q.pods, pods); !ok {
			err = access.Forbidden(id, q.pods, "get")
		}
	}
	auditrecord.Of(ctx).Decided(access.ReadVisible(visibility.VisibleTarget{Target: told.Target, Visible: granted.Visible}, told.Verb), err)
	return granted, pods, owner, err
}

// see asks again which pods a caller may see; ok is false if that is none, or one of the needs is not met any more.
func (q *logRequest) see(ctx context.Context, a *access.Access, kinds *cache.Kinds, id auth.Identity, pods, owner cluster.Kind) (_ *visibility.Visibility, ok bool, err error) {
	shows := auth.Scope{All: true}
	for _, n := range q.needs() {
		kind := pods
		if n.Target == q.owner {
			kind = owner
		}
		visible, ok, err := a.See(ctx, kinds, id, n.Target, kind, n.Verb)
		if err != nil || !ok {
			return nil, false, err
		}
		if n.Target != q.owner {
			shows = shows.And(visible.Shows())
		}
	}
	visible, ok := visibility.Of(shows, q.pods, pods)
	return visible, ok, nil
}
