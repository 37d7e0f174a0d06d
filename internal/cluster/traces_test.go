package cluster_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/tracing/tracetest"
)

// The span of a watch ends when the watch is accepted, however long that lasts.
func TestListsAndTheBeginningsOfWatchesHaveSpans(t *testing.T) {
	api, url := apitest.Start(t)
	api.Put("pods", "hush/hush")
	collector := tracetest.New(t)
	tracer := collector.Tracer(t)
	c, err := cluster.Connect(cluster.Options{Name: "one", Kubeconfig: apitest.Kubeconfig(t, url), Tracer: tracer})
	if err != nil {
		t.Fatal(err)
	}
	lw := c.ListWatch(apitest.Pods, &recorder{})
	list, err := lw.List(metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := lw.Watch(metav1.ListOptions{ResourceVersion: list.(*cluster.ObjectList).ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	tracer.Close()
	w.Stop()
	for range w.ResultChan() { // until it has ended
	}
	for _, name := range []string{"upstream list", "upstream watch"} {
		if spans := collector.Named(name); len(spans) != 1 || spans[0].Attributes["kubecast.kind"] == "" || spans[0].Attributes["kubecast.cluster"] != "one" {
			t.Errorf("%s: %v of %v", name, spans, collector.Names())
		}
	}
}
