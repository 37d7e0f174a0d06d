package auth

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// Guard is an Authorizer in front of another. An identity that is known to only one cluster (Identity.Cluster) gets
// no permissions in others, where another user may have its name. Guard also counts decisions.
type Guard struct {
	Authorizer
	allowed, denied, failed prometheus.Counter
}

// NewGuard puts a Guard in front of an Authorizer.
func NewGuard(behind Authorizer, registerer prometheus.Registerer) *Guard {
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubecast_auth_decisions_total", Help: "Questions whether somebody may see something, by decision: allowed, denied, failed.",
	}, []string{"decision"})
	if registerer != nil {
		registerer.MustRegister(decisions)
	}
	return &Guard{
		Authorizer: behind,
		allowed:    decisions.WithLabelValues("allowed"),
		denied:     decisions.WithLabelValues("denied"),
		failed:     decisions.WithLabelValues("failed"),
	}
}

func (g *Guard) Authorize(ctx context.Context, id Identity, req Request) (Decision, error) {
	decision, err := Decision{Reason: "known to another cluster only"}, error(nil)
	if !foreign(id, req) {
		decision, err = g.Authorizer.Authorize(ctx, id, req)
	}
	switch {
	case err != nil:
		g.failed.Inc()
		return Decision{}, err
	case decision.Allowed:
		g.allowed.Inc()
	default:
		g.denied.Inc()
	}
	return decision, nil
}

func (g *Guard) Scope(ctx context.Context, id Identity, req Request) (Scope, error) {
	if foreign(id, req) {
		return Scope{}, nil
	}
	return g.Authorizer.Scope(ctx, id, req)
}

func foreign(id Identity, req Request) bool { return id.Cluster != "" && id.Cluster != req.Cluster }
