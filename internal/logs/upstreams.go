package logs

import (
	"context"
	"io"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// NewUpstreams returns the gauge of connections to API servers on which logs are read: for
// "streams", or for "requests" that are answered with what the API server says.
func NewUpstreams(why string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kubecast_log_upstreams", Help: "Connections to API servers on which logs are read: for requests that are passed on as `kubectl logs` reads them, or for streams that follow; at most logs.upstreams of each.", ConstLabels: prometheus.Labels{"for": why},
	})
}

// counted is a Backend whose open logs are counted.
type counted struct {
	Backend
	open prometheus.Gauge
}

func (c counted) Read(ctx context.Context, run ContainerRun, q ReadOptions) (io.ReadCloser, error) {
	body, err := c.Backend.Read(ctx, run, q)
	if err != nil {
		return nil, err
	}
	c.open.Inc()
	return &countedLog{ReadCloser: body, closed: sync.OnceFunc(c.open.Dec)}, nil
}

type countedLog struct {
	io.ReadCloser
	closed func()
}

func (l *countedLog) Close() error {
	l.closed()
	return l.ReadCloser.Close()
}
