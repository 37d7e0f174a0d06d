//go:build linux

package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// sample is one measurement.
type sample struct {
	measure.Sample
	apiCPU  float64           // µs of the API server by update delivered
	patches figures.Histogram // how long the patches took
}

// The servers.
const (
	viaGateway = "gateway"
	bareWatch  = "bare watch"
)

const (
	group    = "clients"
	livePath = "/api/v1/pods?watch=true&sendInitialEvents=false"
)

// workload measures both servers in turn.
func (b *bench) workload(ctx context.Context, s size, profile string) error {
	modes := []string{viaGateway, bareWatch}
	results, err := measure.InTurn(b.rounds, modes, func(mode string) (sample, error) {
		if mode == viaGateway {
			return b.throughGateway(s, "")
		}
		return b.bare(ctx, s)
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d clients × %g patches/s", s.clients, s.rate)
	t := figures.Table{
		Title: fmt.Sprintf("%s, %d pods of %d bytes; %d rounds in turn, medians", name, b.pods, b.podSize, b.rounds),
		Header: []any{"", "CPU µs/update", "API server's µs/update", "p50 ms", "p99 ms", "p99.9 ms", "bytes/update", "missed",
			"repeated", "cut", "patch p50 ms", "p99 ms", "waited × CPU"},
	}
	for _, mode := range modes {
		samples := results[mode]
		var missed, repeated uint64
		var cut int
		for _, s := range samples {
			missed += s.Missed()
			cut += s.Clients - s.Open
			repeated += s.Repeated
		}
		of := func(read func(measure.Sample) float64) float64 {
			return figures.MedianOf(samples, func(s sample) float64 { return read(s.Sample) })
		}
		patch := func(q float64) float64 {
			return figures.MedianOf(samples, func(s sample) float64 { return figures.Milliseconds(s.patches.Quantile(q)) })
		}
		var cpu any = of(measure.Sample.PerServerCPU)
		if mode == bareWatch {
			cpu = "–"
		} else if missed+repeated > 0 {
			b.lost = append(b.lost, fmt.Sprintf("%s: %d missed, %d repeated", name, missed, repeated))
		}
		t.Add(mode, cpu, figures.MedianOf(samples, func(s sample) float64 { return s.apiCPU }),
			of(measure.Latency(0.5)), of(measure.Latency(0.99)), of(measure.Latency(0.999)), of(measure.Sample.PerBytes),
			missed, repeated, cut, patch(0.5), patch(0.99), of(measure.Sample.Contention))
	}
	t.Note("latency from just before the patch was sent until the client has read the change, so with the patch; the API server's CPU includes " +
		"the patches")
	t.Note("cut: connections that the server ended; waited × CPU: how long the gateway, or the API server, waited for a processor, by the " +
		"time it had one")
	b.targets(&t, s, results[viaGateway], results[bareWatch])
	t.Print(b.out)
	if profile != "" {
		_, err = b.throughGateway(s, filepath.Join(profile, s.String()))
	}
	return err
}

// targets notes whether the project's own targets are reached.
func (b *bench) targets(t *figures.Table, s size, gateway, bare []sample) {
	at := func(q float64) func(sample) float64 {
		return func(s sample) float64 { return measure.Latency(q)(s.Sample) }
	}
	if s.clients == 50 {
		t.Reach("CPU µs per update", figures.MedianOf(gateway, func(s sample) float64 { return s.PerServerCPU() }), 15)
		var more []float64
		for i := range gateway {
			more = append(more, at(0.99)(gateway[i])-at(0.99)(bare[i]))
		}
		t.Reach("p99 ms beyond the bare watch's", figures.Median(more), 10)
	}
	if s.clients == 1 {
		t.Note("what a patch costs the gateway whether anybody sees it or not, and one delivery")
		return
	}
	t.Reach("p99.9 ms", figures.MedianOf(gateway, at(0.999)), 100)
}

func (b *bench) throughGateway(s size, profile string) (result sample, err error) {
	g, err := gateway.Start(gateway.Options{Binary: b.gateway, Dir: b.dir, Config: b.config, Kubeconfig: b.cluster.Kubeconfig()})
	if err != nil {
		return result, err
	}
	defer g.Stop()
	server := &measure.Server{
		Name: viaGateway, Pid: g.Pid, Source: b.patcher,
		Live: load.Target{Address: g.Address, Path: livePath, Token: b.token},
	}
	if profile != "" {
		profiled := make(chan error, 1)
		go func() {
			err := os.MkdirAll(filepath.Dir(profile), 0o755)
			time.Sleep(4 * time.Second) // until it is warm
			if err == nil {
				err = g.Save("/debug/pprof/profile?seconds=10", profile+".cpu")
			}
			profiled <- err
		}()
		defer func() {
			if failed := <-profiled; err == nil {
				err = failed
			}
		}()
	}
	return b.clients(server, s)
}

// bare gives each client its own watch at the API server, from the current version on.
func (b *bench) bare(ctx context.Context, s size) (result sample, err error) {
	version, err := b.cluster.currentVersion(ctx)
	if err != nil {
		return result, err
	}
	host, err := url.Parse(b.cluster.config.Host)
	if err != nil {
		return result, err
	}
	return b.clients(&measure.Server{
		Name: bareWatch, Pid: b.cluster.apiServer, Source: b.patcher,
		Live: load.Target{
			Address: host.Host, TLS: true, Token: b.cluster.config.BearerToken,
			Path: "/api/v1/pods?watch=true&resourceVersion=" + version,
		},
	}, s)
}

// clients opens the clients, warms up, and measures.
func (b *bench) clients(server *measure.Server, s size) (result sample, err error) {
	if err := b.Open(server, group, s.clients, server.Live); err != nil {
		return result, err
	}
	defer func() {
		if closing := b.Close(group); err == nil {
			err = closing
		}
	}()
	if _, err := b.Emit(server, group, s.clients, source.Emit{Rate: s.rate, Count: int(2 * s.rate)}); err != nil {
		return result, err
	}
	if err := b.patcher.Call("Took", nil, new(figures.Histogram)); err != nil { // forget the patches before the measurement
		return result, err
	}
	before, err := process.CPU(b.cluster.apiServer)
	if err != nil {
		return result, err
	}
	if result.Sample, err = b.Emit(server, group, s.clients, source.Emit{Rate: s.rate, Count: s.patches}); err != nil {
		return result, err
	}
	after, err := process.CPU(b.cluster.apiServer)
	if err != nil {
		return result, err
	}
	result.apiCPU = figures.Microseconds(after-before) / float64(max(result.Delivered, 1))
	return result, b.patcher.Call("Took", nil, &result.patches)
}
