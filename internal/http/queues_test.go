package http

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
)

// kueue is a fake of Kueue: its objects, and in which order Workloads wait.
type kueue struct {
	gateway *gateway

	mu    sync.Mutex
	order []string // namespace/name
	lines map[string]string
	asked int
	away  int // the status that it answers; 0: it is there
	// version is the only one that is served.
	version string
}

func (k *kueue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	const limit = "?limit=20000"
	switch want := "/apis/visibility.kueue.x-k8s.io/" + k.version + "/clusterqueues/whole/pendingworkloads" + limit; {
	case k.away != 0:
		http.Error(w, "away", k.away)
		return
	case r.URL.String() != want:
		http.NotFound(w, r)
		return
	}
	items, local := []string{}, map[string]int{}
	for i, key := range k.order {
		namespace, name, _ := strings.Cut(key, "/")
		line := k.lines[key]
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q},"priority":0,"localQueueName":%q,"positionInClusterQueue":%d,"positionInLocalQueue":%d}`,
			name, namespace, line, i, local[line]))
		local[line]++ // Kueue counts LocalQueues of one name together
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":"PendingWorkloadsSummary","apiVersion":"visibility.kueue.x-k8s.io/%s","items":[%s]}`, k.version, strings.Join(items, ","))
}

// wait puts a job and its Workload, which may have more fields, at the end of a LocalQueue.
func (k *kueue) wait(namespace, name, line string, more ...string) {
	k.gateway.api.Put("jobs", namespace+"/"+name, "metadata.uid=uid-"+name)
	key := k.workload(namespace, name, line, more...)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.order = append(k.order, key)
	k.lines[key] = line
}

// workload makes or changes a job's Workload.
func (k *kueue) workload(namespace, name, line string, more ...string) (key string) {
	key = namespace + "/job-" + name
	k.gateway.api.Put("workloads", key, append(more, "spec.queueName="+line, threePods(), apitest.Set("metadata.ownerReferences", []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "uid-" + name, "controller": true}}))...)
	return key
}

// threePods are what a Workload asks for.
func threePods() string {
	return apitest.Set("spec.podSets", []any{map[string]any{"name": "main", "count": 3, "template": map[string]any{
		"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "resources": map[string]any{"requests": map[string]any{"cpu": "500m", "nvidia.com/gpu": 1}}}}},
	}}})
}

func (k *kueue) set(away int, version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.away, k.version = away, version
}

// withKueue runs a test with a ClusterQueue "whole" that has a LocalQueue "line" in each of the namespaces a and b.
func withKueue(t *testing.T, test func(*testing.T, *gateway, *kueue), opts ...option) {
	t.Helper()
	k := &kueue{version: "v1beta2", lines: map[string]string{}}
	inBubble(t, func(t *testing.T, g *gateway) {
		k.gateway = g
		test(t, g, k)
	}, append(opts, k.served())...)
}

// served has the API server serve Kueue's kinds, and its order.
func (k *kueue) served() option {
	return before(func(api *apitest.API) {
		api.Queues = k.ServeHTTP
		for _, kind := range []cluster.Kind{{Resource: "localqueues", Kind: "LocalQueue", Namespaced: true}, {Resource: "clusterqueues", Kind: "ClusterQueue"}, {Resource: "workloads", Kind: "Workload", Namespaced: true}} {
			kind.Group, kind.Version, kind.Watchable = "kueue.x-k8s.io", "v1beta2", true
			api.Serve(kind, true)
		}
		api.Put("clusterqueues", "whole", "spec.cohortName=all", apitest.Set("spec.resourceGroups", []any{map[string]any{"flavors": flavors(map[string]any{"name": "nvidia.com/gpu", "nominalQuota": 8})}}),
			apitest.Set("status", map[string]any{"pendingWorkloads": 4, "admittedWorkloads": 2, "flavorsUsage": flavors(map[string]any{"name": "nvidia.com/gpu", "total": "10", "borrowed": "2"})}))
		for _, namespace := range []string{"a", "b"} {
			putLine(api, namespace, 2)
		}
	})
}

func flavors(resources ...any) any {
	return []any{map[string]any{"name": "h100", "resources": resources}}
}

