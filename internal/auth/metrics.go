package auth

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count authentications, and describe the known keys. Issuers may be labels, since the configuration names
// them all.
type metrics struct {
	requests *prometheus.CounterVec
	keys     *prometheus.GaugeVec
	fetches  *prometheus.CounterVec
	time     *prometheus.GaugeVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_auth_requests_total",
			Help: "Requests that were asked who sends them, by result: accepted, anonymous, none (no credentials), expired, revoked, invalid, unavailable (an issuer's keys were never fetched).",
		}, []string{"result"}),
		keys: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubecast_auth_issuer_keys", Help: "Keys that are known of an issuer whose keys are fetched.",
		}, []string{"issuer"}),
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_auth_issuer_fetches_total", Help: "Times an issuer's keys were fetched, by result: ok, failed.",
		}, []string{"issuer", "result"}),
		time: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubecast_auth_issuer_fetched_timestamp_seconds", Help: "When an issuer's keys were last fetched; 0: never. Keys known before stay in use, but a new one is not known.",
		}, []string{"issuer"}),
	}
	for _, result := range []string{"accepted", "anonymous", "none", "expired", "revoked", "invalid", "unavailable"} {
		m.requests.WithLabelValues(result) // which is there from the start: a rate misses what a counter begins with
	}
	if registerer != nil {
		registerer.MustRegister(m.requests, m.keys, m.fetches, m.time)
	}
	return m
}

// authenticated counts an outcome of Authenticate.
func (m *metrics) authenticated(id Identity, err error) {
	result := "accepted"
	switch {
	case errors.Is(err, ErrNoCredentials):
		result = "none"
	case errors.Is(err, ErrTokenExpired):
		result = "expired"
	case errors.Is(err, ErrRevoked):
		result = "revoked"
	case errors.Is(err, ErrBadToken):
		result = "invalid"
	case err != nil:
		result = "unavailable"
	case id.Anonymous:
		result = "anonymous"
	}
	m.requests.WithLabelValues(result).Inc()
}

// forget drops what is measured of an issuer.
func (m *metrics) forget(issuer string) {
	for _, of := range []*prometheus.MetricVec{m.keys.MetricVec, m.fetches.MetricVec, m.time.MetricVec} {
		of.DeletePartialMatch(prometheus.Labels{"issuer": issuer})
	}
}

// fetched returns a function that counts the fetches of an issuer's keys.
func (m *metrics) fetched(issuer string) func(keys int, err error) {
	ok, failed := m.fetches.WithLabelValues(issuer, "ok"), m.fetches.WithLabelValues(issuer, "failed")
	known, when := m.keys.WithLabelValues(issuer), m.time.WithLabelValues(issuer)
	return func(keys int, err error) {
		known.Set(float64(keys))
		if err != nil {
			failed.Inc()
			return
		}
		ok.Inc()
		when.SetToCurrentTime()
	}
}
