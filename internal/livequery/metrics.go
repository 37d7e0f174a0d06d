package livequery

import "github.com/prometheus/client_golang/prometheus"

// metrics are a registry's.
type metrics struct{ displaced prometheus.Counter }

func newMetrics(b *Registry, registerer prometheus.Registerer) metrics {
	m := metrics{displaced: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kubecast_questions_displaced_total", Help: "Questions of live counts and pages that were given up since as many are kept as can be, or the memory for them was full.",
	})}
	gauge := func(name, help string, value func(Stats) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(b.Stats()) })
	}
	registerer.MustRegister(m.displaced,
		gauge("kubecast_questions", "Questions of live counts and pages that are kept, each once for all who ask it.", func(s Stats) float64 { return float64(s.Queries) }),
		gauge("kubecast_question_readers", "Live counts and pages that are open.", func(s Stats) float64 { return float64(s.Readers) }),
		gauge("kubecast_question_bytes", "Bytes that the answers occupy beside the objects.", func(s Stats) float64 { return float64(s.Bytes) }),
	)
	return m
}
