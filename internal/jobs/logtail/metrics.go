package logtail

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the metrics of all keepers of a gateway.
type Metrics struct{ logs *prometheus.CounterVec }

// What became of logs.
const (
	kept    = "kept"
	nothing = "nothing" // the pods are gone, or wrote nothing
	failed  = "failed"
	refused = "refused"
	dropped = "dropped" // too many waited
	over    = "over"    // their namespace's budget
)

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubecast_history_logs_total",
		Help: "Jobs that ended, and pods that failed or were to be deleted, by what became of the end of their log: kept, nothing (pods are gone or wrote nothing), failed, refused, dropped (too many waited), over (history.keepBudget).",
	}, []string{"outcome"})}
	for _, outcome := range []string{kept, nothing, failed, refused, dropped, over} {
		m.logs.WithLabelValues(outcome)
	}
	registerer.MustRegister(m.logs)
	return m
}

func (m *Metrics) count(outcome string, n int) {
	if n > 0 {
		m.logs.WithLabelValues(outcome).Add(float64(n))
	}
}
