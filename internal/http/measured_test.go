package http

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
)

const measuredPods, measuredNodes = "/apis/metrics.k8s.io/v1beta1/pods", "/apis/metrics.k8s.io/v1beta1/nodes"

func measuredKind(resource, kind string) cluster.Kind {
	return cluster.Kind{Group: "metrics.k8s.io", Version: "v1beta1", Resource: resource, Kind: kind, Namespaced: resource == "pods", Measured: true}
}

// measuring has the API server pass on what measures: nodes and pods, in any order.
var measuring = before(func(api *apitest.API) {
	for resource, kind := range map[string]string{"pods": "PodMetrics", "nodes": "NodeMetrics"} {
		api.Serve(measuredKind(resource, kind), true)
	}
	for i, key := range []string{"b/db", "a/web", "a-b/web", "a/api"} {
		api.Put("pods.metrics.k8s.io", key, "window=20.04s", "metadata.labels.app="+key[len(key)-2:], fmt.Sprintf(`containers:=[
			{"name":"main","usage":{"cpu":"%dm","memory":"100Ki"}}, {"name":"side","usage":{"cpu":"500n","memory":"28Ki"}}]`, i+1))
	}
	api.Put("nodes.metrics.k8s.io", "n1", "window=10s", `usage:={"cpu":"2","memory":"1Gi"}`)
})

// keysOf are the namespaces and names of a list, in its order.
func keysOf(a answer) (keys string) {
	for _, o := range gjson.Get(a.body, "items").Array() {
		keys += o.Get("metadata.namespace").Str + "/" + o.Get("metadata.name").Str + " "
	}
	return strings.TrimSpace(keys)
}

