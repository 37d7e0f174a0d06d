package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// logViewer follows logs, at any of some gateways.
type logViewer struct {
	wanderer
	resets []string

	mu    sync.Mutex
	lines map[string][]string // by pod/container, each with its time
	ends  map[string]int
}

func (v *logViewer) note(read frame) {
	var told struct{ Pod, Container, Time, Text string }
	if json.Unmarshal([]byte(read.data), &told) != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	of := told.Pod + "/" + told.Container
	switch read.event {
	case "line":
		v.lines[of] = append(v.lines[of], told.Time+" "+told.Text)
	case "ended":
		v.ends[of]++
	case "reset":
		v.resets = append(v.resets, read.data)
	}
}

// ended is how many containers' ends it was told.
func (v *logViewer) ended() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.ends)
}

// lazy is an error that is put into words only if it is told.
type lazy func() string

func (l lazy) Error() string { return l() }

// TestEachLineIsToldOnce to each viewer of fifty containers that write at once, while the viewers
// are cut and change gateways, a gateway is killed, and the API server is restarted: as kubectl
// logs prints them in the end.
func TestEachLineIsToldOnce(t *testing.T) {
	s := onStage(t)
	random := seed(t)
	s.namespaces(t, "loglines")
	var gateways []*gateway
	var urls []string
	for range 2 {
		g := s.startGateway(t, gatewayOptions{config: "logs: {perUser: 64, ring: 64Ki}\n"})
		g.waitReady(t)
		gateways, urls = append(gateways, g), append(urls, g.url)
	}
	const pods, containers = 25, 50
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var viewing sync.WaitGroup
	var viewers []*logViewer
	for i := range 3 {
		token, err := s.token(fmt.Sprint("logs-", i), "platform")
		if err != nil {
			t.Fatal(err)
		}
		const path = "/logs/api/v1/namespaces/loglines/pods?labelSelector=app%3Dloglines&tailLines=100000"
		v := &logViewer{wanderer: wanderer{path: path, urls: urls, token: token}, lines: map[string][]string{}, ends: map[string]int{}}
		likes := rand.New(rand.NewPCG(random.Uint64(), 0))
		viewers = append(viewers, v)
		viewing.Go(func() { v.wander(ctx, likes, v.note) })
	}
	for i := range pods {
		s.logging(t, "loglines", fmt.Sprint("writes-", i), map[string]string{"devcluster.kubecast.io/run-seconds": fmt.Sprint(12 + i%5), "devcluster.kubecast.io/log-lines-per-second": "20"})
	}
	time.Sleep(4 * time.Second)
	gateways[0].kill()
	gateways[0].restart(t)
	if err := s.cluster.Fault(t.Context(), "apiserver-restart"); err != nil {
		t.Fatal(err)
	}
	for i, v := range viewers {
		advancing(t, fmt.Sprintf("viewer %d is told the ends of all containers", i), func() (int, error) { return v.ended(), nil }, func() error {
			if n := v.ended(); n < containers {
				return lazy(func() string {
					ended, err := s.kube.CoreV1().Pods("loglines").List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=Succeeded"})
					return fmt.Sprintf("only %d, while %d of %d pods have ended (%v); it %v", n, len(ended.Items), pods, err, v.was.Load())
				})
			}
			return nil
		})
	}
	cancel()
	viewing.Wait()
	all := 0
	for i := range pods {
		for _, container := range []string{"main", "side"} {
			of := fmt.Sprintf("writes-%d/%s", i, container)
			printed, err := s.tryKubectl("logs", "--timestamps", "-n", "loglines", fmt.Sprint("writes-", i), "-c", container)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Split(strings.TrimSuffix(printed, "\n"), "\n")
			all += len(want)
			for n, v := range viewers {
				if err := sameLines(v.lines[of], want); err != nil {
					t.Errorf("viewer %d of %s: %v", n, of, err)
				}
			}
		}
	}
	for n, v := range viewers {
		if len(v.resets) > 0 || v.cuts < 3 {
			t.Errorf("viewer %d: resets %q in %d connections", n, v.resets, v.cuts)
		}
		if twice := slices.DeleteFunc(slices.Collect(maps.Keys(v.ends)), func(of string) bool { return v.ends[of] == 1 }); len(twice) > 0 {
			t.Errorf("viewer %d: the ends of %v are told twice", n, twice)
		}
	}
	t.Logf("%d lines of %d containers", all, containers)
}

// sameLines compares lines, whose times kubectl prints with all their digits.
func sameLines(got, want []string) error {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			return fmt.Errorf("%d lines in place of %d", len(got), len(want))
		}
		at, text, _ := strings.Cut(got[i], " ")
		wantAt, wantText, _ := strings.Cut(want[i], " ")
		a, err := time.Parse(time.RFC3339Nano, at)
		b, wantErr := time.Parse(time.RFC3339Nano, wantAt)
		if errors.Join(err, wantErr) != nil || !a.Equal(b) || text != wantText {
			return fmt.Errorf("line %d of %d is %q in place of %q", i, len(want), got[i], want[i])
		}
	}
	return nil
}
