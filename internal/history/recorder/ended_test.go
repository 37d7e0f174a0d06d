package recorder

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/store"
)

// ends are what a recorder tells of the ends of jobs.
type ends struct {
	mu   sync.Mutex
	told []string
	db   *memory
	t    *testing.T
}

func (e *ends) Ended(_ store.Log, jobs []*history.Job, again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range jobs {
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
		world.put("old", history.Running)
		world.put("old", history.Succeeded)
		world.put("deleted", history.Running)
		world.remove("deleted")
		settle()
		is("old Succeeded false")
		world.put("train", history.Running)
		world.put("train", history.Failed)
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
