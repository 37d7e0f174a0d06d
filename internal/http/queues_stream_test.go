package http

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

// reorder has Kueue say another order.
func (k *kueue) reorder(order ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.order = order
}

func (k *kueue) questions() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

// jobs reads the events of a queue until its jobs are as they should be, within a time.
func (s *events) waits(within time.Duration, want ...string) {
	s.t.Helper()
	began := time.Now()
	for {
		f := s.next()
		if !strings.HasSuffix(f.event, "queue") {
			s.t.Fatalf("%s, not the queue", f)
		}
		if got := toldOf(s.t, f.data); slices.Equal(got, want) || len(got) == 0 && len(want) == 0 {
			break
		} else if took := time.Since(began); took > within {
			s.t.Fatalf("after %v: %q, not %q", took, got, want)
		}
	}
	if took := time.Since(began); took > within {
		s.t.Errorf("it took %v", took)
	}
}

// A change of place is told within a second, also if Kueue itself comes to know of it later than the
// gateway. While nothing changes, Kueue is left alone.
func TestQueueStreamsTellChangesOfPlaceWithinASecond(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		k.wait("b", "other", "line")
		s := g.stream("/queues/a/line")
		if f := s.next(); f.event != "queue" || f.data+"\n" != g.get("/queues/a/line").body {
			t.Errorf("the stream tells %s %s", f, f.data)
		}
		whole := g.stream("/queues/whole?limit=2")
		whole.waits(time.Second, "1/1 jobs.batch one", "1/2 jobs.batch other")
		k.wait("a", "two", "line")
		s.waits(time.Second, "1/1 jobs.batch one", "2/3 jobs.batch two")
		pass(10 * time.Second)
		k.workload("a", "two", "line", "spec.priority:=10")
		pass(200 * time.Millisecond) // Kueue is behind
		k.reorder("a/job-two", "a/job-one", "b/job-other")
		s.waits(time.Second, "1/1 jobs.batch two", "2/2 jobs.batch one")
		k.reorder("a/job-two", "b/job-other")
		g.api.Delete("workloads", "a/job-one")
		s.waits(time.Second, "1/1 jobs.batch two")
		k.wait("b", "more", "line") // which is not in this queue, but the queue's own numbers may be others
		putLine(g.api, "a", 7)
		if f := s.next(); f.field("waiting") != "7" {
			t.Errorf("%s", f.data)
		}
		pass(10 * time.Second)
		before := k.questions()
		pass(10 * time.Minute)
		if now := k.questions(); now != before {
			t.Errorf("while nothing changed, Kueue was asked %d times", now-before)
		}
	})
}

// A job that has left moves up at once those behind it, whatever Kueue says that does not know yet. It does not come back then.
func TestWhoHasLeftAQueueStandsInNobodysWay(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		for _, name := range []string{"one", "two", "three"} {
			k.wait("a", name, "line")
		}
		s := g.stream("/queues/a/line")
		s.waits(time.Second, "1/1 jobs.batch one", "2/2 jobs.batch two", "3/3 jobs.batch three")
		pass(10 * time.Second)
		g.api.Delete("workloads", "a/job-one")
		s.waits(400*time.Millisecond, "1/1 jobs.batch two", "2/2 jobs.batch three")
		pass(10 * time.Second)
		k.workload("a", "two", "line", apitest.Set("status", map[string]any{"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "True"}}, "admission": map[string]any{"clusterQueue": "whole"}}))
		s.waits(400*time.Millisecond, "1/1 jobs.batch three")
		pass(5 * time.Second)
		k.reorder("a/job-three")
		pass(8 * time.Second)
		if got := toldOf(t, g.get("/queues/a/line").body); !slices.Equal(got, []string{"1/1 jobs.batch three"}) {
			t.Errorf("%q", got)
		}
		k.workload("a", "two", "line") // it was taken back
		k.reorder("a/job-three", "a/job-two")
		s.waits(time.Second, "1/1 jobs.batch three", "2/2 jobs.batch two")
	})
}

// What comes more often than a client wants is told as what became of it.
func TestQueueStreamsTellNoMoreOftenThanTheyShould(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		for query, most := range map[string]int{"": 21, "?conflate=1s": 6} {
			s := g.stream("/queues/a/line" + query)
			s.next()
			began, told := time.Now(), 0
			go func() {
				for i := range 50 {
					putLine(g.api, "a", 1000*most+i)
					pass(100 * time.Millisecond)
				}
			}()
			for last := ""; last != fmt.Sprint(1000*most+49); told++ {
				last = s.next().field("waiting")
			}
			if told > most || time.Since(began) > 7*time.Second {
				t.Errorf("%q: in five seconds it was told %d times", query, told)
			}
			s.close()
		}
	})
}

