//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// transport is what carries a stream.
type transport struct {
	name  string
	tls   bool
	http2 int // streams on each connection; 0: HTTP/1.1
}

var transports = []transport{{"HTTP/1.1", false, 0}, {"HTTP/1.1, TLS", true, 0}, {"HTTP/2, TLS", true, 1}, {"HTTP/2, TLS, 50 a connection", true, 50}}

// secured is a gateway with or without TLS, measured with as many streams.
type secured struct {
	measure.Sample
	resident, heap, stacks, goroutines float64 // by stream; KiB but for the goroutines
}

// secured measures what a stream costs over TLS and HTTP/2 beside one without.
func (b *bench) secured() error {
	size := b.sizes.secured
	var names []string
	run := map[string]func(profile string) (secured, error){}
	plain := map[string]string{} // beside which a transport is measured
	for _, by := range transports {
		for _, mode := range b.modes {
			if !strings.HasPrefix(mode, "gateway") {
				continue
			}
			name := nameOf(mode) + ": " + by.name
			names = append(names, name)
			run[name] = func(profile string) (secured, error) { return b.securedOnce(mode, by, profile) }
			plain[name] = nameOf(mode) + ": " + transports[0].name
		}
	}
	results, err := measure.InTurn(b.rounds, names, func(name string) (secured, error) { return run[name]("") })
	if err != nil {
		return err
	}
	t := figures.Table{
		Title: fmt.Sprintf("%s, objects of %d bytes, by what carries them; %d rounds in turn, medians", size.title, objectSize, b.rounds),
		Header: []any{"", "KiB/stream", "heap", "stacks", "goroutines", "CPU µs/event", "× plain", "p50 ms", "p99 ms", "missed", "repeated",
			"waited × CPU"},
	}
	for _, name := range names {
		samples := results[name]
		of := func(read func(secured) float64) float64 { return figures.MedianOf(samples, read) }
		sampled := func(read func(measure.Sample) float64) float64 {
			return of(func(s secured) float64 { return read(s.Sample) })
		}
		var missed, repeated uint64
		for _, s := range samples {
			missed += s.Missed()
			repeated += s.Repeated + s.Disordered
		}
		b.Expect(name, "missed", missed)
		b.Expect(name, "repeated or in disorder", repeated)
		t.Add(name, of(func(s secured) float64 { return s.resident }), of(func(s secured) float64 { return s.heap }),
			of(func(s secured) float64 { return s.stacks }), of(func(s secured) float64 { return s.goroutines }),
			sampled(measure.Sample.PerServerCPU),
			measure.Ratio(samples, results[plain[name]], func(s secured) float64 { return s.PerServerCPU() }),
			sampled(measure.Latency(0.5)), sampled(measure.Latency(0.99)), missed, repeated, sampled(measure.Sample.Contention))
	}
	t.Note("memory of idle streams, less that before them: resident (Go's collector leaves as much again unused), and after collections in use on the heap " +
		"and in stacks, all in KiB by stream")
	t.Print(b.out)
	for _, name := range names {
		if b.profile == "" {
			break
		}
		if _, err := run[name](filepath.Join(b.profile, strings.NewReplacer("/", "", " ", "-", ",", "", ":", "").Replace(name))); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) securedOnce(mode string, by transport, profile string) (result secured, err error) {
	size := b.sizes.secured
	s, err := b.startSecured(mode, by)
	if err != nil {
		return result, err
	}
	defer s.stop()
	target := s.Live
	target.TLS, target.HTTP2 = by.tls, by.http2
	// The first connections cause costs that occur only once.
	if err := b.Open(&s.Server, "first", min(50, size.clients), target); err != nil {
		return result, err
	}
	if err := b.Close("first"); err != nil {
		return result, err
	}
	time.Sleep(time.Second)
	before, err := s.memory()
	if err != nil {
		return result, err
	}
	const group = "clients"
	if err := b.Open(&s.Server, group, size.clients, target); err != nil {
		return result, err
	}
	defer func() {
		if closing := b.Close(group); err == nil {
			err = closing
		}
	}()
	time.Sleep(size.warmUp)
	after, err := s.memory()
	if err != nil {
		return result, err
	}
	if profile != "" {
		b.profileMemory(s, profile)
		defer b.profileCPU(s, profile, time.Duration(float64(size.events)/size.rate*float64(time.Second)))()
	}
	result = after.less(before, float64(size.clients))
	result.Sample, err = b.Emit(&s.Server, group, size.clients, source.Emit{Rate: size.rate, Count: size.events})
	return result, err
}

// startSecured starts a gateway that speaks TLS unless the transport is the one without.
func (b *bench) startSecured(mode string, by transport) (*server, error) {
	if !by.tls {
		return b.start(mode, "")
	}
	dir, err := os.MkdirTemp("", "kubecast-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the gateway has read them then
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if _, err := gateway.WriteCertificate(certFile, keyFile); err != nil {
		return nil, err
	}
	return b.start(mode, fmt.Sprintf("}\ntls: {certFile: %q, keyFile: %q", certFile, keyFile))
}

// memory reads what a gateway uses after collections, in bytes.
func (s *server) memory() (m secured, err error) {
	for range 4 { // each halves stacks that have become too large
		if _, err := s.gateway.Read("/debug/pprof/heap?gc=1"); err != nil {
			return m, err
		}
	}
	text, err := s.gateway.Read("/metrics")
	if err != nil {
		return m, err
	}
	found := map[string]*float64{"go_memstats_heap_alloc_bytes": &m.heap, "go_memstats_stack_inuse_bytes": &m.stacks, "go_goroutines": &m.goroutines}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if to := found[name]; to != nil {
			if *to, err = strconv.ParseFloat(value, 64); err != nil {
				return m, err
			}
		}
	}
	resident, err := process.ReadMemory(s.Pid)
	m.resident = float64(resident.Now)
	return m, err
}

// less is the difference by stream.
func (s secured) less(before secured, streams float64) secured {
	kib := 1024 * streams
	return secured{
		resident: (s.resident - before.resident) / kib, heap: (s.heap - before.heap) / kib, stacks: (s.stacks - before.stacks) / kib,
		goroutines: (s.goroutines - before.goroutines) / streams,
	}
}
