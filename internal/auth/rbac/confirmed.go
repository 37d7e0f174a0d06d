package rbac

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/auth"
)

// confirmation knows for how long a cluster's permissions could not be confirmed although the cluster answered.
type confirmation struct {
	changed chan struct{}         // holds a token when a mirror has changed
	lost    atomic.Int64          // the longest such time among the mirrors, as a time.Duration
	doubt   atomic.Pointer[error] // why the permissions do not count (any more); nil: they do
}

func newConfirmation() confirmation { return confirmation{changed: make(chan struct{}, 1)} }

// wake makes confirm look at the mirrors, since one was lost or is back.
func (c *confirmation) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// confirm follows the mirrors until the context ends. Permissions still count for auth.UnreadFor if
// a part of them can no longer be read.
func (m *member) confirm(ctx context.Context, notify func()) {
	var lost [4]time.Duration // by mirror
	unread := func() bool {
		any := m.lostNow(&lost)
		m.judge(lost, notify)
		return any
	}
	count := func(passed time.Duration) {
		for i, one := range m.mirrors {
			if state := one.State(); state.Err != nil {
				// A kind that can be listed is confirmed by each list, even without a watch.
				lost[i] = min(lost[i]+passed, time.Since(state.Since), time.Since(state.Listed))
			}
		}
	}
	auth.CountUnread(ctx, m.confirmation.changed, unread, m.cluster.Answers, count)
}

// lostNow reports whether any mirror is lost. It clears the time of each mirror that is not.
func (m *member) lostNow(lost *[4]time.Duration) (any bool) {
	for i, one := range m.mirrors {
		if one.State().Err == nil {
			lost[i] = 0
		} else {
			any = true
		}
	}
	return any
}

// judge decides whether the permissions count, and notifies all listeners when that has changed.
func (m *member) judge(lost [4]time.Duration, notify func()) {
	worst := 0
	for i := range lost {
		if lost[i] > lost[worst] {
			worst = i
		}
	}
	c := &m.confirmation
	c.lost.Store(int64(lost[worst]))
	switch doubted := c.doubt.Load() != nil; {
	case lost[worst] >= auth.UnreadFor && !doubted:
		state := m.mirrors[worst].State()
		err := m.cannot(worst, state.Err)
		if !state.Refused() {
			err = fmt.Errorf("%w: cluster %s answers, but %s could not be read for %v, so nobody knows which permissions were taken away: %w",
				auth.ErrUnconfirmed, m.name, m.mirrors[worst].Kind(), auth.UnreadFor, state.Err)
		}
		c.doubt.Store(&err)
		m.log.Error("permissions do not count any more: they cannot be confirmed", "cluster", m.name, "error", err)
		notify()
	case lost[worst] < auth.UnreadFor && doubted:
		c.doubt.Store(nil)
		m.log.Info("permissions can be confirmed again", "cluster", m.name)
		notify()
	}
}

// cannot is the error for a mirror whose kind the API server refuses to the gateway.
func (m *member) cannot(mirror int, cause error) error {
	return fmt.Errorf("%w: cluster %s does not let the gateway get, list and watch %s, which authorizer mode rbac "+
		"decides by (grant it that, or use mode sar): %w", auth.ErrUnconfirmed, m.name, m.mirrors[mirror].Kind(), cause)
}

var (
	unconfirmed = prometheus.NewDesc("kubecast_rbac_unconfirmed_seconds",
		"How long a part of a cluster's roles and bindings could not be read while the cluster answered; after a minute, nobody is let in.",
		[]string{"cluster"}, nil)
	watchLost = prometheus.NewDesc("kubecast_rbac_watch_lost_seconds",
		"For how long the watch of roles or bindings has been lost, whatever the reason; 0 while it stands.",
		[]string{"cluster", "kind"}, nil)
)

func (a *Authorizer) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- unconfirmed
	descriptions <- watchLost
}

func (a *Authorizer) Collect(metrics chan<- prometheus.Metric) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for name, m := range a.clusters {
		metrics <- prometheus.MustNewConstMetric(unconfirmed, prometheus.GaugeValue, time.Duration(m.confirmation.lost.Load()).Seconds(), name)
		for _, one := range m.mirrors {
			lost := time.Duration(0)
			if state := one.State(); state.Err != nil {
				lost = time.Since(state.Since)
			}
			metrics <- prometheus.MustNewConstMetric(watchLost, prometheus.GaugeValue, lost.Seconds(), name, one.Kind().Resource)
		}
	}
}
