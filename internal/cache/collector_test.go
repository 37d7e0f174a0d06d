package cache

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/stream"
)

// What Prometheus is told of a kind follows what happens to it.
func TestMetricsFollowWhatAKindHoldsAndHowOftenItIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		api.Put("pods", "n/a")
		api.Put("pods", "n/b")
		k, stop := runKinds(t, api, Options{Preload: []string{"pods"}})
		defer stop()
		registry := prometheus.NewRegistry()
		registry.MustRegister(NewCollector(func() []*Kinds { return []*Kinds{k} }))
		expect := func(when string, relists int) {
			t.Helper()
			time.Sleep(time.Minute)
			store := k.All()[0]
			bytes := 0
			for o := range store.Snapshot().List(stream.AllNamespaces(), Selector{}, "", "") {
				bytes += len(o.JSON())
			}
			want := ""
			for _, line := range []struct {
				name, kind string
				value      int
			}{
				{"cache_bytes", "gauge", bytes}, {"cache_objects", "gauge", store.Snapshot().Len()}, {"upstream_relists_total", "counter", relists},
			} {
				want += fmt.Sprintf("# TYPE kubecast_%s %s\nkubecast_%[1]s{cluster=\"test\",kind=\"pods\"} %[3]d\n", line.name, line.kind, line.value)
			}
			if err := testutil.GatherAndCompare(registry, strings.NewReader(withHelp(t, registry, want)), "kubecast_cache_bytes", "kubecast_cache_objects", "kubecast_upstream_relists_total"); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		expect("at first", 0)
		api.Put("pods", "n/c", "spec.pad="+strings.Repeat("x", 1000))
		synctest.Wait()  // a watch that ends without an event is an error
		api.EndWatches() // and one that had some is no relist
		expect("after a watch", 0)
		api.ExpireWatches()
		synctest.Wait()
		api.Delete("pods", "n/a")
		api.Compact()
		expect("after a relist", 1)
	})
}

// withHelp adds the help texts, which are compared, too.
func withHelp(t *testing.T, registry *prometheus.Registry, text string) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		text = strings.Replace(text, "# TYPE "+f.GetName()+" ", "# HELP "+f.GetName()+" "+f.GetHelp()+"\n# TYPE "+f.GetName()+" ", 1)
	}
	return text
}

// The estimate is of rings into which each object has come ten times, whose events are like the objects, and not of more than a ring
// may hold. Kinds that have no objects, or few, do not count as if their rings were full.
func TestTheEstimateIsOfWhatObjectsMayFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(pods)
		for i := range 10 {
			api.Put("pods", fmt.Sprintf("n/p%d", i), "spec.pad="+strings.Repeat("x", 1000))
		}
		k, stop := runKinds(t, api, Options{Preload: []string{"pods"}})
		defer stop()
		time.Sleep(time.Second)
		holds := k.All()[0].replacedBytes.holds.Load()
		if holds < 10_000 {
			t.Fatalf("it holds %d bytes", holds)
		}
		k.opts.Topic = stream.Options{Events: 16384, Bytes: 64 << 20}
		if got, want := k.MayHold(), holds+10*holds; got != want {
			t.Errorf("rings with room: %d, not %d", got, want)
		}
		k.opts.Topic = stream.Options{Events: 50, Bytes: 1 << 30}
		if got, want := k.MayHold(), holds+50*(holds/10); got != want {
			t.Errorf("rings of 50 events: %d, not %d", got, want)
		}
		k.opts.Topic = stream.Options{Events: 50, Bytes: 1234}
		if got, want := k.MayHold(), holds+1234; got != want {
			t.Errorf("rings of 1234 bytes: %d, not %d", got, want)
		}
	})
}

// Whoever looks at kinds without objects must not make the alert on memory fire.
func TestTheEstimateOfKindsWithoutObjectsIsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, stop := runKinds(t, apitest.New(pods), Options{Preload: []string{"pods"}, Topic: stream.Options{Events: 16384, Bytes: 64 << 20}})
		defer stop()
		time.Sleep(time.Second)
		if got := k.MayHold(); got > 1<<20 {
			t.Errorf("%d bytes", got)
		}
	})
}
