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
	"github.com/kubecast/kubecast/internal/http/reply"
)

// Discovery is the path by which it is decided who may know what a cluster has. Kubernetes gives it to all who are signed in
// (system:discovery), and to no strangers.
const Discovery = "/apis"

// MayRead asks whether a caller may read a URL that is no resource.
func (a *Access) MayRead(ctx context.Context, kinds *cache.Kinds, id auth.Identity, path string) (bool, error) {
	decision, err := a.opts.Authorizer.Authorize(ctx, id, auth.Request{Cluster: kinds.Cluster().Name(), Verb: "get", Path: path})
	return decision.Allowed, err
}

// ForbiddenPath is worded as the API server's own.
func ForbiddenPath(id auth.Identity, path string) error {
	return &reply.Error{
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: fmt.Sprintf("forbidden: User %q cannot get path %q", id.Username, path),
	}
}

// isMadeUp reports whether a kind is known not to exist. Then nothing of it can be seen anywhere, and it need not be asked where:
// that may cost the API server hundreds of questions. Only callers who may read discovery anyway are spared them, or others
// could tell by the time that it takes whether a kind exists.
func (a *Access) isMadeUp(ctx context.Context, kinds *cache.Kinds, id auth.Identity, find func(context.Context) (cluster.Kind, error)) bool {
	if discovers, err := a.MayRead(ctx, kinds, id, Discovery); err != nil || !discovers {
		return false
	}
	_, err := find(ctx)
	return errors.Is(err, cluster.ErrNoKind)
}
