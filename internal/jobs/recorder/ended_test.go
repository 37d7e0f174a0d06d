package recorder

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// ends are what a recorder tells of the ends of jobs.
type ends struct {
	mu   sync.Mutex
	told []string
	db   *memory
	t    *testing.T
}

func (e *ends) Ended(_ store.Log, jobList []*jobs.Job, again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range jobList {
		e.db.mu.Lock()
		if written := e.db.jobs[j.UID]; written == nil || written.Ended != j.Ended {
			e.t.Errorf("the end of %s is told before it is written", j.Name)
		}
		e.db.mu.Unlock()
		e.told = append(e.told, fmt.Sprintf("%s %s %v", j.Name, j.State, again))
	}
}

// What follows from an end is done by whoever recorded it, once it is written; if they are killed a
// moment later, whoever takes over is told of it again, and of none that has ended long before.
func TestEndsAreToldOnceTheyAreWrittenAndAgainAfterATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		told := &ends{db: db, t: t}
		begin := func(name string) *replica {
			return startOf(t, world.api.Connect(t), db, name, ring, apitest.Jobs, told.Ended)
		}
		is := func(want ...string) {
			t.Helper()
			told.mu.Lock()
			defer told.mu.Unlock()
			if fmt.Sprint(told.told) != fmt.Sprint(want) {
				t.Errorf("%q, not %q", told.told, want)
			}
			told.told = nil
		}
		r := begin("one")
		time.Sleep(time.Second)
		world.put("old", jobs.Running)
		world.put("old", jobs.Succeeded)
		world.put("deleted", jobs.Running)
		world.remove("deleted")
		settle()
		is("old Succeeded false")
		world.put("train", jobs.Running)
		world.put("train", jobs.Failed)
		time.Sleep(5 * time.Second)
		is("train Failed false")
		r.stop()
		r = begin("two")
		settle()
		is("train Failed true")
		r.stop()
		r = begin("three")
		settle()
		is()
		r.stop()
	})
}

// What a pod wrote can be read until it is gone. So that it fails, or is to be deleted, is told once
// it is written, and again when another recorder takes over while the pod is there. Nothing is told
// of pods that completed, never ran, or are gone.
func TestPodsThatEndAreToldWhileTheyAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newPodWorld()
		job := world.job(db, "train", true)
		owner := controlledBy("batch/v1", "Job", job.Name, job.UID)
		var mu sync.Mutex
		var told []string
		begin := func(name string) *replica {
			return startTelling(t, world.api.Connect(t), db, name, ring, apitest.Pods, Options{Ending: func(_ store.Log, pods []*store.Run, again bool) {
				mu.Lock()
				defer mu.Unlock()
				for _, pod := range pods {
					db.set(func() {
						if written, ok := db.runs[pod.UID]; !ok || written.EndVersion != pod.EndVersion || pod.Of != 7 {
							t.Errorf("%s is told before it is written", pod.Name)
						}
					})
					told = append(told, fmt.Sprint(pod.Name, " ", pod.Terminal(), " ", again))
				}
			}})
		}
		is := func(want ...string) {
			t.Helper()
			settle()
			mu.Lock()
			defer mu.Unlock()
			if slices.Sort(told); fmt.Sprint(told) != fmt.Sprint(want) {
				t.Errorf("%q, not %q", told, want)
			}
			told = nil
		}
		put := func(name, stage string, more ...string) {
			world.api.Put("pods", "n/"+name, append(append(slices.Clone(stages[stage]), owner), more...)...)
		}
		r := begin("one")
		for _, name := range []string{"preempted", "fails", "completes"} {
			put(name, "runs")
		}
		put("never-ran", "bound")
		is()
		deleting := `metadata.deletionTimestamp="2026-01-01T00:01:00Z"`
		put("preempted", "runs", deleting)
		put("never-ran", "bound", deleting)
		put("fails", "fails")
		put("completes", "is done")
		is("fails true false", "preempted false false")
		r.stop()
		r = begin("two")
		is("fails true true", "preempted false true")
		put("preempted", "fails", deleting)
		is("preempted true false")
		for _, name := range []string{"preempted", "fails", "never-ran", "completes"} {
			world.api.Delete("pods", "n/"+name)
		}
		is()
		r.stop()
		r = begin("three")
		is()
		r.stop()
	})
}
