package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/mirror"
	"github.com/kubecast/kubecast/internal/auth/policy"
	"github.com/kubecast/kubecast/internal/auth/rbac"
	"github.com/kubecast/kubecast/internal/auth/sar"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/config"
)

// authorizer is an auth.Authorizer to which clusters can be added.
type authorizer struct {
	auth.Authorizer
	// add adds a cluster. The function that it returns must run for as long as the cluster is in use.
	add func(*cluster.Cluster) (run func(context.Context) error)
	// ready says why permissions in a cluster cannot be decided yet; nil if they can.
	ready func(cluster string) error
}

// newAuthorizer returns the authorizer of the configured mode.
func newAuthorizer(cfg config.Authorizer, registerer prometheus.Registerer, log *slog.Logger) (authorizer, error) {
	if cfg.Mode == config.AuthorizerRBAC {
		a := rbac.New(log)
		registerer.MustRegister(a)
		return authorizer{a, a.Add, a.Ready}, nil
	}
	namespaces := mirror.NewNamespaces(log)
	always := func(string) error { return nil }
	if cfg.Mode == config.AuthorizerPolicy {
		a, err := policy.New(cfg.Policies, policiesKey, namespaces)
		return authorizer{a, namespaces.Add, always}, err
	}
	reviews := sar.New(namespaces, sar.Options{CacheAllow: cfg.CacheAllow.Std() / 2, CacheDeny: cfg.CacheDeny.Std()})
	add := func(c *cluster.Cluster) func(context.Context) error {
		remove, follow := reviews.Add(c.Name(), c.Reviews()), namespaces.Add(c)
		return func(ctx context.Context) error {
			defer remove()
			return follow(ctx)
		}
	}
	return authorizer{reviews, add, always}, nil
}

const policiesKey = "authorizer.policies"

// reauthorize is the interval at which running streams ask again what their callers may see.
//
// Mode sar is not notified of changes. A stream may get an answer that is remembered. So streams ask after half of
// CacheAllow, and answers are remembered for the other half: together they stay within the time for which a
// permission may count after it was taken away.
//
// The other modes are notified. They ask only because of changes without a notification: a cluster was replaced, or
// its permissions cannot be read any more.
func reauthorize(cfg config.Authorizer) time.Duration {
	if cfg.Mode == config.AuthorizerSAR {
		return max(cfg.CacheAllow.Std()/2, time.Second/2)
	}
	return 30 * time.Second
}
