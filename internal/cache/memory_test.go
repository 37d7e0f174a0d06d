package cache

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/stream"
)

// fillPods puts pods of about 2.3 KB with five labels into an API server.
func fillPods(api *apitest.API, n int) {
	padding := strings.Repeat("x", 1900)
	for i := range n {
		key := fmt.Sprintf("team-%d/train-%05d-worker-%c%05x", i%20, i/8, 'a'+i%8, i*7919)
		api.Put("pods", key, fmt.Sprint("spec.nodeName=node-", i%100), "spec.padding="+padding, apitest.Set("metadata.labels", map[string]string{
			"app.kubernetes.io/name": "train", "batch.kubernetes.io/job-name": fmt.Sprintf("train-%05d", i/8),
			"batch.kubernetes.io/controller-uid": fmt.Sprintf("%08x-1111-2222-3333-444455556666", i/8), "queue": fmt.Sprint("q", i%5), "size": "small",
		}))
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// measure returns how many bytes a cached pod costs, client-go's own indexer included, and how large its compact JSON
// is.
func measure(tb testing.TB, n int) (cost, json float64) {
	api := apitest.New(pods)
	fillPods(api, n)
	before := heap()
	store, stop := fill(tb, api, roomy, "spec.nodeName")
	defer stop()
	if err := store.WaitSynced(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	grown := heap() - before
	bytes, objects := 0, 0
	for o := range store.Snapshot().List(stream.AllNamespaces(), Selector{}, "", "") {
		bytes += len(o.JSON())
		objects++
	}
	if objects != n {
		tb.Fatalf("%d objects", objects)
	}
	runtime.KeepAlive(api)
	return float64(grown) / float64(n), float64(bytes) / float64(n)
}

// A pod may cost at most 1.4 times its JSON, with client-go's indexer, the tree and the indexes included.
func TestMemoryPerPodIsNearItsJSON(t *testing.T) {
	cost, json := measure(t, 5000)
	t.Logf("%.0f bytes per pod of %.0f bytes of JSON: %.2f times", cost, json, cost/json)
	if cost > 1.4*json {
		t.Errorf("a pod of %.0f bytes costs %.0f, %.2f times", json, cost, cost/json)
	}
}

// BenchmarkMemory is for -benchtime=1x.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		cost, json := measure(b, 20_000)
		b.ReportMetric(cost, "B/pod")
		b.ReportMetric(json, "JSON-B/pod")
		b.ReportMetric(cost/json, "times")
	}
}
