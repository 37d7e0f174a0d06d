//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// workload is a request that clients repeat.
type workload struct {
	name, file string
	path       string // at the gateway
	plain      string // at the API server
	clients    int
	changing   bool    // pods change in the meantime
	small      bool    // so small that the cost of net/http itself matters
	atLeast    float64 // times the API server's requests per second
}

const (
	podsPath = "/api/v1/namespaces/" + namespace + "/pods"
	fromAny  = "resourceVersion=0"
	everyPod = podsPath + "?" + fromAny
	// streamedPods asks for all pods as the first events of a watch, up to a bookmark.
	streamedPods = podsPath + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

	byLabel = podsPath + "?" + fromAny + "&labelSelector=group%3Dg-17"
	byField = podsPath + "?" + fromAny + "&fieldSelector=status.phase%3DRunning"
	sorted  = podsPath + "?sort=-metadata.creationTimestamp,metadata.name&limit=100"
	onePod  = podsPath + "/worker-00042?" + fromAny
)

var workloads = []workload{
	{name: "all pods", file: "all", path: everyPod, plain: everyPod, clients: 2, atLeast: 3},
	{name: "by a label that 1 % have", file: "label", path: byLabel, plain: byLabel, clients: 8, atLeast: 10},
	{name: "by a field that 1 % have", file: "field", path: byField, plain: byField, clients: 8, atLeast: 10},
	{name: "the newest 100", file: "sorted", path: sorted, plain: everyPod, clients: 4, atLeast: 10},
	{name: "the newest 100, while 20 pods a second change", file: "sorted-changing", path: sorted, plain: everyPod, clients: 4, changing: true, atLeast: 10},
	{name: "one pod", file: "get", path: onePod, plain: onePod, clients: 8, small: true, atLeast: 10},
}

// sample is what one measurement found.
type sample struct {
	requests int
	took     time.Duration
	cpu      time.Duration // of the server
	bytes    int64
	latency  figures.Histogram
}

func (s sample) perSecond() float64 { return float64(s.requests) / s.took.Seconds() }
func (s sample) perRequest() float64 {
	return figures.Microseconds(s.cpu) / float64(max(s.requests, 1))
}
func (s sample) size() float64 { return float64(s.bytes) / 1024 / float64(max(s.requests, 1)) }

// server is a server that is measured.
type server struct {
	address string // host:port
	pid     int
	tls     *tls.Config // nil: without
	token   string
}

const viaGateway, apiServer, ceiling = "gateway", "API server", "ceiling"

// requests measures each workload at both servers in turn.
func (b *bench) requests(ctx context.Context) error {
	g, err := b.startGateway()
	if err != nil {
		return err
	}
	defer g.Stop()
	api, err := b.cluster.server()
	if err != nil {
		return err
	}
	servers := map[string]server{viaGateway: {address: g.Address, pid: g.Pid, token: b.token}, apiServer: api}
	fmt.Fprintf(b.out, "\n%d pods; HTTP/1.1 on kept connections, the API server with TLS, the gateway as an ingress reaches it\n", b.pods)
	for _, w := range workloads {
		if !strings.Contains(w.name, b.only) {
			continue
		}
		stop := func() error { return nil }
		if w.changing {
			stop = b.change(ctx)
		}
		results, err := b.compare(ctx, w, servers)
		if err := errors.Join(err, stop()); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		b.print(w, results)
		if b.profile != "" {
			profiled := make(chan error, 1)
			go func() {
				profiled <- g.Save(fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(max(b.duration.Seconds(), 1))), filepath.Join(b.profile, w.file+".cpu"))
			}()
			_, err := servers[viaGateway].load(ctx, w.path, w.clients, b.duration+2*time.Second)
			if err := errors.Join(err, <-profiled); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare measures the servers in turn, for small answers the ceiling beside them.
func (b *bench) compare(ctx context.Context, w workload, servers map[string]server) (map[string][]sample, error) {
	names := []string{apiServer, viaGateway}
	if w.small {
		child, s, err := startCeiling(ctx, servers[viaGateway], w.path)
		if err != nil {
			return nil, err
		}
		defer child.Kill()
		servers[ceiling] = s
		names = append(names, ceiling)
	}
	return measure.InTurn(b.rounds, names, func(name string) (sample, error) {
		path := w.path
		if name == apiServer {
			path = w.plain
		}
		return servers[name].load(ctx, path, w.clients, b.duration)
	})
}

func (b *bench) print(w workload, results map[string][]sample) {
	t := figures.Table{Title: fmt.Sprintf("%s, %d clients", w.name, w.clients), Header: []any{"", "requests/s", "p50 ms", "p99 ms", "CPU µs each", "KiB each"}}
	for _, name := range []string{apiServer, viaGateway, ceiling} {
		if len(results[name]) == 0 {
			continue
		}
		of := func(read func(sample) float64) float64 { return figures.MedianOf(results[name], read) }
		quantile := func(q float64) float64 {
			return of(func(s sample) float64 { return figures.Milliseconds(s.latency.Quantile(q)) })
		}
		t.Add(name, of(sample.perSecond), quantile(0.5), quantile(0.99), of(sample.perRequest), of(sample.size))
	}
	times := measure.Ratio(results[viaGateway], results[apiServer], sample.perSecond)
	cpu := measure.Ratio(results[apiServer], results[viaGateway], sample.perRequest)
	t.Note("the gateway answers %.1f × the requests per second, with %.1f × less CPU each", times, cpu)
	if w.small {
		t.Note("net/http alone (ceiling) answers %.1f × the API server's", measure.Ratio(results[ceiling], results[apiServer], sample.perSecond))
	}
	t.Reach("requests/s of the API server, by the gateway's", 1/times, 1/w.atLeast)
	t.Print(b.out)
}

// load sends requests one after the other on each of some connections.
func (s server) load(ctx context.Context, path string, clients int, duration time.Duration) (total sample, err error) {
	request := s.request(path)
	var connections []*connection
	defer func() {
		for _, c := range connections {
			err = errors.Join(err, c.Close())
		}
	}()
	for range clients {
		c, err := s.connect(ctx)
		if err != nil {
			return total, err
		}
		connections = append(connections, c)
		if _, err := c.get(request); err != nil { // warm-up
			return total, err
		}
	}
	before, err := process.CPU(s.pid)
	if err != nil {
		return total, err
	}
	samples, errs := make([]sample, clients), make([]error, clients)
	var loading sync.WaitGroup
	began := time.Now()
	for i, c := range connections {
		loading.Go(func() {
			for sent := began; sent.Sub(began) < duration && ctx.Err() == nil; {
				n, err := c.get(request)
				if err != nil {
					errs[i] = err
					return
				}
				now := time.Now()
				samples[i].latency.Add(now.Sub(sent))
				samples[i].requests++
				samples[i].bytes += int64(n)
				sent = now
			}
		})
	}
	loading.Wait()
	total.took = time.Since(began)
	after, err := process.CPU(s.pid)
	total.cpu = after - before
	for _, s := range samples {
		total.requests += s.requests
		total.bytes += s.bytes
		total.latency.Merge(s.latency)
	}
	return total, errors.Join(err, errors.Join(errs...), ctx.Err())
}

// change patches pods until stop is called.
func (b *bench) change(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-tick.C:
			}
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"kubecast.io/bench":"%d"}}}`, n)
			_, err := b.cluster.client.CoreV1().Pods(namespace).Patch(context.WithoutCancel(ctx), podName(n%b.pods), types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				done <- err
				return
			}
		}
	}()
	return func() error {
		cancel()
		return <-done
	}
}
