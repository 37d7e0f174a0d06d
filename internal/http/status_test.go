package http

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/apitest"
)

const crashing = `status.containerStatuses:=[{"name":"c","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]`

// crashingPods are one that runs, one that crashes again and again, whose phase is Running, too, and one that has no status.
func crashingPods(api *apitest.API) {
	api.Put("pods", "a/runs", "status.phase=Running")
	api.Put("pods", "a/crashes", "status.phase=Running", crashing)
	api.Put("pods", "b/new")
}

// A filter for running pods must not show those that crash again and again.
func TestListsKnowWhatObjectsAreDoing(t *testing.T) {
	g := newGateway(t, before(crashingPods))
	for query, want := range map[string]string{
		"fieldSelector=$status%3DRunning":                                                "runs",
		"fieldSelector=$status!%3DRunning":                                               "crashes new",
		"fieldSelector=$status%3DCrashLoopBackOff":                                       "crashes",
		"fieldSelector=status.phase%3DRunning,$status!%3DRunning,metadata.namespace%3Da": "crashes",
		"fieldSelector=$status%3D":                                                       "new",
		"sort=$status":                                                                   "crashes runs new",
		"sort=-$status":                                                                  "runs crashes new",
		"sort=$status&limit=1&offset=1":                                                  "runs",
		"fieldSelector=status.$status%3DRunning":                                         "",
		"fieldSelector=$status%3DCrashLoopBackOff&search=runs":                           "",
		"fieldSelector=$status%3DRunning&sort=metadata.name&fields=metadata.labels,$status": "runs",
	} {
		var names []string
		for _, item := range g.list("/api/v1/pods?" + query).Items {
			names = append(names, item.Metadata.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
	version := g.api.Version()
	for query, want := range map[string]string{
		"countBy=$status":                    `[{"value":"","count":1},{"value":"CrashLoopBackOff","count":1},{"value":"Running","count":1}]`,
		"countBy=metadata.namespace,$status": `[{"values":["a","CrashLoopBackOff"],"count":1},{"values":["a","Running"],"count":1},{"values":["b",""],"count":1}]`,
	} {
		if a := g.get("/api/v1/pods?" + query); a.code != 200 || a.body != fmt.Sprintf(`{"counts":%s,"resourceVersion":"%d"}`, want, version) {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
}

// In each form that has fields, the member is the last one, and there although an object has no status.
func TestStatusIsAFieldOfAllForms(t *testing.T) {
	g := newGateway(t, before(crashingPods))
	const metadata = "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	for name, want := range map[string]string{"crashes": "CrashLoopBackOff", "new": ""} {
		namespace := "a"
		if name == "new" {
			namespace = "b"
		}
		path := "/api/v1/namespaces/" + namespace + "/pods/" + name + "?fields=$status"
		for _, header := range []string{"Accept: application/json", metadata} {
			a := g.get(path, header)
			var object map[string]any
			if err := json.Unmarshal([]byte(a.body), &object); err != nil || object["$status"] != want || object["status"] != nil || object["metadata"] == nil {
				t.Errorf("%s as %s: %d %s", path, header, a.code, a.body)
			}
			if !strings.HasSuffix(strings.TrimSpace(a.body), `,"$status":"`+want+`"}`) {
				t.Errorf("%s as %s: %s", path, header, a.body)
			}
		}
	}
	if a := g.get("/api/v1/namespaces/a/pods/crashes"); strings.Contains(a.body, "$status") {
		t.Errorf("nobody asked for it: %s", a.body)
	}
}

// A stream tells what an object is doing with each of its events, in patches only if it differs.
func TestStreamsTellWhatObjectsAreDoing(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		crashingPods(g.api)
		whole := g.stream("/api/v1/namespaces/a/pods?fields=$status")
		patched := g.stream("/api/v1/namespaces/a/pods?fields=$status,spec.n&deltas=merge-patch")
		running := g.stream("/api/v1/namespaces/a/pods?fieldSelector=$status%3DRunning&fields=metadata.name")
		counts := g.stream("/api/v1/namespaces/a/pods?countBy=$status")
		page := g.stream("/api/v1/namespaces/a/pods?sort=$status&limit=1&fields=$status")
		tells := func(s *events, event string, parts ...string) {
			t.Helper()
			f := s.next()
			if f.event != event || slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(f.data, part) }) {
				t.Fatalf("not %s with %s: %s", event, parts, f.raw)
			}
		}
		for _, s := range []*events{whole, patched} {
			tells(s, "added", `"name":"crashes"`, `"$status":"CrashLoopBackOff"}`)
			tells(s, "added", `"name":"runs"`, `"$status":"Running"}`)
			s.expect("synced")
		}
		tells(running, "added", `"name":"runs"`)
		running.expect("synced")
		tells(counts, "counts", `[{"value":"CrashLoopBackOff","count":1},{"value":"Running","count":1}]`)
		tells(page, "added", `"name":"crashes"`, `"$status":"CrashLoopBackOff"}`)
		page.expect("page")

		g.api.Put("pods", "a/runs", "status.phase=Running", "spec.n:=1")
		tells(whole, "modified", `"$status":"Running"}`)
		if f := patched.next(); f.event != "patched" || !strings.Contains(f.data, `"patch":{"metadata":{"resourceVersion":`) || !strings.HasSuffix(f.data, `"spec":{"n":1}}}`) {
			t.Fatalf("the same status is told again, or a member not: %s", f.raw)
		}
		tells(running, "modified", `"name":"runs"`)
		g.api.Put("pods", "a/runs", "status.phase=Running", "spec.n:=1", strings.Replace(crashing, "CrashLoopBackOff", "Broken", 1))
		tells(whole, "modified", `"$status":"Broken"}`)
		tells(patched, "patched", `"$status":"Broken"}}`)
		tells(running, "deleted", `"name":"runs"`)
		tells(counts, "counts", `[{"value":"Broken","count":1},{"value":"CrashLoopBackOff","count":1}]`)
		tells(page, "deleted", `"name":"crashes"`, `"moved"`)
		tells(page, "added", `"name":"runs"`, `"$status":"Broken"}`)
		page.expect("page")
	})
}
