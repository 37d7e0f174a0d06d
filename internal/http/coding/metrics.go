package coding

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/budget"
)

type metrics struct {
	before *prometheus.CounterVec
	after  *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	labels := []string{"coding", "made"}
	m := &metrics{
		before: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_coded_bytes_before_total", Help: "Bytes of answers that were compressed, before that; made: own, or shared with an earlier answer.",
		}, labels),
		after: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_coded_bytes_after_total", Help: "Bytes that answers were compressed to; made: own, or shared with an earlier answer.",
		}, labels),
	}
	registerer.MustRegister(m.before, m.after)
	return m
}

// keep adds what the pieces that are kept occupy.
func (*metrics) keep(registerer prometheus.Registerer, memory *budget.Memory) {
	registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubecast_coded_kept_bytes", Help: "Bytes that compressed pieces of answers occupy, which are kept since several clients asked for them.",
	}, func() float64 {
		bytes, _ := memory.Held()
		return float64(bytes)
	}))
}

// counts are those of one coding and one way of making.
type counts struct{ before, after prometheus.Counter }

func (m *metrics) of(coding, made string) counts {
	return counts{m.before.WithLabelValues(coding, made), m.after.WithLabelValues(coding, made)}
}

func (c counts) add(before, after int) {
	c.before.Add(float64(before))
	c.after.Add(float64(after))
}
