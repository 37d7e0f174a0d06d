//go:build linux

package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// logPath is a stream of what the one container writes, from its first line.
const logPath = "/logs/api/v1/namespaces/team/pods/trainer"

// lineSize is the size of each line's text, in bytes.
const lineSize = 120

// logs measures one container's log with many viewers.
func (b *bench) logs() error {
	size := b.sizes.logs
	samples, err := measure.InTurn(b.rounds, []string{"gateway"}, func(string) (logSample, error) { return b.logsOnce(size) })
	if err != nil {
		return err
	}
	all := samples["gateway"]
	t := figures.Table{
		Title:  fmt.Sprintf("%s, lines of %d bytes of one container; %d rounds, medians", size.title, lineSize, b.rounds),
		Header: []any{"", "CPU µs/line and viewer", "p50 ms", "p99 ms", "p99.9 ms", "bytes/line", "missed", "repeated", "connections for the log", "waited × CPU"},
	}
	var missed, repeated uint64
	var connections int64
	for _, s := range all {
		missed += s.Missed()
		repeated += s.Repeated + s.Disordered
		connections = max(connections, s.connections)
	}
	b.Expect(size.title, "missed", missed)
	b.Expect(size.title, "repeated or in disorder", repeated)
	of := func(read func(measure.Sample) float64) float64 {
		return figures.MedianOf(all, func(s logSample) float64 { return read(s.Sample) })
	}
	t.Add("gateway", of(measure.Sample.PerServerCPU), of(measure.Latency(0.5)), of(measure.Latency(0.99)), of(measure.Latency(0.999)), of(measure.Sample.PerBytes),
		missed, repeated, connections, of(measure.Sample.Contention))
	t.Note("latency from when the line was written at the node until the client has read it")
	t.Reach("connections for the log", float64(connections), 1)
	t.Print(b.out)
	return nil
}

type logSample struct {
	measure.Sample
	connections int64 // that followed the log at once, at most
}

func (b *bench) logsOnce(size rates) (result logSample, err error) {
	s, err := b.startGatewayAt("logserver", "gateway", b.gateway, "")
	if err != nil {
		return result, err
	}
	defer s.stop()
	s.Live.Path = logPath
	if result.Sample, err = b.measured(s, size, ""); err != nil {
		return result, err
	}
	return result, s.Source.Call("Most", nil, &result.connections)
}

// trainer is the one pod.
var trainer = apiserver.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Objects: 1, Render: func(_ int, version uint64, _ mark.Mark) []byte {
	return fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"trainer","namespace":"team","uid":"u","resourceVersion":"%d",`+
		`"creationTimestamp":"2026-01-01T00:00:00Z"},"status":{"containerStatuses":[{"name":"main","restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}}`, version)
}}

// logServer is an API server with the log of one container, to which an event is a line.
type logServer struct {
	*source.Source
	api  *apiserver.Server
	open atomic.Int64
	most atomic.Int64

	mu      sync.Mutex
	lines   []byte
	changed chan struct{} // closed at the next line
}

func newLogServer() *logServer {
	s := &logServer{api: apiserver.New(trainer), changed: make(chan struct{})}
	s.Source = source.New(s.write)
	return s
}

// write writes a line.
func (s *logServer) write(m mark.Mark) {
	line := m.Append(nil)
	line = append(line, strings.Repeat(".", lineSize-len(line))...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = fmt.Appendf(s.lines, "%s %s\n", time.Unix(0, m.At).UTC().Format(time.RFC3339Nano), line)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Start listens, and returns the address.
func (s *logServer) Start(_ process.None, address *string) (err error) {
	*address, err = apiserver.Serve(s)
	return err
}

// Most is how many connections followed the log at once, at most.
func (s *logServer) Most(_ process.None, count *int64) error {
	*count = s.most.Load()
	return nil
}

func (s *logServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/v1/namespaces/team/pods/trainer":
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(trainer.Render(0, apiserver.FirstVersion, mark.Mark{})) // a client that has gone is no error
	case "/api/v1/namespaces/team/pods/trainer/log":
		s.log(w, r)
	default:
		s.api.ServeHTTP(w, r)
	}
}

// log answers the log. The gateway asks for all of it, since it is not long when the first viewer comes.
func (s *logServer) log(w http.ResponseWriter, r *http.Request) {
	follow := r.URL.Query().Get("follow") == "true"
	if follow {
		s.most.Store(max(s.most.Load(), s.open.Add(1)))
		defer s.open.Add(-1)
	}
	w.Header().Set("Content-Type", "text/plain")
	at := 0
	for {
		s.mu.Lock()
		lines, changed := s.lines[at:], s.changed
		s.mu.Unlock()
		if _, err := w.Write(lines); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush() // the next write fails, too
		at += len(lines)
		if !follow {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
