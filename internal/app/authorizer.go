package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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
	// known says what is not known yet of a cluster that decisions depend on; nil if nothing.
	known func(cluster string) error
	// explain says why a request is permitted or not.
	explain func(context.Context, auth.Identity, auth.Request) (auth.Explanation, error)
}

// newAuthorizer returns the authorizer of the configured mode.
func newAuthorizer(cfg config.Authorizer, registerer prometheus.Registerer, log *slog.Logger) (authorizer, error) {
	if cfg.Mode == config.AuthorizerRBAC {
		a := rbac.New(log)
		registerer.MustRegister(a)
		return authorizer{a, a.Add, a.Ready, a.Ready, a.Explain}, nil
	}
	namespaces := mirror.NewNamespaces(log)
	always := func(string) error { return nil }
	known := func(cluster string) error {
		if _, known := namespaces.Names(cluster); !known {
			return errors.New("the namespaces cannot be read, so what is permitted in some of them is not found")
		}
		return nil
	}
	if cfg.Mode == config.AuthorizerPolicy {
		a, err := policy.New(cfg.Policies, policiesKey, namespaces)
		return authorizer{a, namespaces.Add, always, known, a.Explain}, err
	}
	reviews := sar.New(namespaces, sar.Options{CacheAllow: cfg.CacheAllow.Std() / 2, CacheDeny: cfg.CacheDeny.Std()})
	add := func(c *cluster.Cluster) func(context.Context) error {
		remove, follow := reviews.Add(c.Name(), c.Reviews()), namespaces.Add(c)
		return func(ctx context.Context) error {
			defer remove()
			return follow(ctx)
		}
	}
	return authorizer{reviews, add, always, known, reviewed(reviews)}, nil
}

// reviewed explains by the reasons that the API server gives with its answers, which name a binding and its role. Where not
// all is permitted, it asks about the namespaces in which something is.
func reviewed(reviews *sar.Authorizer) func(context.Context, auth.Identity, auth.Request) (auth.Explanation, error) {
	return func(ctx context.Context, id auth.Identity, request auth.Request) (why auth.Explanation, err error) {
		ask := func(request auth.Request) (bool, error) {
			decision, err := reviews.Authorize(ctx, id, request)
			if err == nil && decision.Allowed {
				why.By = append(why.By, firstOf(decision.Reason, "a permission of which the API server does not say the reason"))
			}
			return decision.Allowed, err
		}
		if allowed, err := ask(request); err != nil || allowed || request.Namespace != "" || request.Path != "" || request.Name != "" {
			return why, err
		}
		scope, err := reviews.Scope(ctx, id, request)
		if err != nil {
			return why, err
		}
		for _, namespace := range scope.Namespaces {
			request.Namespace = namespace
			if _, err := ask(request); err != nil {
				return why, err
			}
		}
		slices.Sort(why.By)
		why.By = slices.Compact(why.By)
		return why, nil
	}
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
