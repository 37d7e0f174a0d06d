package http

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/apitest"
)

// requestingPods hold GPUs by whatever container requests them.
func requestingPods(api *apitest.API) {
	gpus := func(n int) string { return fmt.Sprintf(`{"resources":{"requests":{"nvidia.com/gpu":"%d"}}}`, n) }
	api.Put("pods", "a/third", `spec.containers:=[{},{},`+gpus(2)+`]`)
	api.Put("pods", "a/init", `spec.containers:=[`+gpus(1)+`]`, `spec.initContainers:=[`+gpus(4)+`]`)
	api.Put("pods", "b/sidecar", `spec.containers:=[`+gpus(8)+`]`, `spec.initContainers:=[{"restartPolicy":"Always",`+gpus(2)[1:]+`]`)
	api.Put("pods", "b/other", `spec.containers:=[{"resources":{"requests":{"amd.com/gpu":"1"}}}]`)
	api.Put("pods", "b/none", `spec.containers:=[{"resources":{"requests":{"nvidia.com/gpu":"0"}}}]`)
}

// What only some containers are asked about would leave GPUs out that others hold.
func TestRequestsAreThoseOfAllContainers(t *testing.T) {
	g := newGateway(t, before(requestingPods))
	const nvidia = `$requests.nvidia\.com/gpu`
	for query, want := range map[string]string{
		"fieldSelector=" + nvidia + "!%3D&sort=" + nvidia:             "third init sidecar",
		"fieldSelector=" + nvidia + "!%3D&sort=-" + nvidia:            "sidecar init third",
		"fieldSelector=" + nvidia + "%3D4":                            "init",
		"fieldSelector=" + nvidia + "!%3D," + nvidia + "!%3D4":        "third sidecar",
		"fieldSelector=" + nvidia + "%3D,$requests.amd\\.com/gpu%3D1": "other",
		"fieldSelector=$requests.cpu!%3D":                             "",
	} {
		var names []string
		for _, item := range g.list("/api/v1/pods?" + query).Items {
			names = append(names, item.Metadata.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
	if a := g.get("/api/v1/pods?countBy=metadata.namespace," + nvidia); a.code != 200 || !strings.HasPrefix(a.body, `{"counts":[{"values":["b",""],"count":2},{"values":["a","2"],"count":1},{"values":["a","4"],"count":1},{"values":["b","10"],"count":1}]`) {
		t.Errorf("%d %s", a.code, a.body)
	}
	for _, query := range []string{"fields=" + nvidia, "countBy=$requests.nvidia.com/gpu", "sort=$requests.", "fieldSelector=$requests.a!%3D,$requests.b!%3D,$requests.c!%3D,$requests.d!%3D,$status!%3D"} {
		if a := g.get("/api/v1/pods?" + query); a.code != 400 {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
	if a := g.get("/api/v1/namespaces?countBy=" + nvidia); a.code != 200 || !strings.Contains(a.body, `"value":""`) {
		t.Errorf("of another kind: %d %s", a.code, a.body)
	}
}

// Counts follow what pods request.
func TestCountsFollowRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		requestingPods(g.api)
		counts := g.stream(`/api/v1/pods?countBy=metadata.namespace,$requests.nvidia\.com/gpu&fieldSelector=$requests.nvidia\.com/gpu!%3D`)
		for n, want := range []string{`[{"values":["a","2"],"count":1},{"values":["a","4"],"count":1},{"values":["b","10"],"count":1}]`, `[{"values":["a","4"],"count":1},{"values":["b","10"],"count":1}]`} {
			if f := counts.next(); f.event != "counts" || !strings.Contains(f.data, want) {
				t.Fatalf("not %s: %s", want, f.raw)
			}
			if n == 0 {
				g.api.Delete("pods", "a/third")
			}
		}
	})
}

// A page of a large table is sorted by what its columns show, of which no path has the number: "10" comes behind "9", and restarts of sidecars count.
func TestPodsAreSortedByWhatKubectlCounts(t *testing.T) {
	g := newGateway(t, before(func(api *apitest.API) {
		api.Put("pods", "a/calm", `spec.containers:=[{"name":"main"}]`, `status.containerStatuses:=[{"name":"main","restartCount":0,"ready":true,"state":{"running":{}}}]`)
		api.Put("pods", "a/loops", `spec.containers:=[{"name":"main"}]`, `status.containerStatuses:=[{"name":"main","restartCount":10,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]`)
		api.Put("pods", "a/pair", `spec.containers:=[{"name":"main"},{"name":"side"}]`, `status.containerStatuses:=[{"name":"main","restartCount":1,"ready":true,"state":{"running":{}}},{"name":"side","restartCount":2,"ready":true,"state":{"running":{}}}]`)
		api.Put("pods", "a/sidecar", `spec.containers:=[{"name":"main"}]`, `spec.initContainers:=[{"name":"proxy","restartPolicy":"Always"}]`,
			`status.initContainerStatuses:=[{"name":"proxy","restartCount":9,"ready":true,"started":true,"state":{"running":{}}}]`,
			`status.containerStatuses:=[{"name":"main","restartCount":0,"state":{"running":{}}}]`)
		api.Put("pods", "a/unscheduled")
	}))
	for query, want := range map[string]string{
		"sort=-$restarts":                    "loops sidecar pair calm unscheduled",
		"sort=$restarts":                     "calm unscheduled pair sidecar loops",
		"sort=-$ready,metadata.name":         "pair calm sidecar loops unscheduled",
		"fieldSelector=$ready%3D0":           "loops unscheduled",
		"fieldSelector=$restarts%3D10":       "loops",
		"fieldSelector=$restarts!%3D0&sort=": "loops pair sidecar",
	} {
		var names []string
		for _, item := range g.list("/api/v1/pods?" + query).Items {
			names = append(names, item.Metadata.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
	if a := g.get("/api/v1/pods?countBy=$ready"); a.code != 200 || !strings.HasPrefix(a.body, `{"counts":[{"value":"0","count":2},{"value":"1","count":2},{"value":"2","count":1}]`) {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a := g.get("/api/v1/namespaces?countBy=$restarts"); a.code != 200 || !strings.Contains(a.body, `"value":""`) {
		t.Errorf("of another kind: %d %s", a.code, a.body)
	}
	if a := g.get("/api/v1/pods?fields=$restarts"); a.code != 400 {
		t.Errorf("as a member: %d %s", a.code, a.body)
	}
}
