package http

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

const bob = "Authorization: Bearer bob"

var priorities = cluster.Kind{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses", Kind: "PriorityClass", Watchable: true}

// withVolcano has the API server serve Volcano's kinds, and a Queue "shared".
func withVolcano() option {
	return before(func(api *apitest.API) {
		for _, kind := range []cluster.Kind{
			{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "queues", Kind: "Queue"},
			{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups", Kind: "PodGroup", Namespaced: true},
			priorities,
		} {
			kind.Watchable = true
			api.Serve(kind, true)
		}
		api.Put("queues", "shared", "spec.parent=root",
			apitest.Set("spec.deserved", map[string]any{"cpu": 4, "nvidia.com/gpu": "8"}), apitest.Set("spec.capability", map[string]any{"cpu": 16, "memory": "64Gi"}),
			apitest.Set("status", map[string]any{"state": "Open", "pending": 2, "inqueue": 1, "running": 3, "allocated": map[string]any{"cpu": "6", "memory": "1Gi", "pods": "9"}}))
	})
}

// waits puts a job, and its PodGroup that was made at a second, into a Queue of Volcano.
func (g *gateway) waits(made int, namespace, name, queue, phase, class string) {
	g.api.Put("jobs", namespace+"/"+name, "metadata.uid=uid-"+name)
	g.api.Put("podgroups", namespace+"/pg-"+name, "spec.queue="+queue, "metadata.creationTimestamp="+time.Unix(int64(made), 0).UTC().Format(time.RFC3339), "spec.priorityClassName="+class, "status.phase="+phase,
		apitest.Set("spec.minResources", map[string]any{"cpu": "1500m", "nvidia.com/gpu": 3, "count/pods": "2", "requests.cpu": "2"}),
		apitest.Set("metadata.ownerReferences", []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "uid-" + name, "controller": true}}))
}

// What a Queue of Volcano says is told; who waits in it is told in Volcano's order, and strangers' jobs are numbers.
func TestVolcanosQueuesTellPlacesAndNoStrangersNames(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("priorityclasses", "urgent", "value:=100")
		g.waits(1, "a", "first", "shared", "Pending", "")
		g.waits(2, "b", "second", "shared", "Inqueue", "")
		g.waits(3, "a", "urgent", "shared", "Pending", "urgent")
		g.waits(4, "a", "runs", "shared", "Running", "")
		g.waits(5, "a", "other", "another", "Pending", "")
		const want = `{"name":"shared","kind":"Queue","parent":"root","resources":[{"flavor":"","resource":"cpu","quota":"4","used":"6","borrowed":"2"},` +
			`{"flavor":"","resource":"memory","quota":"64Gi","used":"1Gi","borrowed":null},{"flavor":"","resource":"nvidia.com/gpu","quota":"8","used":"0","borrowed":"0"}],"waiting":3,"running":3`
		if got := g.get("/queues").body; strings.TrimSpace(got) != `{"items":[`+want+`}]}` {
			t.Errorf("%s", got)
		}
		got := g.get("/queues/shared").body
		if told := toldOf(t, got); !strings.HasPrefix(got, want) || !slices.Equal(told, []string{"1/1 jobs.batch second", "2/2 jobs.batch urgent", "3/3 jobs.batch first"}) {
			t.Errorf("%s\n%q", got, told)
		}
		g.bobSees("list queues", "get jobs a")
		if told := toldOf(t, g.get("/queues/shared", bob).body); !slices.Equal(told, []string{"1 hidden", "2/2 jobs.batch urgent", "3/3 jobs.batch first"}) {
			t.Errorf("%q", told)
		}
		g.bobSees("list jobs a")
		if a := g.get("/queues/shared", bob); a.code != http.StatusNotFound {
			t.Errorf("%d %s", a.code, a.body)
		}
		if got := g.get("/queues", bob).body; strings.Contains(got, "shared") {
			t.Errorf("%s", got)
		}
	}, withVolcano())
}