// putLine makes or changes a LocalQueue in which so many wait.
func putLine(api *apitest.API, namespace string, waiting int) {
	api.Put("localqueues", namespace+"/line", "spec.clusterQueue=whole",
		apitest.Set("status", map[string]any{"pendingWorkloads": waiting, "admittedWorkloads": 1, "flavorsUsage": flavors(map[string]any{"name": "nvidia.com/gpu", "total": "5"})}))
}

// bobSees has bob list and get what is named as "verb resource namespace".
func (g *gateway) bobSees(things ...string) {
	g.access.set(func(a *fakeAuth) {
		a.strangers = []string{"bob"}
		a.decide = func(id auth.Identity, r auth.Request) (bool, error) {
			return id.Username != "bob" || slices.Contains(things, strings.TrimSpace(r.Verb+" "+r.Resource+" "+r.Namespace)), nil
		}
	})
}

// told is what a queue's jobs are told as: their positions and names.
func toldOf(t testing.TB, body string) (all []string) {
	t.Helper()
	var q struct {
		Jobs []struct {
			Position, ClusterPosition *int
			Name, UID, Resource       string
			Hidden                    bool
			Requests                  map[string]string
		}
	}
	if err := json.Unmarshal([]byte(body), &q); err != nil {
		t.Fatal(err, body)
	}
	number := func(n *int) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	for _, j := range q.Jobs {
		if j.Hidden {
			all = append(all, number(j.Position)+" hidden")
			if j.Name+j.UID+j.Resource != "" || j.Requests != nil || j.ClusterPosition != nil {
				t.Errorf("of a hidden job more is told: %s", body)
			}
			continue
		}
		all = append(all, number(j.Position)+"/"+number(j.ClusterPosition)+" "+j.Resource+" "+j.Name)
		if j.Requests["cpu"] != "1500m" || j.Requests["nvidia.com/gpu"] != "3" || j.UID != "uid-"+j.Name {
			t.Errorf("%+v", j)
		}
	}
	return all
}

// Jobs are told in Kueue's order, with their places. A stranger's job is a place, and never a name.
func TestQueuesTellPlacesAndNoStrangersNames(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		k.wait("b", "secret", "line")
		k.wait("a", "two", "line")
		k.wait("b", "other", "line")
		synctest.Wait() // the gateway knows of them
		for _, test := range []struct {
			path string
			sees []string // bob's; nil: somebody who may see everything asks
			want []string
		}{
			{"/queues/a/line", nil, []string{"1/1 jobs.batch one", "2/3 jobs.batch two"}},
			{"/queues/whole", nil, []string{"1/1 jobs.batch one", "1/2 jobs.batch secret", "2/3 jobs.batch two", "2/4 jobs.batch other"}},
			{"/clusters/default/queues/whole?limit=2", nil, []string{"1/1 jobs.batch one", "1/2 jobs.batch secret"}},
			{"/queues/a/line", []string{"list localqueues a", "list jobs a"}, []string{"1/1 jobs.batch one", "2/3 jobs.batch two"}},
			{"/queues/a/line", []string{"list localqueues a", "get jobs a"}, []string{"1/1 jobs.batch one", "2/3 jobs.batch two"}},
			{"/queues/a/line", []string{"list localqueues a", "list workloads a"}, []string{"1 hidden", "2 hidden"}},
			{"/queues/b/line", []string{"list localqueues b", "list jobs a"}, []string{"1 hidden", "2 hidden"}},
			{"/queues/whole", []string{"list clusterqueues", "list jobs b"}, []string{"1 hidden", "1/2 jobs.batch secret", "3 hidden", "2/4 jobs.batch other"}},
		} {
			headers := []string{"Accept: application/json"}
			if test.sees != nil {
				g.bobSees(test.sees...)
				headers = append(headers, "Authorization: Bearer bob")
			}
			a := g.get(test.path, headers...)
			if a.code != http.StatusOK {
				t.Errorf("%s %q: %d %s", test.path, test.sees, a.code, a.body)
			} else if got := toldOf(t, a.body); !slices.Equal(got, test.want) {
				t.Errorf("%s %q: %q, not %q", test.path, test.sees, got, test.want)
			}
		}
		for path, sees := range map[string]string{"/queues/b/line": "list localqueues a", "/queues/whole": "list localqueues a", "/queues/a/line": "get localqueues a", "/queues/a/none": "list localqueues a"} {
			g.bobSees(sees)
			if a := g.get(path, "Authorization: Bearer bob"); a.code != http.StatusNotFound {
				t.Errorf("%s with %s: %d %s", path, sees, a.code, a.body)
			}
		}
	})
}

