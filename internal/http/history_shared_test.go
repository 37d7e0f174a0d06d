package http

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// Usage is read in its quotaOwners' turns: one user's questions keep nobody waiting, however many there are.
func TestUsageOfOneUserDelaysNobodyElse(t *testing.T) {
	c := newChronicle(t, options(func(o *Options) { o.Limits.RequestsPerUser = 16 }))
	for range 2 {
		c.many(1000)
	}
	usage := allJobs + "?view=usage&by=owner"
	began := time.Now()
	if a := c.get(usage, "Authorization: Bearer good"); a.code != 200 {
		t.Fatal(a.code, a.body)
	}
	alone := time.Since(began)
	var answered atomic.Int64
	var stop atomic.Bool
	var asking sync.WaitGroup
	for range 16 {
		asking.Go(func() {
			for !stop.Load() {
				if c.get(usage, "Authorization: Bearer mallory").code == 200 {
					answered.Add(1)
				}
			}
		})
	}
	time.Sleep(5 * alone)
	var worst int64
	var slowest time.Duration
	for range 5 {
		before := answered.Load()
		began = time.Now()
		c.get(usage, "Authorization: Bearer good")
		worst, slowest = max(worst, answered.Load()-before), max(slowest, time.Since(began))
	}
	stop.Store(true)
	asking.Wait()
	t.Logf("alone %v; beside a user who asks 16 at a time %v, after %d of that user's", alone, slowest, worst)
	if worst > 6 {
		t.Errorf("%d questions of another user are answered before a good user's one", worst)
	}
}

// many writes finished jobs at once.
func (c *chronicle) many(n int) {
	c.t.Helper()
	batch := store.Batch{To: c.log.Version + 1}
	for i := range n {
		var job *jobs.Job
		for step, state := range []jobs.State{jobs.Running, jobs.Succeeded} {
			next, transition := jobs.Next(job, jobs.Seen{
				ObjectID: jobs.ObjectID{UID: fmt.Sprint("many-", c.log.Seq, "-", i), Namespace: "a", Name: fmt.Sprint("j", i)},
				Version:  batch.To, Created: c.at, Observed: c.at + jobs.Time(step*1000), Said: jobs.Said{State: state, Owner: fmt.Sprint("u", i%500), Requests: map[string]string{"cpu": fmt.Sprint(i % 7)}},
			})
			job, batch.Transitions = next, append(batch.Transitions, transition)
		}
		batch.Jobs = append(batch.Jobs, job)
	}
	var err error
	if c.log, err = c.db.Write(c.t.Context(), c.log, batch); err != nil {
		c.t.Fatal(err)
	}
}
