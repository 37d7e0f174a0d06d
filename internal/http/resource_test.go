package http

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/rest"
)

type list struct {
	Kind, APIVersion string
	Metadata         metav1.ListMeta
	Items            []struct {
		Kind, APIVersion string
		Metadata         struct{ Namespace, Name, ResourceVersion string }
		Status           struct{ Phase string }
	}
}

func (l list) names() (names []string) {
	for _, item := range l.Items {
		names = append(names, item.Metadata.Namespace+"/"+item.Metadata.Name)
	}
	return names
}

// list reads a list, which must be answered with 200.
func (g *gateway) list(path string) (l list) {
	g.t.Helper()
	a := g.get(path)
	if a.code != 200 || a.header.Get("Content-Type") != "application/json" || a.header.Get("Cache-Control") != "no-cache, private" {
		g.t.Fatalf("GET %s: %d %v %s", path, a.code, a.header, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &l); err != nil {
		g.t.Fatalf("GET %s: %v: %s", path, err, a.body)
	}
	return l
}

func TestListsAreKubernetesLists(t *testing.T) {
	g := newGateway(t)
	if l := g.list("/api/v1/pods"); l.Kind != "PodList" || l.APIVersion != "v1" || l.Items == nil || len(l.Items) != 0 {
		t.Errorf("an empty list: %+v", l)
	}
	g.api.Put("pods", "team/b", "metadata.labels.app=web", "status.phase=Running")
	g.api.Put("pods", "team-a/a", "metadata.labels.app=web", "status.phase=Pending")
	g.api.Put("pods", "team-a/c", "metadata.labels.app=db", "status.phase=Running")
	version := g.api.Put("jobs", "team-a/train")
	g.eventually("they are cached", func() bool { return len(g.list("/api/v1/pods").Items) == 3 })
	for path, want := range map[string][]string{
		"/api/v1/pods":                                                                {"team-a/a", "team-a/c", "team/b"}, // as etcd orders them
		"/clusters/default/api/v1/pods":                                               {"team-a/a", "team-a/c", "team/b"},
		"/api/v1/namespaces/team-a/pods":                                              {"team-a/a", "team-a/c"},
		"/api/v1/namespaces/none/pods":                                                nil,
		"/api/v1/pods?labelSelector=app%3Dweb":                                        {"team-a/a", "team/b"},
		"/api/v1/pods?labelSelector=app!%3Dweb":                                       {"team-a/c"},
		"/api/v1/pods?labelSelector=app+in+(db,x)":                                    {"team-a/c"},
		"/api/v1/pods?fieldSelector=status.phase%3DRunning":                           {"team-a/c", "team/b"},
		"/api/v1/pods?fieldSelector=status.phase%3DRunning&labelSelector=app":         {"team-a/c", "team/b"},
		"/api/v1/pods?fieldSelector=metadata.namespace%3Dteam,metadata.name!%3Db":     nil,
		"/api/v1/pods?labelSelector=app%3Dweb&limit=1":                                {"team-a/a"},
		"/api/v1/pods?resourceVersion=0":                                              {"team-a/a", "team-a/c", "team/b"},
		"/api/v1/pods?resourceVersion=1001":                                           {"team-a/a", "team-a/c", "team/b"},
		"/api/v1/pods?resourceVersion=1001&resourceVersionMatch=NotOlderThan":         {"team-a/a", "team-a/c", "team/b"},
		"/api/v1/pods?unknown=parameter&timeoutSeconds=5&pretty=true&limit=":          {"team-a/a", "team-a/c", "team/b"},
		"/api/v1/pods?watch=false":                                                    {"team-a/a", "team-a/c", "team/b"},
		"/api/v1/namespaces/team-a/pods?resourceVersion=1003&limit=500":               {"team-a/a", "team-a/c"},
		"/api/v1/pods?resourceVersion=1003&resourceVersionMatch=Exact&fieldSelector=": {"team-a/a", "team-a/c", "team/b"},
	} {
		if got := g.list(path).names(); !slices.Equal(got, want) {
			t.Errorf("%s: %v", path, got)
		}
	}
	l := g.list("/apis/batch/v1/jobs")
	if l.Kind != "JobList" || l.APIVersion != "batch/v1" || l.Metadata.ResourceVersion != fmt.Sprint(version) || l.Items[0].Kind != "Job" {
		t.Errorf("%+v", l)
	}
	object := g.get("/api/v1/namespaces/team/pods/b")
	if !strings.Contains(object.body, `"phase":"Running"`) || object.code != 200 || object.header.Get("Cache-Control") != "no-cache, private" {
		t.Errorf("%d %v %s", object.code, object.header, object.body)
	}
	if a := g.get("/api/v1/namespaces/team/pods/x"); a.code != 404 || a.status(t).Message != `pods "x" not found` || a.status(t).Details.Name != "x" {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a := g.get("/api/v1/namespaces/team-a"); a.code != 404 || a.status(t).Message != `namespaces "team-a" not found` {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// TestWarningsAreRepeated: kubectl shows what the API server says to each request for a kind that is deprecated.
func TestWarningsAreRepeated(t *testing.T) {
	g := newGateway(t, before(func(api *apitest.API) { api.Warn("widgets", `v1 Widget is "old"`) }))
	g.api.Put("widgets", "team-a/a")
	const widgets = "/apis/example.org/v1/namespaces/team-a/widgets"
	for path, want := range map[string]string{
		widgets:                                  `299 - "v1 Widget is \"old\""`,
		widgets + "?limit=1":                     `299 - "v1 Widget is \"old\""`,
		widgets + "/absent":                      `299 - "v1 Widget is \"old\""`,
		widgets + "?watch=true&timeoutSeconds=1": `299 - "v1 Widget is \"old\""`,
		"/api/v1/pods":                           "",
	} {
		if a := g.get(path); a.header.Get("Warning") != want {
			t.Errorf("%s: %q", path, a.header.Get("Warning"))
		}
	}
}

// TestAnswersHaveTheAPIServersWords: clients compare them, and tests of others do.
func TestAnswersHaveTheAPIServersWords(t *testing.T) {
	g := newGateway(t)
	for path, want := range map[string]string{
		"/api/v1/pods?labelSelector=%3D":       `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"found '=', expected: !, identifier, or 'end of string'","reason":"BadRequest","code":400}`,
		"/api/v1/pods?fieldSelector=a":         `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"invalid selector: 'a'; can't understand 'a'","reason":"BadRequest","code":400}`,
		"/api/v1/pods?watch=1&fieldSelector=a": `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"invalid selector: 'a'; can't understand 'a'","reason":"BadRequest","code":400}`,
		"/api/v1/nothings":                     `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`,
		"/healthz?verbose":                     "[+]ping ok\n[+]cluster ok\nhealthz check passed",
	} {
		if a := g.get(path); strings.TrimSpace(a.body) != want {
			t.Errorf("%s:\n%s\nnot\n%s", path, a.body, want)
		}
	}
}

func TestBadListsAreRefused(t *testing.T) {
	g := newGateway(t)
	for query, code := range map[string]int{
		"labelSelector=%3D":                            400,
		"fieldSelector=a":                              400,
		"limit=-1":                                     400,
		"limit=many":                                   400,
		"limit=99999999999999999999":                   400,
		"resourceVersion=x":                            400,
		"resourceVersion=-5":                           400,
		"resourceVersion=007":                          400,
		"resourceVersionMatch=Exact":                   422,
		"resourceVersion=5&resourceVersionMatch=Newer": 422,
		"resourceVersion=0&resourceVersionMatch=Exact": 422,
		"continue=x&resourceVersionMatch=Exact":        422,
		"sendInitialEvents=true":                       422,
		"resourceVersion=5&continue=" + rest.Token{Name: "x"}.Encode(): 400,
		"continue=garbage":                  400,
		"continue=e30":                      400, // {}
		"continue=" + rest.Token{}.Encode(): 400,
		"continue=%00":                      400,
		"sort=a..b":                         400,
		"sort=a,b,c,d,e,f,g,h,i":            400,
		"sort=-":                            400,
		"fields=a..b":                       400,
		"countBy=.":                         400,
		"countBy=a&sort=b":                  400,
		"countBy=a&offset=1":                400,
		"offset=1":                          400,
		"sort=a&offset=-1":                  400,
		"sort=a&offset=x":                   400,
		"sort=a&offset=1&continue=" + rest.Token{Name: "x", Order: "a"}.Encode(): 400,
		"countBy=a&continue=" + rest.Token{Name: "x"}.Encode():                   400,
		"includeObject=Some": 400,
		"sort=metadata.name&continue=" + rest.Token{Name: "x"}.Encode():                                            400,
		"sort=a&continue=" + rest.Token{Name: "x", Order: "a"}.Encode():                                            400,
		"sort=a&continue=" + rest.Token{Name: "x", Order: "a", Values: []cache.SortValue{{Class: 7}}}.Encode():     400,
		"sort=a&continue=" + rest.Token{Name: "x", Order: "a", Values: []cache.SortValue{{Class: 1}, {}}}.Encode(): 400,
		"watch=true&resourceVersion=x":                 400,
		"watch=true&timeoutSeconds=x":                  400,
		"watch=true&timeoutSeconds=-1":                 400,
		"watch=true&sort=a":                            400,
		"watch=true&countBy=a":                         400,
		"watch=true&labelSelector=%3D%3D":              400,
		"watch&fieldSelector=a":                        400,
		"watch=perhaps&sendInitialEvents=true":         422, // as the API server reads it
		"watch=true&resourceVersionMatch=NotOlderThan": 422,
		"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=9999999": 504,
		"resourceVersion=999999999":                    504,
		"resourceVersion=18446744073709551615":         504,
		"resourceVersion=18446744073709551616":         400,
		"resourceVersion=5&resourceVersionMatch=Exact": 410,
	} {
		a := g.get("/api/v1/pods?" + query)
		if a.code != code {
			t.Errorf("%s: %d %s", query, a.code, a.body)
			continue
		}
		s := a.status(t)
		if code == 504 && (len(s.Details.Causes) != 1 || s.Details.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge ||
			s.Details.RetryAfterSeconds != 1 || a.header.Get("Retry-After") != "1") {
			t.Errorf("client-go would not know this: %s", a.body)
		}
		if code == 410 && s.Reason != metav1.StatusReasonExpired {
			t.Errorf("client-go would not know this: %s", a.body)
		}
	}
	if a := g.get("/api/v1/pods", "Accept: application/yaml"); a.code != 406 {
		t.Errorf("%d", a.code)
	}
}

// TestBadListsAreRefusedBeforeTheKindIsRead: to wait for a minute to be told of a typing error is no service.
func TestBadListsAreRefusedBeforeTheKindIsRead(t *testing.T) {
	g := newGateway(t, before(func(api *apitest.API) { api.Hang("pods") }))
	for _, query := range []string{"labelSelector=%3D", "limit=x", "resourceVersion=x", "resourceVersionMatch=Exact", "sort=.", "fields=.", "countBy=."} {
		if a := g.get("/api/v1/pods?" + query); a.code != 400 && a.code != 422 {
			t.Errorf("%s: %d", query, a.code)
		}
	}
}

// TestPagesAreOfOneVersion, whatever happens while they are read.
func TestPagesAreOfOneVersion(t *testing.T) {
	g := newGateway(t, cached(streamOptions(), "pods"))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		g.api.Put("pods", fmt.Sprintf("team-%d/pod-%02d", i%3, i), fmt.Sprintf("metadata.labels.odd=%d", i%2), "status.phase=Before")
	}
	g.eventually("all are cached", func() bool { return len(g.list("/api/v1/pods").Items) == 60 })
	for _, query := range []string{"", "labelSelector=odd%3D1", "fieldSelector=metadata.namespace%3Dteam-1"} {
		all := g.list("/api/v1/pods?" + query)
		var walked []string
		pages, next := 0, ""
		for ; pages == 0 || next != ""; pages++ {
			l := g.list("/api/v1/pods?limit=7&" + query + "&continue=" + next)
			if l.Metadata.ResourceVersion != all.Metadata.ResourceVersion {
				t.Fatalf("%s: page %d is of version %s, not %s", query, pages, l.Metadata.ResourceVersion, all.Metadata.ResourceVersion)
			}
			walked = append(walked, l.names()...)
			next = l.Metadata.Continue
			// Objects come and go and change before, at, and after where the walk stands.
			before := g.api.Version()
			for range 5 {
				key := fmt.Sprintf("team-%d/pod-%02d", random.IntN(3), random.IntN(70))
				if slices.Contains(g.api.Keys("pods"), key) && random.IntN(2) == 0 {
					g.api.Delete("pods", key)
				} else {
					g.api.Put("pods", key, "metadata.labels.odd=1", "status.phase=After")
				}
			}
			if g.api.Version() != before {
				g.eventually("it is cached", func() bool {
					return g.list("/api/v1/pods").Metadata.ResourceVersion == fmt.Sprint(g.api.Version())
				})
			}
		}
		if !slices.Equal(walked, all.names()) {
			t.Errorf("%s: %d pages give\n%v\nnot\n%v", query, pages, walked, all.names())
		}
	}
}

// TestExpiredPageComesWithATokenThatGoesOn: at the same place, in the newest version; as kubectl expects after 410.
func TestExpiredPageComesWithATokenThatGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for i := range 10 {
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%d", i))
		}
		first := g.list("/api/v1/pods?limit=4")
		g.api.Delete("pods", "team-a/pod-4")
		g.api.Put("pods", "team-a/pod-3a")
		g.api.Put("pods", "team-a/pod-0a")
		second := g.list("/api/v1/pods?limit=1&continue=" + first.Metadata.Continue)
		if !slices.Equal(second.names(), []string{"team-a/pod-4"}) {
			t.Fatalf("the second page is %v", second.names())
		}
		pass(rest.KeepFor + time.Second)
		a := g.get("/api/v1/pods?limit=4&continue=" + first.Metadata.Continue)
		s := a.status(t)
		if a.code != http.StatusGone || s.Reason != metav1.StatusReasonExpired || s.Continue == "" {
			t.Fatalf("%d %s", a.code, a.body)
		}
		others := g.list("/api/v1/pods?continue=" + s.Continue)
		want := []string{"team-a/pod-3a", "team-a/pod-5", "team-a/pod-6", "team-a/pod-7", "team-a/pod-8", "team-a/pod-9"}
		if !slices.Equal(others.names(), want) || others.Metadata.ResourceVersion == first.Metadata.ResourceVersion {
			t.Errorf("%v of %s", others.names(), others.Metadata.ResourceVersion)
		}
		// The newest snapshot needs not be kept to be found.
		now := g.list("/api/v1/pods?limit=2")
		pass(rest.KeepFor + time.Second)
		if l := g.list("/api/v1/pods?limit=2&continue=" + now.Metadata.Continue); len(l.Items) != 2 {
			t.Errorf("%+v", l)
		}
	})
}

