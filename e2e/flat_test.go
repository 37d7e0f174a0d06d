package e2e

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/e2e/faultproxy"
	"github.com/kubecast/kubecast/e2e/harness"
	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/certtest"
)

// inUse is what a gateway uses that nobody is connected to.
type inUse struct {
	after             time.Duration
	goroutines, files int
	heap              float64 // MiB that are reachable
}

// Clients of every sort come, read for a while or not at all, and leave, also while the API server fails. Whenever all
// have left, the gateway has no more goroutines and open files than after the first of them. $KUBECAST_SOAK says
// how long that goes on, as in `make soak`; its memory is looked at then, too, once what is kept has had time to fill up.
func TestNothingIsLeftOfClientsThatLeft(t *testing.T) {
	t.Parallel()
	lasting, visitors := 3*time.Second, 40
	_, soak := apitest.Soak(t, 0)
	if soak > 0 {
		lasting, visitors = soak, 200
	}
	s := onStage(t)
	s.namespaces(t, "flat-a", "flat-b")
	random := seed(t)
	proxy := faultproxy.Start(t, s.cluster)
	certFile, keyFile := certtest.New(t, "gateway.test").Write(t, t.TempDir())
	var gateways []*gateway
	for _, opts := range []gatewayOptions{{}, {certFile: certFile, keyFile: keyFile}} {
		opts.kubeconfig, opts.config = proxy.Kubeconfig(t, s.cluster), "ops: {pprof: true}\nring: {events: 2000}\n" // which is full soon
		g := s.startGateway(t, opts)
		g.waitReady(t)
		gateways = append(gateways, g)
	}
	finish := s.startChurn(t, &churn{namespaces: []string{"flat-a", "flat-b"}, test: "flat", random: rand.New(rand.NewPCG(random.Uint64(), 1))})
	used := make([][]inUse, len(gateways))
	for began, n := time.Now(), 0; n < 3 || time.Since(began) < lasting; n++ {
		var visiting sync.WaitGroup
		ctx, leave := context.WithTimeout(t.Context(), 4*time.Second)
		for i := range visitors {
			v := visitor{gateway: gateways[i%len(gateways)], token: s.viewer(t), random: rand.New(rand.NewPCG(random.Uint64(), 2))}
			visiting.Go(func() { v.visit(ctx) })
		}
		if n > 0 { // the first are what others are compared with
			failing := []faultproxy.Failing{500, 429, faultproxy.Hangs, faultproxy.IsCut, faultproxy.IsHeld}[random.IntN(5)]
			_, mend := proxy.Fail(t, "", []string{"/apis/", "/api/v1/pods", "/"}[random.IntN(3)], failing)
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
			mend()
		}
		visiting.Wait()
		leave()
		for i, g := range gateways {
			g.waitReady(t)
			used[i] = append(used[i], g.atRest(t, used[i], time.Since(began)))
		}
	}
	finish()
	for i := range gateways {
		checkFlat(t, used[i], soak > 0)
	}
}

