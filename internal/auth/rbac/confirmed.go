package rbac

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/auth"
)

const (
	// trustedFor is how long permissions still count if a part of them can no longer be read, whatever the reason,
	// while the API server answers other requests. While the API server is away they count without limit, since
	// nobody can change them there.
	trustedFor = time.Minute
	// confirmEvery is how often the API server is sent another request while a part cannot be read.
	confirmEvery = 5 * time.Second
)

// confirmation knows for how long a cluster's permissions could not be confirmed although the cluster answered.
type confirmation struct {
	changed chan struct{}         // holds a token when a feed has changed
	lost    atomic.Int64          // the longest such time among the feeds, as a time.Duration
	doubt   atomic.Pointer[error] // why the permissions do not count (any more); nil: they do
}

func newConfirmation() confirmation { return confirmation{changed: make(chan struct{}, 1)} }

// wake makes confirm look at the feeds, since one was lost or is back.
func (c *confirmation) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// confirm follows the feeds until the context ends. Time counts against a feed only if the API server answered
// another request in it. So an API server that restarts takes no permissions away, nor does a proxy that answers for
// it.
func (m *member) confirm(ctx context.Context, tell func()) {
	var lost [4]time.Duration // by feed
	asked := time.Now()
	for {
		var again <-chan time.Time
		if m.lostNow(&lost) {
			again = time.After(max(confirmEvery-time.Since(asked), 0))
		}
		m.judge(lost, tell)
		select {
		case <-ctx.Done():
			return
		case <-m.confirmation.changed:
			if again == nil {
				asked = time.Now()
			}
		case <-again:
			passed := min(time.Since(asked), 2*confirmEvery) // a machine that slept did not ask in that time
			asked = time.Now()
			if m.cluster.Answers(ctx) != nil {
				continue
			}
			for i, f := range m.feeds {
				if state := f.State(); state.Err != nil {
					// A kind that can be listed is confirmed by each list, even without a watch.
					lost[i] = min(lost[i]+passed, time.Since(state.Since), time.Since(state.Listed))
				}
			}
		}
	}
}

// lostNow reports whether any feed is lost. It clears the time of each feed that is not.
func (m *member) lostNow(lost *[4]time.Duration) (any bool) {
	for i, f := range m.feeds {
		if f.State().Err == nil {
			lost[i] = 0
		} else {
			any = true
		}
	}
	return any
}

// judge decides whether the permissions count, and tells all listeners when that has changed.
func (m *member) judge(lost [4]time.Duration, tell func()) {
	worst := 0
	for i := range lost {
		if lost[i] > lost[worst] {
			worst = i
		}
	}
	c := &m.confirmation
	c.lost.Store(int64(lost[worst]))
	switch doubted := c.doubt.Load() != nil; {
	case lost[worst] >= trustedFor && !doubted:
		state := m.feeds[worst].State()
		err := m.cannot(worst, state.Err)
		if !state.Refused() {
			err = fmt.Errorf("%w: cluster %s answers, but %s could not be read for %v, so nobody knows which permissions were taken away: %w",
				auth.ErrUnconfirmed, m.name, m.feeds[worst].Kind(), trustedFor, state.Err)
		}
		c.doubt.Store(&err)
		m.log.Error("permissions do not count any more: they cannot be confirmed", "cluster", m.name, "error", err)
		tell()
	case lost[worst] < trustedFor && doubted:
		c.doubt.Store(nil)
		m.log.Info("permissions can be confirmed again", "cluster", m.name)
		tell()
	}
}

// cannot is the error for a feed whose kind the API server refuses to the gateway.
func (m *member) cannot(feed int, cause error) error {
	return fmt.Errorf("%w: cluster %s does not let the gateway get, list and watch %s, which authorizer mode rbac "+
		"decides by (grant it that, or use mode sar): %w", auth.ErrUnconfirmed, m.name, m.feeds[feed].Kind(), cause)
}

var (
	unconfirmed = prometheus.NewDesc("kubecast_rbac_unconfirmed_seconds",
		"How long a part of a cluster's roles and bindings could not be read while the cluster answered; after a minute, nobody is let in.",
		[]string{"cluster"}, nil)
	watchLost = prometheus.NewDesc("kubecast_rbac_watch_lost_seconds",
		"For how long the watch of roles or bindings has been lost, whatever the reason; 0 while it stands.",
		[]string{"cluster", "kind"}, nil)
)

// Describe implements prometheus.Collector.
func (a *Authorizer) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- unconfirmed
	descriptions <- watchLost
}

// Collect implements prometheus.Collector.
func (a *Authorizer) Collect(metrics chan<- prometheus.Metric) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for name, m := range a.clusters {
		metrics <- prometheus.MustNewConstMetric(unconfirmed, prometheus.GaugeValue, time.Duration(m.confirmation.lost.Load()).Seconds(), name)
		for _, f := range m.feeds {
			lost := time.Duration(0)
			if state := f.State(); state.Err != nil {
				lost = time.Since(state.Since)
			}
			metrics <- prometheus.MustNewConstMetric(watchLost, prometheus.GaugeValue, lost.Seconds(), name, f.Kind().Resource)
		}
	}
}