func TestMeasurementsAreNarrowed(t *testing.T) {
	log, option := audited(t)
	g := newGateway(t, measuring, option)
	g.access.permit("team", auth.Scope{Namespaces: []string{"a"}, Names: map[string][]string{"b": {"db"}}})
	g.access.permit("eve", auth.Scope{Namespaces: []string{"elsewhere"}})
	for _, is := range []struct{ user, path, want string }{
		{"alice", measuredPods, "a-b/web a/api a/web b/db"},
		{"alice", "/apis/metrics.k8s.io/v1beta1/namespaces/a/pods", "a/api a/web"},
		{"alice", "/apis/metrics.k8s.io/v1beta1/namespaces/none/pods", ""},
		{"alice", measuredNodes, "/n1"},
		{"team", measuredPods, "a/api a/web b/db"},
		{"team", "/apis/metrics.k8s.io/v1beta1/namespaces/b/pods", "b/db"},
		{"eve", measuredPods, ""},
	} {
		if a := g.get(is.path, "Authorization: Bearer "+is.user); a.code != 200 || keysOf(a) != is.want {
			t.Errorf("%s, %s: %d %q, not %q", is.user, is.path, a.code, keysOf(a), is.want)
		}
	}
	for user, paths := range map[string][]string{
		"team": {measuredNodes, measuredNodes + "/n1", "/apis/metrics.k8s.io/v1beta1/namespaces/a-b/pods", "/apis/metrics.k8s.io/v1beta1/namespaces/a-b/pods/web"},
		"eve":  {"/apis/metrics.k8s.io/v1beta1/namespaces/a/pods", "/apis/metrics.k8s.io/v1beta1/namespaces/a/pods/web", "/apis/metrics.k8s.io/v1beta1/namespaces/a/pods/none"},
	} {
		for _, path := range paths {
			if a := g.get(path, "Authorization: Bearer "+user); a.code != 403 || strings.Contains(a.body, "100Ki") {
				t.Errorf("%s, %s: %d %s", user, path, a.code, a.body)
			}
		}
	}
	a := g.get("/apis/metrics.k8s.io/v1beta1/namespaces/b/pods/db", "Authorization: Bearer team")
	if a.code != 200 || gjson.Get(a.body, "kind").Str != "PodMetrics" || gjson.Get(a.body, "containers.0.usage.cpu").Str != "1m" {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a := g.get("/apis/metrics.k8s.io/v1beta1/namespaces/a/pods/none"); a.code != 404 || a.status(t).Message != `pods.metrics.k8s.io "none" not found` {
		t.Errorf("%d %s", a.code, a.body)
	}
	if n := g.api.Served("pods.metrics.k8s.io"); n != 1 {
		t.Errorf("the API server was asked %d times", n)
	}
	log.end()
	var reads []string
	for _, line := range log.lines() {
		if strings.Contains(line, "pods.metrics.k8s.io") {
			reads = append(reads, line)
		}
	}
	for _, want := range []string{`list pods.metrics.k8s.io / "team" 200 allow part`, `list pods.metrics.k8s.io a/ "eve" 403 forbid`, `get pods.metrics.k8s.io b/db "team" 200 allow`} {
		if !strings.Contains(strings.Join(reads, "\n"), want) {
			t.Errorf("the audit log does not have %s: %s", want, strings.Join(reads, "\n"))
		}
	}
}

// Clients that know what metrics-server can do see no difference.
func TestMeasurementsHaveTheFormsOfObjects(t *testing.T) {
	g := newGateway(t, measuring)
	a := g.get(measuredPods + "?limit=1&resourceVersion=0&resourceVersionMatch=NotOlderThan&labelSelector=app%3Deb&fieldSelector=metadata.namespace%3Da")
	const want = `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[{"apiVersion":"metrics.k8s.io/v1beta1",`
	if a.code != 200 || keysOf(a) != "a/web" || !strings.HasPrefix(a.body, want) || a.header.Get("Etag") != "" {
		t.Errorf("%d %v %s", a.code, a.header, a.body)
	}
	const asTable = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	for path, cells := range map[string]string{
		measuredPods: `["web","3000500n","128Ki","20.04s"]`, "/apis/metrics.k8s.io/v1beta1/namespaces/b/pods/db": `["db","1000500n","128Ki","20.04s"]`, measuredNodes: `["n1","2","1Gi","10s"]`,
	} {
		if a := g.get(path, asTable); a.code != 200 || !gjson.Valid(a.body) || gjson.Get(a.body, "rows.0.cells").Raw != cells ||
			gjson.Get(a.body, "columnDefinitions.#.name").Raw != `["Name","cpu","memory","Window"]` || gjson.Get(a.body, "rows.0.object.metadata.name").Str == "" {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if a := g.get(measuredPods+"?search=db&fields=window", "Accept: application/json"); keysOf(a) != "b/db" || strings.Contains(a.body, "usage") || !strings.Contains(a.body, "20.04s") {
		t.Errorf("%d %s", a.code, a.body)
	}
	for _, query := range []string{"?sort=window", "?countBy=window", "?labelSelector=a%3D%3D%3D", "?fields=a..b"} {
		if a := g.get(measuredPods + query); a.code != 400 {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
	if a := g.get(measuredPods, "Accept: application/xml"); a.code != 406 {
		t.Errorf("%d", a.code)
	}
}

func TestMeasurementsCannotBeWatched(t *testing.T) {
	g := newGateway(t, measuring)
	const told = `watch is not supported on resources of kind "pods.metrics.k8s.io"`
	for _, path := range []string{measuredPods + "?watch=true", measuredPods + "?watch=1&resourceVersion=5"} {
		if a := g.get(path); a.code != 405 || a.status(t).Message != told || !strings.Contains(a.header.Get("Allow"), "GET") {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	for _, path := range []string{measuredPods, measuredPods + "?watch=true", "/stream?a=/api/v1/pods&b=" + measuredPods} {
		if a := g.get(path, "Accept: text/event-stream"); a.code < 400 || a.code >= 429 {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if n := g.api.Served("pods.metrics.k8s.io"); n != 0 {
		t.Errorf("the API server was asked %d times", n)
	}
	if a := g.get("/apis/metrics.k8s.io/v1beta1"); strings.Count(a.body, `"verbs":["get","list"]`) != 2 {
		t.Errorf("discovery: %s", a.body)
	}
	for verb, want := range map[string]bool{"get": true, "list": true, "watch": false, "delete": false} {
		a := g.post(accessReviews, fmt.Sprintf(`{"spec":{"resourceAttributes":{"group":"metrics.k8s.io","resource":"pods","verb":%q,"namespace":"a"}}}`, verb))
		if a.code != 201 || gjson.Get(a.body, "status.allowed").Bool() != want {
			t.Errorf("may %s: %d %s", verb, a.code, a.body)
		}
	}
	a := g.post(rulesReviews, `{"spec":{"namespace":"a"}}`)
	rule := gjson.Get(a.body, `status.resourceRules.#(apiGroups.0=="metrics.k8s.io")`)
	if rule.Get("verbs").Raw != `["get","list"]` || len(rule.Get("resources").Array()) != 2 {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// However many ask, and however often, what measures is asked once within five seconds, and nobody
// is told what is older.
func TestMeasurementsAreAskedForOnceForAll(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for round := range 4 {
			cpu := fmt.Sprintf("%dm", 10+round)
			g.api.Put("nodes.metrics.k8s.io", "n1", fmt.Sprintf(`usage:={"cpu":%q}`, cpu))
			began := time.Now()
			var asking sync.WaitGroup
			for i := range 50 {
				asking.Go(func() {
					pass(time.Duration(i) * 99 * time.Millisecond)
					a := g.get(measuredNodes+[]string{"", "/n1"}[i%2], fmt.Sprintf("Authorization: Bearer user-%d", i))
					if a.code != 200 || !strings.Contains(a.body, cpu) {
						t.Errorf("round %d: %d %s", round, a.code, a.body)
					}
				})
			}
			asking.Wait()
			if n := g.api.Served("nodes.metrics.k8s.io"); n != round+1 {
				t.Errorf("in %d rounds, the API server was asked %d times", round+1, n)
			}
			pass(5*time.Second - time.Since(began))
		}
	}, measuring)
}

// What measures is an API server of its own, which is away while the cluster is not.
func TestMeasurementsThatAreAwayDelayNobodyElse(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "a/web")
		if a := g.get(measuredPods); a.code != 200 {
			t.Fatalf("%d %s", a.code, a.body)
		}
		for _, code := range []int{500, 503, 429, 403, 401} {
			g.api.Fail("pods.metrics.k8s.io", code)
			pass(6 * time.Second)
			before := g.api.Served("pods.metrics.k8s.io")
			for range 20 {
				a := g.get(measuredPods)
				want, again := "the server is currently unable to handle the request (get pods.metrics.k8s.io)", ""
				if code < 429 {
					want, again = "grant it the verb list", "30"
				}
				if a.code != 503 || !strings.Contains(a.status(t).Message, want) || a.header.Get("Retry-After") != again {
					t.Errorf("%d: %d %s", code, a.code, a.body)
				}
			}
			if n := g.api.Served("pods.metrics.k8s.io") - before; n != 1 {
				t.Errorf("%d: it was asked %d times", code, n)
			}
			g.api.Fail("pods.metrics.k8s.io", 0)
			pass(time.Second)
			if a := g.get(measuredPods); a.code != 200 {
				t.Errorf("a second after %d: %d %s", code, a.code, a.body)
			}
		}
		g.api.Hang("pods.metrics.k8s.io")
		pass(6 * time.Second)
		began := time.Now()
		var waiting sync.WaitGroup
		for i := range 10 {
			waiting.Go(func() {
				if a := g.get(measuredPods, fmt.Sprintf("Authorization: Bearer user-%d", i)); a.code != 503 || time.Since(began) > 11*time.Second {
					t.Errorf("after %v: %d %s", time.Since(began), a.code, a.body)
				}
			})
		}
		pass(time.Second)
		for _, path := range []string{"/api/v1/pods", measuredNodes, "/apis"} {
			began := time.Now()
			if a := g.get(path); a.code != 200 || time.Since(began) > 0 {
				t.Errorf("%s: after %v: %d %s", path, time.Since(began), a.code, a.body)
			}
		}
		waiting.Wait()
		g.api.Fail("pods.metrics.k8s.io", 0)
		g.api.Serve(measuredKind("pods", "PodMetrics"), false)
		pass(time.Second)
		g.get(measuredPods)
		pass(time.Second)
		if a := g.get(measuredPods); a.code != http.StatusNotFound {
			t.Errorf("what is not measured any more: %d %s", a.code, a.body)
		}
	}, measuring)
}

func TestMeasurementsOfDeniedKindsAreNotThere(t *testing.T) {
	g := newGateway(t, measuring, serving(0, "pods.metrics.k8s.io"))
	if a := g.get(measuredPods); a.code != 404 {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a := g.get("/apis/metrics.k8s.io/v1beta1"); strings.Contains(a.body, `"pods"`) || !strings.Contains(a.body, `"nodes"`) {
		t.Errorf("%s", a.body)
	}
	if a := g.get(measuredNodes); a.code != 200 {
		t.Errorf("%d %s", a.code, a.body)
	}
}