// A queue that has just been made, and is not in the newest snapshot, is told soon. One that goes before that is told to be gone.
func TestQueueStreamsBeginWithQueuesThatWereJustMade(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		g.stream("/queues/whole").next()
		for _, name := range []string{"stays", "goes"} {
			pass(10 * time.Second)
			putLine(g.api, "a", len(name)) // what comes right after this is in the next snapshot
			pass(10 * time.Millisecond)
			g.api.Put("localqueues", "a/"+name, "spec.clusterQueue=whole")
			pass(10 * time.Millisecond)
			s, began := g.stream("/queues/a/"+name), time.Now()
			if name == "stays" {
				if f := s.next(); f.field("name") != name || time.Since(began) > time.Second {
					t.Errorf("after %v: %s %s", time.Since(began), f, f.data)
				}
				continue
			}
			g.api.Delete("localqueues", "a/"+name)
			if left := s.end(); len(left) != 1 || left[0].String() != "goodbye gone" || time.Since(began) > 5*time.Second {
				t.Errorf("after %v: %v", time.Since(began), left)
			}
		}
	})
}

// However far back in its ClusterQueue a job stands, whoever may see it does.
func TestQueueStreamsShowJobsFarBack(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		for i := range 1010 {
			k.wait("b", fmt.Sprint("other", i), "line")
		}
		k.wait("a", "mine", "line")
		g.stream("/queues/a/line").waits(time.Second, "1/1011 jobs.batch mine")
	})
}

// A Workload that names a kind that nobody knows holds nobody up, also while the cluster does not say whether it has that.
func TestQueueStreamsGoOnWhileTheClusterDoesNotSayItsKinds(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		s := g.stream("/queues/a/line")
		s.waits(time.Second, "1/1 jobs.batch one")
		pass(5 * time.Second)
		g.api.Hang("discovery")
		defer g.api.Fail("discovery", 0)
		k.hostile("a", "x", "line", map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "x", "uid": "1", "controller": true})
		s.waits(time.Second, "1/1 jobs.batch one", "2 hidden")
		k.wait("a", "two", "line")
		s.waits(time.Second, "1/1 jobs.batch one", "2 hidden", "3/3 jobs.batch two")
	})
}

// An answer does not wait for long for a cluster that does not say whether it has a kind, and has a queue that was just made.
func TestAnswersOfQueuesWaitForLittle(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		g.get("/queues/a/line")
		g.api.Put("localqueues", "a/new", "spec.clusterQueue=whole")
		pass(10 * time.Millisecond)
		if a := g.get("/queues/a/new"); a.code != http.StatusOK {
			t.Errorf("a queue that was just made: %d %s", a.code, a.body)
		}
		pass(10 * time.Second)
		g.api.Hang("discovery")
		defer g.api.Fail("discovery", 0)
		k.hostile("a", "x", "line", map[string]any{"apiVersion": "none.example.com/v1", "kind": "None", "name": "x", "uid": "1", "controller": true})
		began := time.Now()
		if got := toldOf(t, g.get("/queues/a/line").body); !slices.Equal(got, []string{"1/1 jobs.batch one", "2 hidden"}) {
			t.Errorf("%q", got)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Workloads that name many kinds that the cluster has, but that are no jobs', do not hide jobs.
func TestKindsThatAreNoJobsHideNoJobs(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		for i := range 40 {
			kind := cluster.Kind{Group: "things.example.com", Version: "v1", Resource: fmt.Sprint("thing", i), Kind: fmt.Sprint("Thing", i), Namespaced: true, Watchable: true}
			g.api.Serve(kind, true)
			k.hostile("b", fmt.Sprint("x", i), "line", map[string]any{"apiVersion": "things.example.com/v1", "kind": kind.Kind, "name": "x", "uid": "uid-x", "controller": true})
		}
		pass(5 * time.Second)
		k.wait("a", "mine", "line")
		g.stream("/queues/a/line").waits(time.Second, "1/41 jobs.batch mine")
		if got := toldOf(t, g.get("/queues/whole").body); got[len(got)-1] != "1/41 jobs.batch mine" {
			t.Errorf("%q", got)
		}
	})
}

