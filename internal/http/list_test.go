package http

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
	"github.com/kubecast/kubecast/internal/http/rest"
)

// fivePods are in two namespaces, and differ in what they can be sorted by.
func fivePods(api *apitest.API) {
	api.Put("pods", "team-a/web-1", "metadata.labels.app=web", "status.phase=Running", "spec.priority:=10")
	api.Put("pods", "team-a/web-2", "metadata.labels.app=web", "status.phase=Pending", "spec.priority:=9")
	api.Put("pods", "team-a/db", "metadata.labels.app=db", "status.phase=Running")
	api.Put("pods", "team-b/Web-3", "metadata.labels.app=web", "status.phase=Running", "spec.priority:=100")
	api.Put("pods", "team-b/job", "metadata.labels.app=job", "status.phase=Failed", "spec.priority:=10")
}

func TestListsAreSortedSearchedAndCounted(t *testing.T) {
	g := newGateway(t, before(fivePods))
	for query, want := range map[string]string{
		"sort=spec.priority":                  "web-2 web-1 job Web-3 db",
		"sort=-spec.priority":                 "Web-3 web-1 job web-2 db",
		"sort=-spec.priority,-metadata.name":  "Web-3 web-1 job web-2 db",
		"sort=spec.priority,metadata.name":    "web-2 job web-1 Web-3 db",
		"sort=status.phase,-spec.priority":    "job web-2 Web-3 web-1 db",
		"sort=nothing":                        "db web-1 web-2 Web-3 job",
		"search=web":                          "web-1 web-2 Web-3",
		"search=WEB-":                         "web-1 web-2 Web-3",
		"search=b":                            "db web-1 web-2 Web-3 job",
		"search=none":                         "",
		"search=web&labelSelector=app!%3Dweb": "",
		"search=b&fieldSelector=status.phase%3DRunning&sort=-spec.priority&limit=2": "Web-3 web-1",
		"sort=spec.priority&offset=0&limit=2":                                       "web-2 web-1",
		"sort=spec.priority&offset=2&limit=2":                                       "job Web-3",
		"sort=spec.priority&offset=4&limit=2":                                       "db",
		"sort=spec.priority&offset=3":                                               "Web-3 db",
		"sort=spec.priority&offset=5&limit=2":                                       "",
		"sort=spec.priority&offset=9223372036854775807&limit=9223372036854775807":   "",
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
	for path, want := range map[string]string{
		"/api/v1/pods?countBy=status.phase":                          `[{"value":"Running","count":3},{"value":"Failed","count":1},{"value":"Pending","count":1}]`,
		"/api/v1/pods?countBy=status.phase&limit=1":                  `[{"value":"Running","count":3}]`,
		"/api/v1/pods?countBy=spec.priority&search=web":              `[{"value":"10","count":1},{"value":"100","count":1},{"value":"9","count":1}]`,
		"/api/v1/namespaces/team-a/pods?countBy=metadata.labels.app": `[{"value":"web","count":2},{"value":"db","count":1}]`,
		"/api/v1/pods?countBy=spec.priority&labelSelector=app%3Ddb":  `[{"value":"","count":1}]`,
		"/api/v1/namespaces/none/pods?countBy=spec.priority":         `[]`,
	} {
		if a := g.get(path); a.code != 200 || a.body != fmt.Sprintf(`{"counts":%s,"resourceVersion":"%d"}`, want, version) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
}

// TestSortedPagesAreOfOneVersion, as plain ones are; and a page whose snapshot is gone goes on at the same place.
func TestSortedPagesAreOfOneVersion(t *testing.T) {
	g := newGateway(t, cached(streamOptions(), "pods"))
	random := rand.New(rand.NewPCG(5, 6))
	put := func(i int) {
		g.api.Put("pods", fmt.Sprintf("team-%d/pod-%02d", i%3, i), fmt.Sprintf("spec.priority:=%d", random.IntN(7)), fmt.Sprintf("metadata.labels.odd=%d", i%2))
	}
	for i := range 60 {
		put(i)
	}
	g.eventually("all are cached", func() bool { return len(g.list("/api/v1/pods").Items) == 60 })
	for _, query := range []string{"sort=-spec.priority", "sort=spec.priority,-metadata.name&labelSelector=odd%3D1", "sort=metadata.labels.odd&search=1"} {
		all := g.list("/api/v1/pods?" + query)
		var walked []string
		next := ""
		for pages := 0; pages == 0 || next != ""; pages++ {
			l := g.list("/api/v1/pods?limit=7&" + query + "&continue=" + next)
			if l.Metadata.ResourceVersion != all.Metadata.ResourceVersion {
				t.Fatalf("%s: page %d is of version %s, not %s", query, pages, l.Metadata.ResourceVersion, all.Metadata.ResourceVersion)
			}
			walked = append(walked, l.names()...)
			if left := l.Metadata.RemainingItemCount; left != nil && len(walked)+int(*left) != len(all.Items) || left == nil && len(walked) != len(all.Items) {
				t.Errorf("%s: %d were read of %d, and %v are said to remain", query, len(walked), len(all.Items), left)
			}
			next = l.Metadata.Continue
			for range 5 {
				put(random.IntN(70))
			}
			g.eventually("it is cached", func() bool { return g.list("/api/v1/pods").Metadata.ResourceVersion == fmt.Sprint(g.api.Version()) })
		}
		if !slices.Equal(walked, all.names()) {
			t.Errorf("%s: the pages give\n%v\nnot\n%v", query, walked, all.names())
		}
	}
	first := g.list("/api/v1/pods?limit=10&sort=spec.priority")
	put(1)
	g.eventually("it is cached", func() bool { return g.list("/api/v1/pods").Metadata.ResourceVersion == fmt.Sprint(g.api.Version()) })
	g.forgetPages()
	gone := g.get("/api/v1/pods?limit=10&sort=spec.priority&continue=" + first.Metadata.Continue)
	if gone.code != 410 {
		t.Fatalf("%d %s", gone.code, gone.body)
	}
	now := g.list("/api/v1/pods?sort=spec.priority").names()
	at := slices.Index(now, first.names()[9])
	if rest := g.list("/api/v1/pods?sort=spec.priority&continue=" + gone.status(t).Continue); at >= 0 && !slices.Equal(rest.names(), now[at+1:]) {
		t.Errorf("after %s come\n%v, not\n%v", first.names()[9], rest.names(), now[at+1:])
	}
}

// forgetPages makes the gateway forget all snapshots, as one does that has been restarted or that never had them.
func (g *gateway) forgetPages() {
	g.server.rest = rest.New(rest.Options{
		Access: g.server.access, Processors: g.server.processors, Memory: g.server.memory, Turns: ratelimit.NewTurns(0, g.server.rates),
		WriteTimeout: time.Minute, SyncTimeout: time.Minute, Log: g.server.log,
	})
}

// TestPagesOfAQuietNamespaceAreServedByAnyReplica: nothing changed there, so every newer snapshot has the same.
func TestPagesOfAQuietNamespaceAreServedByAnyReplica(t *testing.T) {
	g := newGateway(t, cached(streamOptions(), "pods"))
	for i := range 10 {
		g.api.Put("pods", fmt.Sprintf("quiet/pod-%d", i))
	}
	g.eventually("all are cached", func() bool { return len(g.list("/api/v1/pods").Items) == 10 })
	first := g.list("/api/v1/namespaces/quiet/pods?limit=4")
	everywhere := g.list("/api/v1/pods?limit=4")
	g.api.Put("pods", "busy/pod")
	g.eventually("it is cached", func() bool { return len(g.list("/api/v1/pods").Items) == 11 })
	g.forgetPages()
	second := g.list("/api/v1/namespaces/quiet/pods?limit=4&continue=" + first.Metadata.Continue)
	if second.Metadata.ResourceVersion != first.Metadata.ResourceVersion || second.names()[0] != "quiet/pod-4" || *second.Metadata.RemainingItemCount != 2 {
		t.Errorf("%+v", second)
	}
	exactly := "&resourceVersionMatch=Exact&resourceVersion=" + first.Metadata.ResourceVersion
	if l := g.list("/api/v1/namespaces/quiet/pods?limit=500" + exactly); len(l.Items) != 10 || l.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
		t.Errorf("%+v", l)
	}
	// That it was kept for the quiet namespace does not make it the version's snapshot elsewhere.
	for _, path := range []string{"/api/v1/pods?continue=" + everywhere.Metadata.Continue, "/api/v1/pods?limit=500" + exactly, "/api/v1/namespaces/busy/pods?limit=500" + exactly} {
		if a := g.get(path); a.code != 410 {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	third := g.list("/api/v1/namespaces/quiet/pods?limit=4&continue=" + second.Metadata.Continue)
	if len(third.Items) != 2 || third.Metadata.Continue != "" || third.Metadata.RemainingItemCount != nil {
		t.Errorf("%+v", third)
	}
}

func TestWhatIsUnchangedIsNotSentAgain(t *testing.T) {
	g := newGateway(t, before(fivePods), cached(streamOptions(), "pods"))
	g.list("/api/v1/pods")
	for _, path := range []string{"/api/v1/namespaces/team-a/pods", "/api/v1/namespaces/team-a/pods?sort=metadata.name&limit=1", "/api/v1/namespaces/team-a/pods/db",
		"/api/v1/namespaces/team-a/pods?countBy=status.phase", "/clusters/default/api/v1/namespaces/team-a/pods/db?fields=status"} {
		tag := g.get(path).header.Get("ETag")
		if tag == "" {
			t.Errorf("%s has no ETag", path)
			continue
		}
		g.api.Put("pods", "team-b/job", "spec.priority:=5") // not there
		g.eventually("it is cached", func() bool { return g.list("/api/v1/pods").Metadata.ResourceVersion == fmt.Sprint(g.api.Version()) })
		a := g.get(path, "If-None-Match: "+tag)
		if a.code != 304 || a.body != "" || a.header.Get("ETag") != tag || a.header.Get("Content-Type") != "" || a.header.Get("Cache-Control") != "no-cache, private" {
			t.Errorf("%s: %d %v %s", path, a.code, a.header, a.body)
		}
		if a := g.get(path, "If-None-Match: "+tag, "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"); a.code == 304 {
			t.Errorf("%s: another form is taken for the same", path)
		}
		g.api.Put("pods", "team-a/db", "status.phase=Failed")
		g.eventually("it is cached", func() bool { return g.list("/api/v1/pods").Metadata.ResourceVersion == fmt.Sprint(g.api.Version()) })
		if a := g.get(path, "If-None-Match: "+tag); a.code != 200 || a.header.Get("ETag") == tag {
			t.Errorf("%s: %d %v, though it has changed", path, a.code, a.header)
		}
	}
	// A history that began anew gives the same versions to something else.
	tag := g.get("/api/v1/pods").header.Get("ETag")
	g.kinds.Cluster().Restarted()
	if a := g.get("/api/v1/pods", "If-None-Match: "+tag); a.code != 200 {
		t.Errorf("%d", a.code)
	}
	if a := g.get("/api/v1/namespaces/team-a/pods/none", "If-None-Match: *"); a.code != 404 {
		t.Errorf("%d", a.code)
	}
}

func TestObjectsHaveForms(t *testing.T) {
	g := newGateway(t, before(fivePods))
	const as = "Accept: application/json;g=meta.k8s.io;v=v1;as="
	one := g.get("/api/v1/namespaces/team-a/pods/db", as+"PartialObjectMetadata").body
	if !strings.HasPrefix(one, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{`) || strings.Contains(one, "status") {
		t.Error(one)
	}
	var all struct {
		Kind, APIVersion string
		Items            []struct {
			Kind     string
			Metadata map[string]any
			Status   map[string]any
		}
	}
	text := g.get("/api/v1/pods?fields=metadata.labels.app", as+"PartialObjectMetadataList").body
	if err := json.Unmarshal([]byte(text), &all); err != nil || all.Kind != "PartialObjectMetadataList" || all.APIVersion != "meta.k8s.io/v1" ||
		len(all.Items) != 5 || all.Items[0].Kind != "PartialObjectMetadata" || all.Items[0].Status != nil || all.Items[0].Metadata["creationTimestamp"] != nil {
		t.Errorf("%v: %s", err, text)
	}
	type cells struct {
		Kind, APIVersion  string
		Metadata          struct{ ResourceVersion, Continue string }
		ColumnDefinitions []struct{ Name string }
		Rows              []struct {
			Cells  []any
			Object *struct{ Kind, APIVersion string }
		}
	}
	for _, c := range []struct {
		path, accept, apiVersion, object string
		rows                             int
	}{
		{"/api/v1/pods", "Table", "meta.k8s.io/v1", "PartialObjectMetadata meta.k8s.io/v1", 5},
		{"/api/v1/pods?includeObject=Object&limit=2", "Table", "meta.k8s.io/v1", "Pod v1", 2},
		{"/api/v1/pods?includeObject=None&sort=metadata.name", "Table", "meta.k8s.io/v1", "", 5},
		{"/api/v1/namespaces/team-a/pods/db", "Table", "meta.k8s.io/v1", "PartialObjectMetadata meta.k8s.io/v1", 1},
		{"/api/v1/namespaces/team-a/pods/db?includeObject=None", "Table", "meta.k8s.io/v1", "", 1},
	} {
		a := g.get(c.path, as+c.accept)
		var got cells
		err := json.Unmarshal([]byte(a.body), &got)
		if err != nil || got.Kind != "Table" || got.APIVersion != c.apiVersion || len(got.Rows) != c.rows || got.ColumnDefinitions[0].Name != "Name" ||
			got.Metadata.ResourceVersion == "" || a.header.Get("ETag") != "" {
			t.Fatalf("%s: %v %v %s", c.path, err, a.header, a.body)
		}
		object := ""
		if o := got.Rows[0].Object; o != nil {
			object = o.Kind + " " + o.APIVersion
		}
		if object != c.object || strings.Contains(c.path, "limit") != (got.Metadata.Continue != "") {
			t.Errorf("%s: %s", c.path, a.body)
		}
	}
	if a := g.get("/api/v1/pods", "Accept: application/json;g=meta.k8s.io;v=v1beta1;as=Table"); !strings.Contains(a.body, `"apiVersion":"meta.k8s.io/v1beta1"`) || strings.Contains(a.body, "meta.k8s.io/v1\"") {
		t.Error(a.body)
	}
	for query, accept := range map[string]string{"fields=status": as + "Table", "countBy=status.phase": as + "Table"} {
		if a := g.get("/api/v1/pods?"+query, accept); a.code != 400 && a.code != 406 {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
	fields := g.get("/api/v1/namespaces/team-a/pods/db?fields=status.phase").body
	if !strings.Contains(fields, `"status":{"phase":"Running"}`) || strings.Contains(fields, "labels") || !strings.Contains(fields, `"kind":"Pod"`) {
		t.Error(fields)
	}
}

// TestVersionOfTheFutureIsAwaited for a moment, as at the API server.
func TestVersionOfTheFutureIsAwaited(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.list("/api/v1/pods")
		g.watches("pods", 1)
		next := g.api.Version() + 1
		go func() {
			pass(2 * time.Second)
			g.api.Put("pods", "team-a/a")
		}()
		began := time.Now()
		if l := g.list(fmt.Sprintf("/api/v1/pods?resourceVersion=%d", next)); len(l.Items) != 1 || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %s", l.names(), time.Since(began))
		}
		began = time.Now()
		object := "/api/v1/namespaces/team-a/pods/a?resourceVersion="
		if a := g.get(object + fmt.Sprint(next)); a.code != 200 || time.Since(began) != 0 {
			t.Errorf("%d %s", a.code, a.body)
		}
		if a := g.get(object + "x"); a.code != 400 {
			t.Errorf("%d %s", a.code, a.body)
		}
		go func() {
			pass(time.Second)
			g.api.Put("pods", "team-a/b")
		}()
		next++
		if a := g.get(strings.Replace(object, "/a?", "/b?", 1) + fmt.Sprint(next)); a.code != 200 || time.Since(began) != time.Second {
			t.Errorf("%d %s", a.code, a.body)
		}
		began = time.Now()
		if a := g.get(fmt.Sprintf("/api/v1/pods?resourceVersion=%d", next+1)); a.code != 504 || time.Since(began) != 3*time.Second {
			t.Errorf("%d after %s", a.code, time.Since(began))
		}
	})
}
