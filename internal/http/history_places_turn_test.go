package http

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/historyapi"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/wire"
)

// Where jobs stand in their queues may take a second to be found out: nobody waits for a processor while a page of the history
// waits for that, also not in the middle of the page.
func TestAPageThatWaitsForPlacesHoldsNoTurn(t *testing.T) {
	c := newChronicle(t)
	for i := range 130 {
		c.lives(fmt.Sprint("a/j", i), "alice", "line", jobs.Queued)
	}
	pages := runtime.GOMAXPROCS(0)
	waiting, found := make(chan struct{}, pages), make(chan struct{})
	c.server.jobHistory = historyapi.New(historyapi.Options{
		Jobs: c.past, Access: c.server.access, Turns: c.server.turns, Processors: c.server.processors, WriteTimeout: time.Minute,
		Places: func(auth.Identity, *cache.Kinds, string) func(context.Context, []*jobs.Job) map[string]*wire.Place {
			calls := 0
			return func(context.Context, []*jobs.Job) map[string]*wire.Place {
				if calls++; calls == 2 {
					waiting <- struct{}{}
					<-found
				}
				return nil
			}
		},
	})
	var asking sync.WaitGroup
	defer asking.Wait()
	defer close(found)
	for i := range pages {
		asking.Go(func() { c.get(allJobs+"?limit=1000", fmt.Sprintf("Authorization: Bearer user-%d", i)) })
	}
	for range pages {
		select {
		case <-waiting:
		case <-time.After(time.Minute):
			t.Fatal("no page looks for places twice")
		}
	}
	soon, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	release, err := c.server.processors.Take(soon, "bob")
	if err != nil {
		t.Fatalf("while %d pages wait for places, nobody else's turn comes: %v", pages, err)
	}
	release()
}