// The list has what a queue's own object says, to whoever may list that: a LocalQueue's quota is its ClusterQueue's.
func TestTheListOfQueuesSaysWhatTheirObjectsSay(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, _ *kueue) {
		const (
			local = `{"name":"line","namespace":"a","kind":"LocalQueue","clusterQueue":"whole","cohort":"all","resources":[{"flavor":"h100","resource":"nvidia.com/gpu","quota":"8","used":"5","borrowed":null}],"waiting":2,"running":1}`
			poor  = `{"name":"line","namespace":"a","kind":"LocalQueue","clusterQueue":"whole","resources":[{"flavor":"h100","resource":"nvidia.com/gpu","quota":null,"used":"5","borrowed":null}],"waiting":2,"running":1}`
			whole = `{"name":"whole","kind":"ClusterQueue","cohort":"all","resources":[{"flavor":"h100","resource":"nvidia.com/gpu","quota":"8","used":"10","borrowed":"2"}],"waiting":4,"running":2}`
		)
		if got, want := g.get("/queues").body, `{"items":[`+local+","+strings.ReplaceAll(local, `"a"`, `"b"`)+","+whole+"]}\n"; got != want {
			t.Errorf("%s, not %s", got, want)
		}
		for sees, want := range map[string]string{
			"list localqueues a": poor, "list clusterqueues": whole, "get localqueues a": "", "list jobs a": "",
		} {
			g.bobSees(sees)
			if a := g.get("/queues", "Authorization: Bearer bob"); a.code != http.StatusOK || a.body != `{"items":[`+want+"]}\n" {
				t.Errorf("%s: %d %s, not %s", sees, a.code, a.body, want)
			}
		}
	})
}

// Whose visibility API is away, old or not installed is told queues from their objects, without positions.
func TestWithoutKueuesOrderThereAreNoPlaces(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "late", "line")
		k.wait("a", "high", "line", apitest.Set("spec.priority", 10))
		k.wait("a", "runs", "line", apitest.Set("status.conditions", []any{map[string]any{"type": "QuotaReserved", "status": "True"}}))
		k.wait("b", "more", "line", "metadata.creationTimestamp=2100-01-01T00:00:00Z")
		k.wait("b", "elsewhere", "other")
		for _, away := range []int{http.StatusServiceUnavailable, http.StatusForbidden, http.StatusNotFound} {
			k.set(away, k.version)
			g.eventually("there are no places", func() bool {
				return slices.Equal(toldOf(t, g.get("/queues/a/line").body), []string{"-/- jobs.batch high", "-/- jobs.batch late"})
			})
			if got := toldOf(t, g.get("/queues/whole").body); !slices.Equal(got, []string{"-/- jobs.batch high", "-/- jobs.batch late", "-/- jobs.batch more"}) {
				t.Errorf("%d: %q", away, got)
			}
		}
		k.set(0, "v1beta1") // an older Kueue
		g.eventually("an old one's order is told", func() bool {
			got := toldOf(t, g.get("/queues/a/line").body)
			return len(got) > 0 && got[0] == "1/1 jobs.batch late"
		})
	})
	inBubble(t, hasNoQueues)
	withKueue(t, func(t *testing.T, g *gateway, _ *kueue) { hasNoQueues(t, g) }, options(func(o *Options) { o.NoQueues = true }))
}

// hasNoQueues tests what is told where there are none, or are not to be told of.
func hasNoQueues(t *testing.T, g *gateway) {
	if a := g.get("/queues"); a.body != `{"items":[]}`+"\n" {
		t.Errorf("the list: %d %s", a.code, a.body)
	}
	if f := g.stream("/queues").next(); f.data != `{"items":[]}` {
		t.Errorf("the list's stream: %s", f.data)
	}
	for _, accept := range []string{"application/json", "text/event-stream"} {
		if a := g.get("/queues/a/line", "Accept: "+accept); a.code != http.StatusNotFound {
			t.Errorf("a queue as %s: %d %s", accept, a.code, a.body)
		}
	}
}

