package inbox

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/history/store"
)

type metrics struct {
	written *prometheus.CounterVec
	failed  *prometheus.CounterVec
	removed *prometheus.CounterVec
	readers prometheus.Gauge
	waiting prometheus.Gauge
	overdue prometheus.Gauge
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
		overdue: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubecast_notifications_digest_overdue_seconds", Help: "For how long the oldest digest that is not made has been due; 0: none is.",
		}),
		readers: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubecast_notifications_followers", Help: "Streams that follow an inbox at this replica."}),
	}
	for _, cause := range store.Causes() {
		m.failed.WithLabelValues(string(cause))
	}
	registerer.MustRegister(m.written, m.failed, m.removed, m.readers, m.waiting, m.overdue)
	return m
}