// Without its PriorityClasses it is not known in which order Volcano takes jobs that name one: they have no places.
func TestPlacesInVolcanosQueuesThatAreNotCertainAreNotTold(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.waits(1, "a", "one", "shared", "Pending", "")
		g.waits(2, "a", "alone", "another", "Pending", "")
		g.api.Put("queues", "another")
		s := g.stream("/queues/shared")
		s.waits(time.Second, "1/1 jobs.batch one")
		g.waits(3, "a", "two", "shared", "Pending", "urgent")
		s.waits(time.Second, "-/- jobs.batch one", "-/- jobs.batch two")
		if told := toldOf(t, g.get("/queues/another").body); !slices.Equal(told, []string{"1/1 jobs.batch alone"}) {
			t.Errorf("%q", told)
		}
		g.api.Delete("podgroups", "a/pg-two")
		s.waits(time.Second, "1/1 jobs.batch one")
		var later sync.WaitGroup
		defer later.Wait()
		later.Go(func() { // after it was looked whether they may be read by now: nothing is told to be gone
			pass(61 * time.Second)
			g.waits(4, "a", "three", "shared", "Pending", "")
		})
		s.waits(62*time.Second, "1/1 jobs.batch one", "2/2 jobs.batch three")
	}, withVolcano(), before(func(api *apitest.API) { api.Serve(priorities, false) }))
}

// Whatever happens to PodGroups, Queues and classes, all that is told is what a plain oracle says of the objects, within a second,
// and to each user as far as they may see the jobs.
func TestVolcanosQueuesAreToldAsAnOracleSays(t *testing.T) {
	type group struct {
		namespace, name, queue, phase, class string
		made                                 int
	}
	inBubble(t, func(t *testing.T, g *gateway) {
		rng := rand.New(rand.NewPCG(1, 2))
		classes := map[string]int{"low": -5, "high": 10}
		for name, value := range classes {
			g.api.Put("priorityclasses", name, fmt.Sprintf("value:=%d", value))
		}
		g.bobSees("list queues", "get jobs a")
		letIn := func(phase string) int {
			if phase == "Inqueue" {
				return 0
			}
			return 1
		}
		all := map[string]*group{}
		for step := range 150 {
			namespace, name := []string{"a", "b"}[rng.IntN(2)], fmt.Sprint("j", rng.IntN(12))
			key := namespace + "/" + name
			switch at := all[key]; {
			case rng.IntN(12) == 0:
				classes["high"] = -classes["high"]
				g.api.Put("priorityclasses", "high", fmt.Sprintf("value:=%d", classes["high"]))
			case at != nil && rng.IntN(3) == 0:
				g.api.Delete("podgroups", namespace+"/pg-"+name)
				delete(all, key)
			default:
				if at == nil {
					at = &group{namespace: namespace, name: name, made: step / 8} // several in one second
					all[key] = at
				}
				at.queue, at.phase = []string{"shared", "shared", "another"}[rng.IntN(3)], []string{"", "Pending", "Inqueue", "Running", "Completed"}[rng.IntN(5)]
				at.class = []string{"", "low", "high", "gone"}[rng.IntN(4)]
				g.waits(at.made, at.namespace, at.name, at.queue, at.phase, at.class)
			}
			wants := []*group{}
			for _, one := range all {
				if one.queue == "shared" && (one.phase == "" || one.phase == "Pending" || one.phase == "Inqueue") {
					wants = append(wants, one)
				}
			}
			slices.SortFunc(wants, func(a, b *group) int {
				return cmp.Or(letIn(a.phase)-letIn(b.phase), classes[b.class]-classes[a.class], a.made-b.made, strings.Compare(a.namespace+"/pg-"+a.name, b.namespace+"/pg-"+b.name))
			})
			pass(1100 * time.Millisecond)
			for _, user := range []string{"X-Nobody: 1", bob} {
				told := []string{}
				for i, one := range wants {
					if user == bob && one.namespace == "b" {
						told = append(told, fmt.Sprintf("%d hidden", i+1))
					} else {
						told = append(told, fmt.Sprintf("%d/%d jobs.batch %s", i+1, i+1, one.name))
					}
				}
				if got := toldOf(t, g.get("/queues/shared", user).body); !slices.Equal(got, told) {
					t.Fatalf("step %d, %s: %q, not %q", step, user, got, told)
				}
			}
		}
	}, withVolcano())
}