// However many kinds Workloads name that nobody knows, one that comes to be known is looked for, too.
func TestAKindIsFoundAmongManyThatAreNone(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		s := g.stream("/queues/a/line?limit=1000")
		s.waits(time.Second, "1/1 jobs.batch one")
		pass(10 * time.Second)
		for i := range 100 {
			k.hostile("b", fmt.Sprint("x", i), "line", map[string]any{"apiVersion": "none.example.com/v1", "kind": fmt.Sprint("None", i), "name": "x", "uid": "1", "controller": true})
		}
		g.api.Serve(cluster.Kind{Group: "new.example.com", Version: "v1", Resource: "trains", Kind: "Train", Namespaced: true, Watchable: true}, true)
		k.hostile("a", "two", "line", map[string]any{"apiVersion": "new.example.com/v1", "kind": "Train", "name": "two", "uid": "uid-two", "controller": true})
		s.waits(5*time.Second, "1/1 jobs.batch one", "2/102 trains.new.example.com two")
	})
}

// Strangers' jobs are places. What somebody may see is another within moments, and whoever may not list
// the queue any more is told nothing further.
func TestQueueStreamsFollowPermissions(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		k.wait("b", "secret", "line")
		permit := func(things ...string) {
			g.bobSees(things...)
			g.access.announce()
		}
		permit("list clusterqueues", "list localqueues a", "list jobs b")
		const bob = "Authorization: Bearer bob"
		whole, line := g.stream("/queues/whole", bob), g.stream("/queues/a/line", bob)
		whole.waits(time.Second, "1 hidden", "1/2 jobs.batch secret")
		line.waits(time.Second, "1 hidden")
		permit("list clusterqueues", "list localqueues a", "get jobs a")
		whole.waits(2*time.Second, "1/1 jobs.batch one", "2 hidden")
		line.waits(2*time.Second, "1/1 jobs.batch one")
		permit("list clusterqueues", "get jobs a")
		if left := line.end(); len(left) == 0 || left[len(left)-1].String() != "goodbye revoked" {
			t.Errorf("%v", left)
		}
		k.hostile("a", "x", "line", map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "uid-d", "controller": true})
		whole.waits(time.Second, "1/1 jobs.batch one", "2 hidden", "3 hidden")
		for path, code := range map[string]int{"/queues/a/line": 404, "/queues/a/none": 404, "/queues/none": 404, "/queues/whole?x=1": 400, "/queues?limit=1": 400, "/queues/a/line?conflate=x": 400} {
			if a := g.get(path, bob, "Accept: text/event-stream"); a.code != code {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
	})
}

