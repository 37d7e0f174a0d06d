package http

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/ratelimit"
	"github.com/kubecast/kubecast/internal/http/rest"
	"github.com/kubecast/kubecast/internal/visibility"
)

// manyPods are there before the cache begins to read.
func manyPods(n int) option {
	return before(func(api *apitest.API) {
		pad := "spec.pad=" + strings.Repeat("x", 2<<10)
		for i := range n {
			api.Put("pods", fmt.Sprintf("ns-%02d/pod-%05d", i%10, i), pad, fmt.Sprintf("spec.n:=%d", i))
		}
	})
}

// What a client has left is computed no further, in whatever it is.
func TestWhatClientsLeftIsNotComputedOn(t *testing.T) {
	g := newGateway(t, manyPods(2000), cached(streamOptions(), "pods"))
	g.eventually("pods are there", func() bool { return len(g.list("/api/v1/pods?fields=metadata.name").Items) == 2000 })
	store := g.kinds.All()[0]
	for name, query := range map[string]string{
		"selected": "fieldSelector=status.a!=x,status.b=y", "sorted": "sort=-spec.n&limit=1", "counted": "countBy=spec.n",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			looked := 0
			task := budget.NewTask(ctx, budget.NewQueue(1, 0, 0), "alice")
			step := func(bytes int) bool {
				if looked++; looked == 100 {
					cancel()
					time.Sleep(10 * time.Millisecond) // longer than a slice
				}
				return task.Step(bytes + 1<<20) // so that the clock is looked at
			}
			query := g.newRequest(ctx, "GET", "/api/v1/pods?"+query, nil).URL.Query()
			selector, err := cache.Paths{}.Selector("", query.Get("fieldSelector"))
			if err != nil {
				t.Fatal(err)
			}
			order, err := cache.Paths{}.Order(query.Get("sort"))
			if err != nil {
				t.Fatal(err)
			}
			objects := visibility.VisibleTarget{Target: visibility.Target{Resource: "pods"}}.List(store.Snapshot(), selector.Stepping(step), "", "")
			switch {
			case query.Has("countBy"):
				by, err := cache.Paths{}.Grouping(query.Get("countBy"))
				if err != nil {
					t.Fatal(err)
				}
				cache.CountBy(objects, by, task.Step)
			case order.String() != "":
				order.Sort(objects, task.Step)
			default:
				for range objects {
				}
			}
			if task.Err() == nil || looked > 101 {
				t.Errorf("%d objects were looked at, though the client left at the hundredth; error %v", looked, task.Err())
			}
		})
	}
}

// However many lists are sorted at once, what they take is bounded: one of each user is made at a
// time, and what is kept of them is accounted for.
func TestSortedListsAreBoundedInBytes(t *testing.T) {
	const pods, bound = 500, 1 << 20
	g := newGateway(t, manyPods(pods), cached(streamOptions(), "pods"))
	g.eventually("pods are there", func() bool { return len(g.list("/api/v1/pods?fields=metadata.name").Items) == pods })
	memory := budget.NewMemory(bound)
	g.server.rest = rest.New(rest.Options{
		Access: g.server.access, Processors: g.server.processors, Memory: memory, Turns: ratelimit.NewTurns(0, g.server.rates), WriteTimeout: time.Minute, SyncTimeout: time.Minute, Log: g.server.log,
	})
	var asking sync.WaitGroup
	for i := range 20 { // some 140 KB each
		asking.Go(func() {
			l := g.list(fmt.Sprintf("/api/v1/pods?limit=1&fieldSelector=metadata.name!%%3Dx%d&sort=spec.a,spec.b,spec.c,spec.d,spec.e,spec.f,spec.g,-spec.n", i))
			if len(l.Items) != 1 || l.Items[0].Metadata.Name != fmt.Sprintf("pod-%05d", pods-1) {
				t.Errorf("%+v", l.Items)
			}
		})
	}
	asking.Wait()
	if bytes, _ := memory.Held(); bytes > bound || bytes < bound/2 {
		t.Errorf("%d bytes are kept; at most %d may be, and there were more", bytes, bound)
	}
}
