package inbox

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	written *prometheus.CounterVec
	failed  *prometheus.CounterVec
	readers prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		written: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_notifications_written_total",
			Help: "Notifications that this replica has written, by kind: a state, or Digest. One that is written again after a failure counts again.",
		}, []string{"kind"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_notifications_database_errors_total", Help: "Questions about inboxes that the database did not answer, by cause.",
		}, []string{"cause"}),
		readers: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubecast_notifications_followers", Help: "Streams that follow an inbox at this replica."}),
	}
	registerer.MustRegister(m.written, m.failed, m.readers)
	return m
}
