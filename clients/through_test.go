package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// arrivals are the times at which the events of a stream came, by the objects' versions.
type arrivals struct {
	route route

	mu    sync.Mutex
	times map[string]time.Time
	ended error // why the stream has ended
}

// follow opens a stream on a route, and notes when its events come, until the test ends.
func (r route) follow(t *testing.T, path string) *arrivals {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	a := &arrivals{route: r, times: map[string]time.Time{}}
	done := make(chan struct{})
	go func() { // even the answer's head may take long
		defer close(done)
		err := a.read(request)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.ended = err
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		r.client.CloseIdleConnections()
	})
	return a
}

// read reads the stream to its end, and returns why it has ended.
func (a *arrivals) read(request *http.Request) error {
	response, err := a.route.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Proto != a.route.proto {
		return fmt.Errorf("answered %s %s", response.Proto, response.Status)
	}
	reader := bufio.NewReaderSize(response.Body, 64<<10)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return err
		}
		a.note(line, time.Now())
	}
}

func (a *arrivals) note(line string, now time.Time) {
	var said struct {
		Metadata struct{ Name, ResourceVersion string }
	}
	data, ok := strings.CutPrefix(line, "data: ")
	if !ok || json.Unmarshal([]byte(data), &said) != nil || said.Metadata.Name == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times[said.Metadata.ResourceVersion] = now
	a.times[said.Metadata.Name] = now // the latest of that name
}

// at returns when an object of this name or version came.
func (a *arrivals) at(key string) (time.Time, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, ok := a.times[key]; ok {
		return at, nil
	}
	if a.ended != nil {
		return time.Time{}, fmt.Errorf("%s: the stream has ended: %w", a.route.name, a.ended)
	}
	return time.Time{}, fmt.Errorf("%s: %s has not come", a.route.name, key)
}

// behind returns how much later than on another route the versions came that both routes have.
func (a *arrivals) behind(other *arrivals) (delays []time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	for key, at := range a.times {
		if before, ok := other.times[key]; ok && key[0] <= '9' { // a version
			delays = append(delays, at.Sub(before))
		}
	}
	slices.Sort(delays)
	return delays
}

func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

// promptly is how much later a frame may come through an ingress than directly.
const promptly = 100 * time.Millisecond

// TestIngressesPassFramesAtOnce compares when events come through nginx, through HAProxy and directly. Nine of ten
// must come within 100 ms of the direct stream; the tenth is left to the machine's noise. An nginx that ignores the
// gateway's header is measured, too: it shows that the test can see buffering.
func TestIngressesPassFramesAtOnce(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	c := newCertificate(t, t.TempDir())
	g, n := s.newGateway(t), s.newNamespace(t, "prompt")
	g.start(t, "")
	viaNginx, viaHAProxy := startNginx(t, g, c, nginxOptions{}), startHAProxy(t, g, c, "")

	direct := g.direct().follow(t, n.path())
	var through, held []*arrivals
	for _, r := range append(viaNginx.routesThrough("nginx", c), viaHAProxy.routesThrough("HAProxy", c)...) {
		through = append(through, r.follow(t, n.path()))
	}
	for _, r := range viaNginx.held.routesThrough("nginx, buffering", c) {
		held = append(held, r.follow(t, n.path()))
	}
	if err := n.create(t.Context(), "begin", ""); err != nil {
		t.Fatal(err)
	}
	awaitAll(t, through, "begin")

	stop := n.churn(t, 20)
	time.Sleep(6 * time.Second) // the measurement
	stop()
	if err := n.create(t.Context(), "end", ""); err != nil {
		t.Fatal(err)
	}
	awaitAll(t, append(through, direct), "end")
	for _, a := range through {
		if p90, _ := a.report(t, direct); p90 > promptly {
			t.Errorf("%s: one frame in ten comes more than %s after the direct one", a.route.name, promptly)
		}
	}
	for _, a := range held {
		if p90, frames := a.report(t, direct); frames > 0 && p90 < promptly {
			t.Errorf("%s: frames come as fast as without buffering, so this test could not see buffering", a.route.name)
		}
	}
}

func (a *arrivals) report(t *testing.T, direct *arrivals) (p90 time.Duration, frames int) {
	t.Helper()
	delays := a.behind(direct)
	p90 = percentile(delays, 90)
	t.Logf("%-26s %4d frames, behind the direct stream by p50 %6.1f ms, p90 %6.1f ms, at most %6.1f ms", a.route.name, len(delays),
		milliseconds(percentile(delays, 50)), milliseconds(p90), milliseconds(percentile(delays, 100)))
	return p90, len(delays)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// awaitAll waits until an object has come on all routes.
func awaitAll(t *testing.T, all []*arrivals, name string) {
	t.Helper()
	eventually(t, name+" comes on all routes", func() error {
		for _, a := range all {
			if _, err := a.at(name); err != nil {
				return err
			}
		}
		return nil
	})
}
