package inbox

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/jobs/store"
)

type metrics struct {
	written *prometheus.CounterVec
	failed  *prometheus.CounterVec
	removed *prometheus.CounterVec
	readers prometheus.Gauge
	waiting prometheus.Gauge

	oldestDue oldestDue
}

// oldestDue is when the oldest digest is due, or was, that is not made; nil: none waits, as far as is known. A database that
// is lost says nothing new of it, while it becomes ever later.
type oldestDue struct{ at atomic.Pointer[time.Time] }

// found says whether digests wait, and when the oldest of them is due.
func (o *oldestDue) found(waits bool, at time.Time) {
	if !waits {
		o.at.Store(nil)
		return
	}
	o.at.Store(&at)
}

// made says that all that was due is made.
func (o *oldestDue) made(now time.Time) {
	if at := o.at.Load(); at != nil && at.Before(now) {
		o.at.Store(nil)
	}
}

// overdue is for how many seconds it has been due.
func (o *oldestDue) overdue() float64 {
	if at := o.at.Load(); at != nil {
		return max(0, time.Since(*at).Seconds())
	}
	return 0
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		written: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_notifications_written_total",
			Help: "Notifications that this replica has written, by kind: a state, or Digest. One that is written again after a failure counts again.",
		}, []string{"kind"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_notifications_database_errors_total", Help: "Questions about inboxes that the database did not answer, by cause, as kubecast_history_errors_total has them.",
		}, []string{"cause"}),
		removed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_notifications_removed_total",
			Help: "What this replica has removed since it was kept for long enough, by what it is: row (notifications, and marks of what was read) or head (of an inbox that was not used).",
		}, []string{"what"}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubecast_notifications_digests_waiting", Help: "Digests that are gathered, of all replicas' users."}),
		readers: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubecast_notifications_followers", Help: "Streams that follow an inbox at this replica."}),
	}
	for _, cause := range store.Causes() {
		m.failed.WithLabelValues(string(cause))
	}
	registerer.MustRegister(m.written, m.failed, m.removed, m.readers, m.waiting, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubecast_notifications_digest_overdue_seconds", Help: "For how long the oldest digest that is not made has been due; 0: none is.",
	}, m.oldestDue.overdue))
	return m
}
