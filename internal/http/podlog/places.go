package podlog

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/http/reply"
)

// Limits bound the logs that are read at a time; 0 is no limit.
type Limits struct {
	Total   int
	PerUser int
}

// places counts the logs that are read.
type places struct {
	limits Limits

	open   sync.WaitGroup // none is added once they are closed
	mu     sync.Mutex
	closed bool
	total  int
	users  map[string]int
}

// take counts one more, and fails if that is too much, or the gateway is about to end.
func (p *places) take(user string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return reply.Unavailable("the gateway is about to end; another one will answer", time.Second, nil)
	case p.limits.PerUser > 0 && p.users[user] >= p.limits.PerUser:
		return reply.TooManyRequests("this user reads too many logs at once: end one, or try again later", nil)
	case p.limits.Total > 0 && p.total >= p.limits.Total:
		return reply.TooManyRequests("too many logs are being read: try again later", nil)
	}
	p.open.Add(1)
	p.total++
	p.users[user]++
	return nil
}

func (p *places) leave(user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open.Done()
	p.total--
	if p.users[user]--; p.users[user] == 0 {
		delete(p.users, user)
	}
}

// close lets nobody in from now on.
func (p *places) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

type metrics struct {
	upstreams prometheus.Gauge
	bytes     prometheus.Counter
	ended     *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		upstreams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubecast_log_upstreams", Help: "Logs that are being read from API servers."}),
		bytes:     prometheus.NewCounter(prometheus.CounterOpts{Name: "kubecast_log_bytes_total", Help: "Bytes of logs that were passed on."}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_log_ended_total",
			Help: "Answers with logs that ended, by reason: complete, left, upstream, drain, expired, revoked, unavailable.",
		}, []string{"reason"}),
	}
	registerer.MustRegister(m.upstreams, m.bytes, m.ended)
	return m
}
