package pending

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/queues"
	"github.com/kubecast/kubecast/internal/stream"
)

// inCluster is a registry over an API server's fake.
type inCluster struct {
	t        *testing.T
	api      *apitest.API
	kinds    *cache.Kinds
	registry *Registry
}

var (
	queueKind    = cluster.Kind{Group: queues.VolcanoGroup, Version: "v1beta1", Resource: "queues", Kind: "Queue", Watchable: true}
	podGroupKind = cluster.Kind{Group: queues.VolcanoGroup, Version: "v1beta1", Resource: "podgroups", Kind: "PodGroup", Namespaced: true, Watchable: true}
	classKind    = cluster.Kind{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses", Kind: "PriorityClass", Watchable: true}
)

// inABubble runs a test with a cluster that serves some kinds.
func inABubble(t *testing.T, test func(*inCluster), served ...cluster.Kind) {
	withKueue(t, nil, test, served...)
}

// withKueue is inABubble where Kueue says in which order Workloads wait.
func withKueue(t *testing.T, says http.HandlerFunc, test func(*inCluster), served ...cluster.Kind) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(served...)
		api.Queues = says
		kinds, err := cache.NewKinds(api.Connect(t), cache.Options{Topic: stream.Options{Events: 100, Bytes: 1 << 20}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		c := &inCluster{t, api, kinds, New(Options{Processors: budget.NewQueue(1, 0, 0), Linger: time.Second})}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { _ = kinds.Run(ctx) })
		running.Go(func() { _ = kinds.Cluster().Run(ctx) })
		running.Go(func() { c.registry.Run(ctx) })
		test(c)
	})
}

// waits puts a PodGroup that waits.
func (c *inCluster) waits(name string, fields ...string) {
	c.api.Put("podgroups", "a/"+name, append([]string{"spec.queue=shared", "status.phase=Pending", "metadata.creationTimestamp=2026-01-01T00:00:00Z"}, fields...)...)
}

// reads a queue.
func (c *inCluster) reads(queue Queue) *Reader {
	c.t.Helper()
	r, err := c.registry.Read(c.kinds, queue, "alice")
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// now is the newest snapshot; nil: there is none.
func (r *Reader) now() *Snapshot {
	s, _ := r.Snapshot(nil, 0)
	return s
}

// becomes waits until a snapshot is as it should be, and is told why if it does not become so.
func (c *inCluster) becomes(what string, r *Reader, is func(*Snapshot) bool) {
	c.t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		s := r.now()
		if s != nil && is(s) {
			return
		}
		if time.Since(began) > time.Minute {
			c.t.Fatalf("%s: %+v", what, s)
		}
	}
}

// stays looks for a time that no snapshot is told in which there are no Queues.
func (c *inCluster) stays(what string, r *Reader, within time.Duration) {
	c.t.Helper()
	for began := time.Now(); time.Since(began) < within; time.Sleep(10 * time.Millisecond) {
		if s := r.now(); s != nil && s.Volcano == nil {
			c.t.Fatalf("%s: after %v there is no queue", what, time.Since(began))
		}
	}
}

func places(n int) func(*Snapshot) bool {
	return func(s *Snapshot) bool { return s.Volcano != nil && len(s.Places) == n }
}

