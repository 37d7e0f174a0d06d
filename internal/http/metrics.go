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
	registerer.MustRegister(m.refused, m.requests, m.duration)
	return m
}
