package eventstream

import (
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	streams prometheus.Gauge
	ended   *prometheus.CounterVec
	resets  *prometheus.CounterVec
	events  prometheus.Counter
	bytes   prometheus.Counter
	latency prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer, together func() int64) *metrics {
	m := &metrics{
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubecast_streams_open", Help: "Event streams that are open.",
		}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_streams_ended_total", Help: "Event streams that ended, by reason: left (the client did), told (an error), panic, drain, age, expired (the token), revoked, limit, unavailable, gone (the kind).",
		}, []string{"reason"}),
		resets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_stream_resets_total", Help: "Times a client was reset to a snapshot, by reason: expired (away for longer than the API server's history), epoch (another history), ahead (of what is known), unreadable (a position that is none), slow (it does not keep up, or the ring is too small).",
		}, []string{"reason"}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kubecast_stream_events_sent_total", Help: "Events sent on streams.",
		}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kubecast_stream_bytes_sent_total", Help: "Bytes sent on streams, before they are compressed.",
		}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kubecast_stream_append_to_flush_seconds",
			Help:    "From when the oldest event of a live batch was appended to the ring until the batch was flushed.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
	}
	registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubecast_streams_together", Help: "Event streams that are told the same at the moment, which is made once for up to 256 of them.",
	}, func() float64 { return float64(together()) }))
	for end, reason := range outcomes {
		if Outcome(end).ends() {
			m.ended.WithLabelValues(reason)
		}
	}
	for _, reason := range []string{ResetExpired, ResetEpoch, ResetAhead, ResetUnreadable, ResetSlow} {
		m.resets.WithLabelValues(reason)
	}
	registerer.MustRegister(m.streams, m.ended, m.resets, m.events, m.bytes, m.latency)
	return m
}
