package cluster_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
)

// Clients claim positions, and may invent them: one stream may have dozens of watches, each with a version of its
// own.
func TestMadeUpVersionsAreOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		api.Skip(100)
		c := api.Connect(t)
		newest := api.Version()
		api.Requests()
		var asking sync.WaitGroup
		for i := range uint64(64) {
			asking.Go(func() {
				if has, err := c.HasVersion(t.Context(), apitest.Pods, newest-31+i); err != nil || has != (i <= 31) {
					t.Errorf("version %d of %d: %v, %v", newest-31+i, newest, has, err)
				}
			})
		}
		asking.Wait()
		if asked := api.Requests(); len(asked) > 2 {
			t.Errorf("64 versions are %d questions: %q", len(asked), asked)
		}
	})
}

// The answer to a request that was already under way may be older than what the client was told elsewhere.
func TestVersionThatCameWithTheQuestionIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		c := api.Connect(t)
		var asking sync.WaitGroup
		for range 50 {
			time.Sleep(3 * time.Millisecond)
			api.Skip(1)
			version := api.Version()
			asking.Go(func() {
				began := time.Now()
				if has, err := c.HasVersion(t.Context(), apitest.Pods, version); err != nil || !has || time.Since(began) > 100*time.Millisecond {
					t.Errorf("version %d: %v, %v, after %v", version, has, err, time.Since(began))
				}
			})
		}
		asking.Wait()
		if asked := api.Requests(); len(asked) > 12 {
			t.Errorf("%d questions within 150 ms", len(asked))
		}
	})
}

func TestVersionThatALaggingUpstreamIsAboutToReachIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Pods)
		c := api.Connect(t)
		version := api.Version() + 5
		time.AfterFunc(500*time.Millisecond, func() { api.Skip(5) })
		if has, err := c.HasVersion(t.Context(), apitest.Pods, version); err != nil || !has {
			t.Errorf("%v, %v", has, err)
		}
		api.Away(true)
		if _, err := c.HasVersion(t.Context(), apitest.Pods, version+1); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("away: %v", err)
		}
	})
}
