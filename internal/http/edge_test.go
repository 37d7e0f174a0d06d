package http

import (
	"fmt"
	"testing"

	clientrest "k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/cluster"
)

// What another gateway relies on to be so now (which namespaces live, whose a log is) is not answered from a cache that is behind.
func TestAnotherGatewayIsToldHowItIsNow(t *testing.T) {
	t.Parallel() // it mostly waits, for real time
	g := newGateway(t, options(func(o *Options) { o.Limits.Gateways = []string{"alice"} }))
	g.api.Put("namespaces", "blue")
	edge, err := cluster.Connect(cluster.Options{Name: "edge", Config: &clientrest.Config{Host: g.url, BearerToken: "alice"}})
	if err != nil {
		t.Fatal(err)
	}
	many := []string{"blue"}
	for i := range 40 { // more than are asked for one by one
		many = append(many, fmt.Sprint("none-", i))
	}
	former := g.api.UID("namespaces", "blue")
	for _, names := range [][]string{many[:1], many} {
		if found, err := edge.Namespaces(t.Context(), names); err != nil || len(found) != 1 || found[0].UID != former {
			t.Fatal(found, err)
		}
	}
	g.api.Hold("namespaces", true)
	g.api.Delete("namespaces", "blue")
	g.api.Put("namespaces", "blue")
	for _, names := range [][]string{many[:1], many} {
		if found, err := edge.Namespaces(t.Context(), names); err == nil && len(found) == 1 && found[0].UID == former {
			t.Errorf("a namespace that is gone is told to live, to whoever asks for %d", len(names))
		}
	}
	g.api.Hold("namespaces", false)
	for _, names := range [][]string{many[:1], many} {
		g.eventually("the new one", func() bool {
			found, err := edge.Namespaces(t.Context(), names)
			return err == nil && len(found) == 1 && found[0].UID == g.api.UID("namespaces", "blue")
		})
	}
}