// Queues are told not to be there only where that is certain, and not because something of them cannot be read just now, or may not be.
func TestQueuesThatCannotBeReadJustNowAreNotGone(t *testing.T) {
	shared := Queue{Name: "shared", Volcano: true}
	begins := func(c *inCluster) {
		c.api.Put("queues", "shared")
		c.waits("one")
	}
	t.Run("without PriorityClasses", func(t *testing.T) {
		inABubble(t, func(c *inCluster) {
			begins(c)
			c.waits("urgent", "spec.priorityClassName=urgent")
			r := c.reads(shared)
			defer r.Close()
			c.becomes("at first", r, func(s *Snapshot) bool { return places(2)(s) && s.Places[0].Whole == 0 })
			c.stays("later", r, 3*time.Minute)
			c.api.Serve(classKind, true)
			c.api.Put("priorityclasses", "urgent", "value:=10")
			time.Sleep(time.Minute)
			c.becomes("with them", r, func(s *Snapshot) bool { return s.Places[0].Name == "urgent" && s.Places[0].Whole == 1 })
		}, queueKind, podGroupKind)
	})
	t.Run("PodGroups are refused", func(t *testing.T) {
		inABubble(t, func(c *inCluster) {
			begins(c)
			c.api.Fail("podgroups", http.StatusForbidden)
			r := c.reads(shared)
			defer r.Close()
			c.becomes("at first", r, places(0))
			c.stays("later", r, 2*time.Minute)
			c.api.Fail("podgroups", 0)
			time.Sleep(time.Minute)
			c.becomes("with them", r, places(1))
		}, queueKind, podGroupKind, classKind)
	})
	t.Run("an API server that is busy", func(t *testing.T) {
		inABubble(t, func(c *inCluster) {
			begins(c)
			c.api.Fail("queues", http.StatusInternalServerError)
			r := c.reads(shared)
			defer r.Close()
			c.stays("while it fails", r, 10*time.Second)
			c.api.Fail("queues", 0)
			c.stays("then", r, 10*time.Second)
			c.becomes("then", r, places(1))
		}, queueKind, podGroupKind, classKind)
	})
	t.Run("a cluster that is away", func(t *testing.T) {
		inABubble(t, func(c *inCluster) {
			begins(c)
			r := c.reads(shared)
			c.becomes("at first", r, places(1))
			r.Close()
			time.Sleep(5 * time.Second) // nobody follows it
			c.api.Away(true)
			for c.kinds.Cluster().Away() == nil {
				time.Sleep(time.Second)
			}
			r = c.reads(shared)
			defer r.Close()
			c.becomes("while it is away", r, func(s *Snapshot) bool { return places(1)(s) && !s.Upstream.Live })
			c.stays("while it is away", r, 2*time.Minute)
			c.api.Away(false)
		}, queueKind, podGroupKind, classKind)
	})
	t.Run("kinds that go", func(t *testing.T) {
		inABubble(t, func(c *inCluster) {
			begins(c)
			r := c.reads(shared)
			defer r.Close()
			c.becomes("at first", r, places(1))
			c.api.Serve(classKind, false)
			c.api.Serve(podGroupKind, false)
			c.api.CutWatches()
			c.stays("without PodGroups", r, 30*time.Second)
			c.becomes("without PodGroups", r, places(0))
			c.api.Serve(queueKind, false)
			c.api.CutWatches()
			c.becomes("without Queues", r, func(s *Snapshot) bool { return s.Volcano == nil })
		}, queueKind, podGroupKind, classKind)
	})
}

// A LocalQueue that says to be a part of whatever it likes is told nothing of Volcano's queues.
func TestNoNameOfAClusterQueueIsAQueueOfVolcano(t *testing.T) {
	inABubble(t, func(c *inCluster) {
		c.api.Put("queues", "shared")
		c.waits("one")
		for _, name := range []string{"shared", "volcano/shared"} {
			c.api.Put("localqueues", "a/line", "spec.clusterQueue="+name)
			r := c.reads(Queue{Name: name})
			c.becomes(name, r, func(s *Snapshot) bool { return s.Local != nil })
			time.Sleep(10 * time.Second)
			if s := r.now(); len(s.Places) > 0 {
				t.Errorf("%s: %+v", name, s.Places)
			}
			r.Close()
		}
	}, localQueueKind, clusterQueueKind, workloadKind, queueKind, podGroupKind, classKind)
}

// However many wait in a Queue, the first of them are told.
func TestPlacesOfHugeQueuesAreBounded(t *testing.T) {
	v := volcano{jobs: map[name]*Job{}, queued: map[string]map[name]*Job{}}
	for i := range mostPlaces + 10 {
		o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"namespace":"a","name":"%d","resourceVersion":"1","creationTimestamp":"2026-01-01T00:00:00Z"}}`, 100_000+i))
		if err != nil {
			t.Fatal(err)
		}
		v.put(newPodGroup(o), 0)
	}
	if found := placesOf(v.waiting("default")); len(found) != mostPlaces || found[0].Name != "100000" || found[mostPlaces-1].Whole != mostPlaces {
		t.Errorf("%d places: from %+v", len(found), found[0])
	}
}