// The list of queues is a stream, too, and both are sources of streams of several.
func TestQueuesAreSourcesOfStreamsOfSeveral(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		s := g.stream("/stream?all=/queues&q=/clusters/default/queues/a/line%3Flimit%3D1&pods=/api/v1/pods")
		got := map[string]string{}
		for len(got) < 3 {
			f := s.next()
			got[f.event] = f.data
		}
		if got["all.queue"]+"\n" != g.get("/queues").body || got["q.queue"]+"\n" != g.get("/queues/a/line?limit=1").body {
			t.Errorf("%q", got)
		}
		g.api.Put("localqueues", "b/new", "spec.clusterQueue=whole")
		if f := s.next(); f.event != "all.queue" || !strings.Contains(f.data, `"name":"new"`) {
			t.Errorf("%s %s", f, f.data)
		}
		again := g.stream("/stream?q=/queues/a/line&pods=/api/v1/pods", "Last-Event-ID: "+s.lastID) // it has no position, and is told anew
		if f := again.until("q.queue"); len(toldOf(t, f.data)) != 1 {
			t.Errorf("%s", f.data)
		}
		one := g.stream("/queues/a/line")
		one.next()
		g.api.Delete("localqueues", "a/line")
		if left := one.end(); len(left) == 0 || left[len(left)-1].String() != "goodbye gone" {
			t.Errorf("%v", left)
		}
	})
}

// A hundred who may see the same of a queue are told together, and Kueue is asked no more often than for one.
func TestViewersOfAQueueAreToldTogether(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		var all []*events
		for range 20 {
			s := g.stream("/queues/a/line", "Accept-Encoding: identity")
			s.next()
			all = append(all, s)
		}
		pass(10 * time.Second)
		change := func(n int) {
			putLine(g.api, "a", n)
			first := all[0].next()
			for _, s := range all[1:] {
				if f := s.next(); f.raw != first.raw || f.field("waiting") != fmt.Sprint(n) {
					t.Fatalf("%s, and not %s", f.data, first.data)
				}
			}
		}
		change(100) // those who were the first of their kind join the others
		synctest.Wait()
		pass(10 * time.Second)
		if n := g.server.streams.Stats().Together; n != 20 {
			t.Errorf("%d streams are told together", n)
		}
		before := k.questions()
		change(101)
		pass(10 * time.Second)
		if asked := k.questions() - before; asked < 1 || asked > 3 {
			t.Errorf("for one change, Kueue was asked %d times", asked)
		}
	})
}

// While the visibility API is away, positions are null, and soon after it is back they are told. While
// the whole cluster is away, the client is told that what it has is stale.
func TestQueueStreamsTellWhatIsAway(t *testing.T) {
	withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
		k.wait("a", "one", "line")
		s := g.stream("/queues/a/line")
		s.waits(time.Second, "1/1 jobs.batch one")
		k.set(http.StatusServiceUnavailable, "v1beta2")
		k.wait("a", "two", "line")
		s.waits(time.Second, "-/- jobs.batch one", "-/- jobs.batch two")
		pass(8 * time.Second)
		k.set(0, "v1beta2")
		s.waits(7*time.Second, "1/1 jobs.batch one", "2/2 jobs.batch two")
		g.api.Away(true)
		if f := s.until("stale"); f.event != "stale" {
			t.Errorf("%s", f)
		}
		g.api.Away(false)
		s.until("live")
		k.reorder("a/job-two")
		g.api.Delete("workloads", "a/job-one")
		s.waits(7*time.Second, "1/1 jobs.batch two")
	})
}

// TestStreamsWithoutPositionsAreMoved all the same, since they are told whole: a stream that never is keeps its client at a replica.
func TestStreamsWithoutPositionsAreMoved(t *testing.T) {
	for _, path := range []string{"/queues/a/line", "/queues", "/stream?q=/queues/a/line&pods=/api/v1/pods", "/api/v1/pods?countBy=spec.nodeName", "/api/v1/pods?limit=5&sort=metadata.name"} {
		withKueue(t, func(t *testing.T, g *gateway, k *kueue) {
			k.wait("a", "one", "line")
			s := g.stream(path)
			s.next()
			var reading sync.WaitGroup
			reading.Go(func() { s.end() })
			pass(time.Minute)
			if n := g.server.Move(1, time.Second); n != 1 {
				t.Errorf("%s is not moved", path)
				g.drain()
			}
			reading.Wait()
		})
	}
}
