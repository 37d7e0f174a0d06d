package cache

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Collector gives Prometheus the figures of the stores of all clusters, as they are at each scrape.
type Collector struct{ clusters func() []*Kinds }

// NewCollector returns a collector that calls clusters at each scrape.
func NewCollector(clusters func() []*Kinds) *Collector { return &Collector{clusters} }

func storeMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("kubecast_"+name, help, []string{"cluster", "kind"}, nil)
}

var (
	descLive      = storeMetric("upstream_live", "1 while the gateway's watch on the API server stands; 0: what is shown of the kind is stale.")
	descSince     = storeMetric("upstream_state_seconds", "Seconds since upstream_live last changed.")
	descRelists   = storeMetric("upstream_relists_total", "Times a kind was listed again as a whole, since its watch could not go on; from when its cache began.")
	descObjects   = storeMetric("cache_objects", "Objects cached.")
	descHolds     = storeMetric("cache_bytes", "Bytes of JSON of the objects cached.")
	descEvents    = storeMetric("ring_events", "Events in the replay ring.")
	descBytes     = storeMetric("ring_bytes", "Bytes that the objects in the replay ring occupy.")
	descAge       = storeMetric("ring_age_seconds", "Age of the oldest event in the replay ring.")
	descEvicted   = storeMetric("ring_evictions_total", "Events evicted from the replay ring.")
	descWaiting   = storeMetric("ring_readers_waiting", "Readers that wait for an event.")
	descWatermark = storeMetric("cache_resource_version", "Version up to which everything has been delivered.")
	descRequests  = prometheus.NewDesc("kubecast_upstream_requests_total",
		"Requests to the API server, by verb and by the status that was answered; none: there was no answer. One that is repeated counts each time.",
		[]string{"cluster", "verb", "code"}, nil)
)

func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLive, descSince, descRelists, descRequests, descObjects, descHolds, descEvents, descBytes, descAge, descEvicted, descWaiting, descWatermark} {
		descs <- d
	}
}

func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	for _, kinds := range c.clusters() {
		kinds.Cluster().Requests(func(kind cluster.RequestKind, n uint64) {
			metrics <- prometheus.MustNewConstMetric(descRequests, prometheus.CounterValue, float64(n), kinds.Cluster().Name(), kind.Verb, kind.Code)
		})
		for _, store := range kinds.All() {
			gauge := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64) {
				metrics <- prometheus.MustNewConstMetric(desc, kind, value, kinds.Cluster().Name(), store.metricName())
			}
			upstream, ring := store.Upstream(), store.Topic().Stats()
			live, age := 0.0, 0.0
			if upstream.Live {
				live = 1
			}
			if !ring.Oldest.IsZero() {
				age = time.Since(ring.Oldest).Seconds()
			}
			gauge(descLive, prometheus.GaugeValue, live)
			gauge(descSince, prometheus.GaugeValue, time.Since(upstream.Since).Seconds())
			gauge(descRelists, prometheus.CounterValue, float64(store.relists.Load()))
			gauge(descObjects, prometheus.GaugeValue, float64(store.Snapshot().Len()))
			gauge(descHolds, prometheus.GaugeValue, float64(store.replacedBytes.holds.Load()))
			gauge(descEvents, prometheus.GaugeValue, float64(ring.Events))
			gauge(descBytes, prometheus.GaugeValue, float64(ring.Bytes))
			gauge(descAge, prometheus.GaugeValue, age)
			gauge(descEvicted, prometheus.CounterValue, float64(ring.Evicted))
			gauge(descWaiting, prometheus.GaugeValue, float64(ring.Waiting))
			gauge(descWatermark, prometheus.GaugeValue, float64(ring.Watermark))
		}
	}
}

// metricName is the kind's label. It has the version, since several versions of one kind may be cached.
func (s *Store) metricName() string {
	if s.kind.Group == "" {
		return s.kind.Resource
	}
	return s.kind.Resource + "." + s.kind.Version + "." + s.kind.Group
}
