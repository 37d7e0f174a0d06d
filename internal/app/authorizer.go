package app

import (
	"context"
	"log/slog"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/auth/feed"
	"github.com/kubecast/kubecast/internal/auth/policy"
	"github.com/kubecast/kubecast/internal/auth/rbac"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/config"
)

// authorizer is an auth.Authorizer with what it lives by.
type authorizer struct {
	auth.Authorizer
	run   func(context.Context) error
	ready func() error
}

// newAuthorizer builds the one of the configured mode.
func newAuthorizer(cfg config.Authorizer, kinds []*cache.Kinds, log *slog.Logger) (authorizer, error) {
	var clusters []*cluster.Cluster
	for _, k := range kinds {
		clusters = append(clusters, k.Cluster())
	}
	if cfg.Mode == config.AuthorizerRBAC {
		a := rbac.New(clusters, log)
		return authorizer{a, a.Run, a.Ready}, nil
	}
	namespaces := feed.NewNamespaces(clusters, log)
	always := func() error { return nil }
	if cfg.Mode == config.AuthorizerPolicy {
		a, err := policy.New(cfg.Policies, policiesKey, namespaces)
		return authorizer{a, namespaces.Run, always}, err
	}
	reviewers := map[string]auth.Reviewer{}
	for _, c := range clusters {
		reviewers[c.Name()] = c.Reviews()
	}
	sar := auth.NewSAR(reviewers, namespaces, auth.SAROptions{CacheAllow: cfg.CacheAllow.Std(), CacheDeny: cfg.CacheDeny.Std()})
	return authorizer{sar, namespaces.Run, always}, nil
}

const policiesKey = "authorizer.policies"

// Check finds what is wrong with a configuration that can be found without running it, beyond its own validation.
func Check(cfg config.Config) error {
	if cfg.Authorizer.Mode != config.AuthorizerPolicy {
		return nil
	}
	_, err := policy.New(cfg.Authorizer.Policies, policiesKey, nil)
	return err
}
