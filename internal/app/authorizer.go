package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/feed"
	"github.com/kubecast/kubecast/internal/auth/policy"
	"github.com/kubecast/kubecast/internal/auth/rbac"
	"github.com/kubecast/kubecast/internal/auth/sar"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/config"
)

// authorizer is an auth.Authorizer to which clusters can be added.
type authorizer struct {
	auth.Authorizer
	// add makes a cluster one that can be asked about; what it returns runs for as long as it is one.
	add func(*cluster.Cluster) (run func(context.Context) error)
	// ready says why a cluster's permissions cannot be decided yet.
	ready func(cluster string) error
}

// newAuthorizer builds the one of the configured mode.
func newAuthorizer(cfg config.Authorizer, registerer prometheus.Registerer, log *slog.Logger) (authorizer, error) {
	if cfg.Mode == config.AuthorizerRBAC {
		a := rbac.New(log)
		registerer.MustRegister(a)
		return authorizer{a, a.Add, a.Ready}, nil
	}
	namespaces := feed.NewNamespaces(log)
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

// reauthorize is how often running streams ask again what their callers may see. Mode sar is told of no change; the others
// are, and ask for the sake of what nobody tells: that a cluster was replaced, or that its permissions cannot be read.
// A stream may be given an answer that is remembered, so it asks, and answers are remembered, for half of the time after
// which a permission that is taken away must not count any more.
func reauthorize(cfg config.Authorizer) time.Duration {
	if cfg.Mode == config.AuthorizerSAR {
		return max(cfg.CacheAllow.Std()/2, time.Second/2)
	}
	return 30 * time.Second
}

// Check finds what is wrong with a configuration that can be found without running it, beyond its own validation.
func Check(cfg config.Config) error {
	if _, err := newCertificate(cfg.TLS, prometheus.NewRegistry(), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if cfg.Authorizer.Mode != config.AuthorizerPolicy {
		return nil
	}
	_, err := policy.New(cfg.Authorizer.Policies, policiesKey, nil)
	return err
}