// TestSnapshotsOfPagesAreLetGo, though nobody asks for another page.
func TestSnapshotsOfPagesAreLetGo(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for i := range 100 {
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%d", i))
			g.eventually("it is cached", func() bool { return len(g.list("/api/v1/pods").Items) == i+1 })
			g.list("/api/v1/pods?limit=1")
			if n, _ := g.server.rest.Kept(); n != i {
				t.Fatalf("%d snapshots are kept", n)
			}
			pass(time.Second)
		}
		pass(rest.KeepFor - 30*time.Second)
		if n, _ := g.server.rest.Kept(); n == 0 || n > 40 {
			t.Errorf("%d snapshots are kept", n)
		}
		pass(time.Minute)
		snapshots, stores := g.server.rest.Kept()
		if bytes, users := g.server.memory.Held(); snapshots != 0 || stores != 0 || bytes != 0 || users != 0 {
			t.Errorf("%d snapshots of %d stores are still kept, %d bytes of %d users", snapshots, stores, bytes, users)
		}
	})
}

// Whatever somebody else walks, and however much changes, a walk that goes on ends at the version at which it began.
func TestOneUserCannotEndAnothersWalk(t *testing.T) {
	const pods = 10
	inBubble(t, func(t *testing.T, g *gateway) {
		pad := strings.Repeat("x", 200<<10)
		put := func(n int) {
			for i := range pods {
				g.api.Put("pods", fmt.Sprintf("team-a/p%d", i), fmt.Sprintf("spec.n:=%d", n), "spec.pad="+pad)
			}
			g.latest(fmt.Sprintf("p%d", pods-1), n)
		}
		put(0)
		bob := func(path string) list {
			var l list
			if err := json.Unmarshal([]byte(g.get(path, "Authorization: Bearer bob").body), &l); err != nil {
				t.Fatal(err)
			}
			return l
		}
		first := bob("/api/v1/pods?limit=2&fields=spec.n")
		for n := range 30 { // each of which holds 2 MB more than the one before
			put(n + 1)
			g.get("/api/v1/pods?limit=1&fields=spec.n")
			g.get("/api/v1/pods?limit=1&fields=spec.n&sort=spec.n")
			pass(accounted)
			if bytes, _ := g.server.memory.Held(); bytes > keptBytes {
				t.Fatalf("%d bytes are kept", bytes)
			}
		}
		second := bob("/api/v1/pods?fields=spec.n&continue=" + first.Metadata.Continue)
		if len(second.Items) != pods-2 || second.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
			t.Errorf("%d pods of version %s, after those of %s", len(second.Items), second.Metadata.ResourceVersion, first.Metadata.ResourceVersion)
		}
	}, cached(streamOptions(), "pods"))
}

// accounted is how long it takes at most until what changes is accounted for.
const accounted = time.Second
