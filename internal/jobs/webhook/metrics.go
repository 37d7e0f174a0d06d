package webhook

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	attempts *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	delay    *prometheus.HistogramVec
	expired  prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer, senders *Senders) *metrics {
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_webhook_attempts_total", Help: "Attempts to send a message to a webhook, by what became of them: delivered, refused, held (asked to wait), gone (410: the webhook is off), timeout, unreachable.",
		}, []string{"target", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubecast_webhook_attempt_seconds", Help: "How long attempts to send a message to a webhook took.",
			Buckets: prometheus.ExponentialBuckets(0.005, 3, 8),
		}, []string{"target"}),
		delay: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kubecast_webhook_delivered_after_seconds", Help: "How long after its transition was recorded a message was accepted; of digests, after the first of them.",
			Buckets: prometheus.ExponentialBuckets(0.01, 4, 12),
		}, []string{"target"}),
		expired: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kubecast_webhook_expired_total", Help: "Messages that were removed because they had been kept for long enough, dead letters and others.",
		}),
	}
	registerer.MustRegister(m.attempts, m.seconds, m.delay, m.expired, (*collector)(senders))
	return m
}

// begin has all series of a target told from now on.
func (m *metrics) begin(target string) {
	m.seconds.WithLabelValues(target)
	m.delay.WithLabelValues(target)
	for _, outcome := range []string{delivered, refused, held, gone, timedOut, unreachable} {
		m.attempts.WithLabelValues(target, outcome)
	}
}

// collector tells Prometheus, at each scrape, how the targets are that this replica sends to.
type collector Senders

func metric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("kubecast_"+name, help, []string{"target"}, nil)
}

var (
	descSending = metric("webhook_sending", "1 where this replica sends to the webhook; the sum over all replicas is 1.")
	descWaiting = metric("webhook_waiting", "Messages that wait to be sent, or to be sent again; told by the replica that sends, as the other gauges of a webhook.")
	descOldest  = metric("webhook_oldest_waiting_seconds", "For how long the oldest message has waited.")
	descDead    = metric("webhook_dead", "Dead letters: messages that were refused so often that they are not sent again.")
	descOff     = metric("webhook_off", "1 if the webhook is switched off, because it answered 410.")
	descHeld    = metric("webhook_held", "1 if the webhook has asked to be left alone for now.")
)

func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSending, descWaiting, descOldest, descDead, descOff, descHeld} {
		descs <- d
	}
}

func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	for _, t := range (*Senders)(c).all() {
		gauge := func(desc *prometheus.Desc, value float64) {
			metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, t.Name)
		}
		t.mu.Lock()
		sending, counted, counts, change := t.sending, t.counted, t.counts, t.change
		t.mu.Unlock()
		gauge(descSending, asFloat(sending))
		if !sending || !counted {
			continue
		}
		oldest := 0.0
		if counts.Oldest != 0 {
			oldest = max(0, time.Since(counts.Oldest.Std()).Seconds())
		}
		gauge(descWaiting, float64(counts.Waiting))
		gauge(descOldest, oldest)
		gauge(descDead, float64(counts.Dead))
		gauge(descOff, asFloat(change.Off != 0))
		gauge(descHeld, asFloat(change.Hold.Std().After(time.Now())))
	}
}

func asFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