// hostile puts a Workload at the end of a LocalQueue that claims to be another's.
func (k *kueue) hostile(namespace, name, line string, owner map[string]any) {
	k.wait(namespace, name, line)
	k.gateway.api.Put("workloads", namespace+"/job-"+name, "spec.queueName="+line, threePods(), apitest.Set("metadata.ownerReferences", []any{owner}))
}

// Whoever may make Workloads may write any owner into them: of a kind that nobody has or that cannot
// be asked about just now, of a thousand kinds, with names that are none. That hides their own jobs, and nothing else.
func TestHostileWorkloadsHideOnlyThemselves(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		owner := func(group, kind, name, uid string) map[string]any {
			return map[string]any{"apiVersion": group + "/v1", "kind": kind, "name": name, "uid": uid, "controller": true}
		}
		k.wait("a", "first", "line")
		g.api.Stale("gone.example.com", true)
		k.hostile("a", "x0", "line", owner("gone.example.com", "Widget", "x", "1"))
		k.hostile("a", "x1", "line", owner("none.example.com", "None", "x", "1"))
		k.hostile("a", "x2", "line", owner("batch", "Job", "x\x00y", "1"))
		k.hostile("a", "x3", "line", owner("batch", "Job", strings.Repeat("x", 300), "1"))
		k.hostile("a", "x4", "line", owner("batch", "Job", "x", "\x00"))
		k.wait("a", "second", "line")
		for i := range 40 {
			k.hostile("a", fmt.Sprint("y", i), "line", owner("batch", fmt.Sprint("Kind", i), "x", "1"))
		}
		k.wait("a", "last", "line")
		a := g.get("/queues/a/line")
		if a.code != http.StatusOK {
			t.Fatalf("%d %s", a.code, a.body)
		}
		got := toldOf(t, a.body)
		if len(got) != 48 || got[0] != "1/1 jobs.batch first" || got[6] != "7/7 jobs.batch second" || got[47] != "48/48 jobs.batch last" {
			t.Errorf("%q", got)
		}
		for _, one := range got {
			if strings.Contains(one, "x") {
				t.Errorf("%q", one)
			}
		}
	})
}

// A visibility API that hangs holds nobody up for long, and not again and again.
func TestAVisibilityAPIThatHangsIsLeftAlone(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		g.api.Hang("queues")
		waited := time.Duration(0)
		for range 30 {
			began := time.Now()
			if got := toldOf(t, g.get("/queues/a/line").body); !slices.Equal(got, []string{"-/- jobs.batch one"}) {
				t.Fatalf("%q", got)
			}
			waited += time.Since(began)
			time.Sleep(time.Second)
		}
		if waited > 5*time.Second {
			t.Errorf("in half a minute, callers waited for %v", waited)
		}
	})
}

// A thousand who look at a queue ask Kueue no more often than one does.
func TestAQueueIsAskedForOnceForAll(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		var looking sync.WaitGroup
		for range 50 {
			looking.Go(func() { g.get("/queues/a/line") })
		}
		looking.Wait()
		if k.asked != 1 {
			t.Errorf("it was asked %d times", k.asked)
		}
	})
}

// What no queue is asked for is refused with what would be right.
func TestQueuesRefuseWhatTheyDoNotTake(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, _ *kueue) {
		for path, code := range map[string]int{
			"/queues?limit=1": 400, "/queues/a/line?limit=0": 400, "/queues/a/line?limit=1001": 400, "/queues/a/line?limit=1&limit=2": 400, "/queues/a/line?x=1": 400,
			"/queues/a/line/jobs": 404, "/queues//line": 404, "/clusters/none/queues": 404,
		} {
			if a := g.get(path); a.code != code {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		if a := g.get("/queues", "Accept: text/plain"); a.code != http.StatusNotAcceptable {
			t.Errorf("%d %s", a.code, a.body)
		}
	})
}
