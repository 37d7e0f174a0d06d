package http

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	refused  *prometheus.CounterVec
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_connections_refused_total", Help: "Connections closed at once, by the limit that is reached: of a peer, or in total; or unannounced: a load balancer of proxyProtocol has not said where it comes from.",
		}, []string{"limit"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_http_requests_total", Help: "Requests answered, streams excepted, by route and status.",
		}, []string{"route", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubecast_http_request_duration_seconds", Help: "Time to answer, streams excepted.",
			Buckets: prometheus.ExponentialBuckets(.0005, 2.5, 10),
		}, []string{"route"}),
	}
	for _, limit := range []string{limitPeer, limitTotal, limitUnannounced} {
		m.refused.WithLabelValues(limit)
	}
	registerer.MustRegister(m.refused, m.requests, m.duration)
	return m
}

// The limits by which connections are refused.
const (
	limitPeer        = "peer"
	limitTotal       = "total"
	limitUnannounced = "unannounced"
)

// connections adds how many there are.
func (*metrics) connections(registerer prometheus.Registerer, of *connections) {
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	registerer.MustRegister(
		gauge("kubecast_connections", "Connections of clients that are open, those of streams included.", of.all),
		gauge("kubecast_connections_limit", "How many there may be: the process's limit of open files, less what the gateway needs itself; 0: it has none.", of.most),
	)
}

// ready adds whether requests should come here, as /readyz says.
func (*metrics) ready(registerer prometheus.Registerer, is func() bool) {
	registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubecast_ready", Help: "1 while /readyz says that clients should come here.",
	}, func() float64 {
		if is() {
			return 1
		}
		return 0
	}))
}
