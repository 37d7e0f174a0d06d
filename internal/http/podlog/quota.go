package podlog

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/logs"
)

// Limits bound the logs that are read at a time; 0 is no limit.
type Limits struct {
	Total   int
	PerUser int
}

// quota counts the logs that are read.
type quota struct {
	open   sync.WaitGroup // none is added once it is closed
	mu     sync.Mutex
	limits Limits
	closed bool
	total  int
	users  map[string]int
}

// set changes the limits. What is read already goes on.
func (q *quota) set(limits Limits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limits = limits
}

// take counts one more, and fails if that is too much, or the gateway is about to end.
func (q *quota) take(user string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return reply.Unavailable("the gateway is about to end; another one will answer", time.Second, nil)
	case q.limits.PerUser > 0 && q.users[user] >= q.limits.PerUser && !auth.IsGateway(user):
		return reply.TooManyRequests("this user reads too many logs at once: end one, or try again later", nil)
	case q.limits.Total > 0 && q.total >= q.limits.Total:
		return reply.TooManyRequests("too many logs are being read: try again later", nil)
	}
	q.open.Add(1)
	q.total++
	q.users[user]++
	return nil
}

// Take counts a connection on which something else reads a log for a user, as if it were a request.
func (h *Handler) Take(user string) (leave func(), err error) {
	if err := h.quota.take(user); err != nil {
		return nil, err
	}
	h.metrics.upstreams.Inc()
	return func() {
		h.metrics.upstreams.Dec()
		h.quota.leave(user)
	}, nil
}

func (q *quota) leave(user string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open.Done()
	q.total--
	if q.users[user]--; q.users[user] == 0 {
		delete(q.users, user)
	}
}

// close lets nobody in from now on.
func (q *quota) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

type metrics struct {
	upstreams prometheus.Gauge
	bytes     prometheus.Counter
	ended     *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		upstreams: logs.NewUpstreams("requests"),
		bytes:     prometheus.NewCounter(prometheus.CounterOpts{Name: "kubecast_log_bytes_total", Help: "Bytes of logs that were passed on."}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubecast_log_ended_total",
			Help: "Answers with logs that ended, by reason: complete, left, upstream, drain, expired, revoked, unavailable.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{endComplete, endLeft, endUpstream, endDrain, endExpired, endRevoked, endUnavailable} {
		m.ended.WithLabelValues(reason)
	}
	registerer.MustRegister(m.upstreams, m.bytes, m.ended)
	return m
}
