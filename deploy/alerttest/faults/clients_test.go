package faults

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// clients do what they should not, all at once.
func clients(t *testing.T, s *stage) *server {
	g := s.gateway(t, options{config: "audit: {level: metadata, file: /dev/full}\n"}).start().ready()
	narrow := s.gateway(t, options{config: "stream: {perUser: 1}\n"}).start().ready()
	p := scrapeGateways(t, g, narrow)
	viewer := s.viewer(t, "clients")
	narrow.mustGet(viewer, "/api/v1/pods", http.StatusOK)
	p.sees("sum(kubecast_ready) == 2")
	p.isSilent("KubecastDenials", "KubecastSignInsRefused", "KubecastLimitsMet", "KubecastResets", "KubecastAuditLinesLost")

	get := func(g *gateway, token string) func(context.Context) {
		return func(context.Context) { _, _, _ = g.get("http://"+g.listen, token, "/api/v1/pods") }
	}
	// What is denied was little for long: the mean of a day stands for it, which a test has to begin with.
	stops := []func(){
		often(t, 30, get(g, s.user(t, "stranger"))),
		often(t, 20, get(g, "none.at.all")),
		often(t, 15, func(ctx context.Context) { _ = stream(ctx, g, viewer, "/api/v1/pods", "xanother.1", "event: reset") }),
		often(t, 5, func(ctx context.Context) { _ = stream(ctx, narrow, viewer, "/api/v1/pods", "", "never") }),
	}
	for alert, says := range map[string]string{
		"KubecastAuditLinesLost": "disk is full", "KubecastDenials": "denied", "KubecastSignInsRefused": "credentials", "KubecastLimitsMet": "limit", "KubecastResets": "snapshot",
	} {
		p.fires(alert, says)
	}
	for _, stop := range stops {
		stop()
	}
	for _, alert := range []string{"KubecastAuditLinesLost", "KubecastDenials", "KubecastSignInsRefused", "KubecastLimitsMet", "KubecastResets"} {
		p.ends(alert)
	}
	return p
}

// stream reads a stream, from an id if there is one, until a line comes.
func stream(ctx context.Context, g *gateway, token, path, lastID, until string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.listen+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Authorization", "Bearer "+token)
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 10<<20)
	for lines.Scan() {
		if lines.Text() == until {
			return nil
		}
	}
	return fmt.Errorf("%d, and no %q: %w", response.StatusCode, until, lines.Err())
}

// throttled stops a gateway most of the time, as a limit of CPU does.
func throttled(t *testing.T, s *stage) *server {
	g := s.gateway(t, options{config: "stream: {gather: 50ms}\n"}).start().ready()
	p := scrapeGateways(t, g)
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "changes"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n := 0
	stopChanging := eachOf(t, 1, func(<-chan struct{}) {
		n++
		_, err := maps.Update(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "changes"}, Data: map[string]string{"n": fmt.Sprint(n)}}, metav1.UpdateOptions{})
		if err != nil && t.Context().Err() == nil {
			t.Logf("a change was refused: %v", err) // what comes of all changes is looked at
		}
		time.Sleep(10 * time.Millisecond)
	})
	defer stopChanging()
	token := s.viewer(t, "throttled")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	stopReading := eachOf(t, 2, func(<-chan struct{}) { _ = stream(ctx, g, token, "/api/v1/namespaces/default/configmaps", "", "never") })
	defer stopReading()
	defer leave() // before it is waited for
	p.sees("rate(kubecast_stream_append_to_flush_seconds_count[5s]) > 5")
	p.isSilent("KubecastEventsLate")
	release := eachOf(t, 1, func(<-chan struct{}) {
		g.process.Signal(syscall.SIGSTOP)
		time.Sleep(280 * time.Millisecond)
		g.process.Signal(syscall.SIGCONT)
		time.Sleep(time.Duration(60+rand.IntN(120)) * time.Millisecond)
	})
	p.fires("KubecastEventsLate", g.ops)
	release()
	p.ends("KubecastEventsLate")
	return p
}

// eachOf does something in so many goroutines, again and again, until it is told to stop.
func eachOf(t *testing.T, n int, do func(ended <-chan struct{})) (stop func()) {
	ended := make(chan struct{})
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					do(ended)
				}
			}
		})
	}
	stop = sync.OnceFunc(func() { close(ended); running.Wait() })
	t.Cleanup(stop)
	return stop
}