// checkFlat compares what was used lately with what was used before, and prints that.
func checkFlat(t *testing.T, used []inUse, heapToo bool) {
	t.Helper()
	for i := range used {
		if i%max(1, len(used)/24) == 0 || i == len(used)-1 {
			t.Logf("after %8v: %d goroutines, %d files, %.1f MiB", used[i].after.Round(time.Second), used[i].goroutines, used[i].files, used[i].heap)
		}
	}
	if !heapToo || len(used) < 8 {
		return
	}
	heap := func(of []inUse) float64 {
		var all []float64
		for _, u := range of {
			all = append(all, u.heap)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	third, last := heap(used[len(used)/2:len(used)*3/4]), heap(used[len(used)*3/4:])
	t.Logf("median of what is reachable: %.1f MiB in the third quarter, %.1f MiB in the last", third, last)
	if last > third*1.1+1 {
		t.Errorf("memory grows: %.1f MiB became %.1f MiB", third, last)
	}
}

// idleConnectionsEnd is within what a connection to an API server ends that nobody needs any more: it is kept for 90 s.
const idleConnectionsEnd = 3 * time.Minute

// moreAtRest is how many more goroutines, or files, there may be than at first: requests to API
// servers and databases come and go.
const moreAtRest = 12

// atRest waits until no more is used than after the first clients had left.
func (g *gateway) atRest(t *testing.T, before []inUse, after time.Duration) (now inUse) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	g.client.CloseIdleConnections()
	if len(before) == 0 {
		for range 20 { // what ends by itself a little later does not count
			u := g.usage(t)
			if now.goroutines == 0 || u.goroutines < now.goroutines {
				now = u
			}
			time.Sleep(100 * time.Millisecond)
		}
		now.after = after
		return now
	}
	first := before[0]
	for deadline := time.Now().Add(idleConnectionsEnd); ; time.Sleep(time.Second) {
		now = g.usage(t)
		if now.goroutines <= first.goroutines+moreAtRest && now.files <= first.files+moreAtRest {
			break
		}
		if time.Now().After(deadline) {
			running, err := fetch(http.MethodGet, g.ops+"/debug/pprof/goroutine?debug=1", nil)
			t.Fatalf("of clients that left something is left: %+v, and at first %+v: %v\n%s", now, first, err, running.body)
		}
	}
	now.after = after
	return now
}

var (
	goroutinesMetric = regexp.MustCompile(`(?m)^go_goroutines (\S+)$`)
	filesMetric      = regexp.MustCompile(`(?m)^process_open_fds (\S+)$`)
	heapMetric       = regexp.MustCompile(`(?m)^go_memstats_heap_alloc_bytes (\S+)$`)
)

// usage is what the gateway uses at the moment, after a garbage collection.
func (g *gateway) usage(t *testing.T) inUse {
	t.Helper()
	if a, err := fetch(http.MethodGet, g.ops+"/debug/pprof/heap?gc=1", nil); err != nil || a.code != http.StatusOK {
		t.Fatal(a.code, err)
	}
	a, err := fetch(http.MethodGet, g.ops+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	value := func(metric *regexp.Regexp) float64 {
		match := metric.FindStringSubmatch(a.body)
		if match == nil {
			t.Fatalf("no %s in\n%s", metric, harness.Tail(a.body, 20))
		}
		v, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return inUse{goroutines: int(value(goroutinesMetric)), files: int(value(filesMetric)), heap: value(heapMetric) / (1 << 20)}
}

// visitor is a client that asks for this and that, and leaves in the middle.
type visitor struct {
	gateway *gateway
	token   string
	random  *rand.Rand
}

// visited are what visitors ask for: streams of every sort, watches, lists, and what is refused.
var visited = []string{
	"/api/v1/pods?labelSelector=test%3Dflat",
	"/api/v1/namespaces/flat-a/pods?fields=status.phase&deltas=merge-patch",
	"/api/v1/pods?countBy=status.phase",
	"/api/v1/pods?sort=metadata.name&limit=5&labelSelector=test%3Dflat",
	"/stream?pods=/api/v1/namespaces/flat-b/pods&jobs=/apis/batch/v1/jobs&past=/history/apis/batch/v1/jobs",
	"/history/apis/batch/v1/jobs",
	"/notifications",
	"/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=5",
	"/api/v1/pods?limit=10",
	"/api/v1/namespaces/flat-a/pods/none/log?follow=true",
	"/api/v1/nonsense",
	"/apis/batch/v1/jobs?fieldSelector=nonsense",
}

func (v *visitor) visit(ctx context.Context) {
	for ctx.Err() == nil {
		switch v.random.IntN(12) {
		case 0:
			v.sayLittle(ctx)
		default:
			v.read(ctx, visited[v.random.IntN(len(visited))])
		}
	}
}

// read reads an answer for a while, or nothing of it.
func (v *visitor) read(ctx context.Context, path string) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(20+v.random.IntN(1200))*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.gateway.url+path, nil)
	if err != nil {
		return
	}
	r.Header = bearer(v.token)
	if v.random.IntN(12) == 0 {
		r.Header.Set("Authorization", "Bearer nobody's")
	}
	r.Header.Set("Accept", []string{"text/event-stream", "text/event-stream", "application/json", "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"}[v.random.IntN(4)])
	if v.random.IntN(3) == 0 {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	response, err := v.gateway.client.Do(r)
	if err != nil {
		return
	}
	defer response.Body.Close()
	if v.random.IntN(5) == 0 { // it takes nothing until it leaves
		<-ctx.Done()
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
}

// sayLittle connects, and says a part of a request or nothing.
func (v *visitor) sayLittle(ctx context.Context) {
	_, address, _ := strings.Cut(v.gateway.url, "://")
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer conn.Close()
	if v.random.IntN(2) == 0 {
		_, _ = io.WriteString(conn, "GET /api/v1/pods HTTP/1.1\r\nHost: gateway\r\nAccept: text/ev")
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(v.random.IntN(800)) * time.Millisecond):
	}
}
