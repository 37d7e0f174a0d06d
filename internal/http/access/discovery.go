package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Discovery is the path whose permission decides who may know which kinds a cluster has. By Kubernetes' default
// (system:discovery), all users that are signed in may read it, and strangers may not.
const Discovery = "/apis"

// MayRead asks whether a caller may read a URL that is not a resource.
func (a *Access) MayRead(ctx context.Context, kinds *cache.Kinds, id auth.Identity, path string) (bool, error) {
	decision, err := a.opts.Authorizer.Authorize(ctx, id, auth.Request{Cluster: kinds.Cluster().Name(), Verb: "get", Path: path})
	return decision.Allowed, err
}

// MayDo reports whether a caller may do what is asked about, whether or not there is such a thing.
func (a *Access) MayDo(ctx context.Context, id auth.Identity, about auth.Request) (bool, error) {
	decision, err := a.opts.Authorizer.Authorize(ctx, id, about)
	return decision.Allowed, err
}

// CheckDo fails unless a caller may do something, and tells the audit log.
func (a *Access) CheckDo(ctx context.Context, kinds *cache.Kinds, id auth.Identity, t visibility.Target, verb string) (err error) {
	defer func() { auditrecord.Of(ctx).Decided(ReadOf(t, verb), err) }()
	allowed, err := a.MayDo(ctx, id, t.Request(kinds.Cluster().Name(), verb))
	if err == nil && !allowed {
		err = Forbidden(id, t, verb)
	}
	return err
}

// CheckPath fails unless a caller may read a URL that is not a resource.
func (a *Access) CheckPath(ctx context.Context, kinds *cache.Kinds, id auth.Identity, path string) error {
	allowed, err := a.MayRead(ctx, kinds, id, path)
	if err == nil && !allowed {
		err = ForbiddenPath(id, path)
	}
	return err
}

// ForbiddenPath is a 403 in the API server's own words.
func ForbiddenPath(id auth.Identity, path string) error {
	return &reply.Error{
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: fmt.Sprintf("forbidden: User %q cannot get path %q", id.Username, path),
	}
}

// isMadeUp reports whether a kind is known not to exist. Nobody can see anything of such a kind, so it is not asked
// where the caller may see it, which may cost the API server hundreds of questions. It reports true only for callers
// who may read discovery anyway: others could tell by the time of the answer whether a kind exists.
func (a *Access) isMadeUp(ctx context.Context, kinds *cache.Kinds, id auth.Identity, find func(context.Context) (cluster.Kind, error)) bool {
	if discovers, err := a.MayRead(ctx, kinds, id, Discovery); err != nil || !discovers {
		return false
	}
	_, err := find(ctx)
	return errors.Is(err, cluster.ErrNoKind)
}
