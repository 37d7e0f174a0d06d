package recorder

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/jobs"
)

// A job is a part of what is there as it names it, in its namespace, or was recorded so; of nothing
// else, and only for as long as it says so. Whoever invents a parent hinders no other job.
func TestAJobIsAPartOfTheTopmostThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		world.api.Serve(apitest.Widgets, true)
		r := startOf(t, world.api.Connect(t), db, "r", ring, apitest.Jobs, nil, "widgets.example.org")
		defer r.stop()
		widget := func(name string, more ...string) jobs.Ref {
			world.api.Put("widgets", "n/"+name, more...)
			return jobs.Ref{Resource: "widgets.example.org", Name: name, UID: world.api.UID("widgets", "n/"+name)}
		}
		of := func(ref jobs.Ref) string { return controlledBy("example.org/v1", "Widget", ref.Name, ref.UID) }
		ofJob := func(name string) string {
			return controlledBy("batch/v1", "Job", name, world.api.UID("jobs", "n/"+name))
		}
		none := jobs.Ref{}
		top := widget("top")
		middle := widget("middle", of(top))
		gone, never, former := widget("gone"), widget("never"), widget("former")
		now := jobs.At(time.Now())
		db.set(func() {
			db.of[gone], db.of[former] = 3, 3
			db.deleted = map[jobs.Ref]jobs.Time{gone: now + 60_000, former: now - 60_000}
		})
		world.api.Delete("widgets", "n/gone", "n/never", "n/former")
		settle()
		is := func(key, when string, state jobs.State, owner string, want jobs.Ref) {
			t.Helper()
			world.api.Put("jobs", key, append(slices.Clone(lives[state]), owner, "metadata.creationTimestamp="+now.Std().Format(time.RFC3339))...)
			time.Sleep(time.Second)
			synctest.Wait()
			var job *jobs.Job
			if db.set(func() { job = db.jobs[world.api.UID("jobs", key)] }); job == nil || job.State != state || job.Parent != want {
				t.Errorf("%s, %s: %+v, not a part of %+v", key, when, job, want)
			}
		}
		is("n/part", "whose parent is a part itself", jobs.Pending, of(middle), top)
		is("n/part", "again", jobs.Running, of(middle), top)
		is("n/part", "orphaned", jobs.Succeeded, "", none)
		is("n/adopted", "before", jobs.Pending, "", none)
		is("n/adopted", "afterwards", jobs.Running, of(top), top)
		is("n/grandchild", "of a job of a job", jobs.Running, ofJob("adopted"), top)
		is("n/forged", "with an invented uid", jobs.Running, of(jobs.Ref{Name: "top", UID: "invented"}), none)
		is("n/named", "with another name", jobs.Running, of(jobs.Ref{Name: "middle", UID: top.UID}), none)
		is("m/elsewhere", "in another namespace", jobs.Running, of(top), none)
		is("n/late", "of what was recorded", jobs.Running, of(gone), gone)
		is("m/late", "of what was recorded in another namespace", jobs.Running, of(gone), none)
		is("n/heir", "of what was in a former namespace", jobs.Running, of(former), none)
		is("n/lost", "of what was not recorded", jobs.Running, of(never), none)
		is("n/zero", "with what no database takes", jobs.Running, of(jobs.Ref{Name: "top", UID: "a\x00b"}), none)
		is("n/a", "before the other is there", jobs.Pending, "", none)
		is("n/b", "controlled by the other", jobs.Pending, ofJob("a"), jobs.Ref{Resource: "jobs.batch", Name: "a", UID: world.api.UID("jobs", "n/a")})
		is("n/a", "controlled by what it controls", jobs.Running, ofJob("b"), none)
		is("n/b", "likewise", jobs.Running, ofJob("a"), none)
		db.set(func() {
			if db.refused > 0 {
				t.Errorf("%d questions that a database does not take", db.refused)
			}
		})
	})
}

// What a first start finds is a part, too, although nothing of it was seen to happen; and what
// controls it may be read later than it is.
func TestPartsAreFoundAtAFirstStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWorld()
		world.api.Serve(apitest.Widgets, true)
		world.api.Put("widgets", "n/w")
		world.api.Put("jobs", "n/a", append(slices.Clone(lives[jobs.Succeeded]), controlledBy("example.org/v1", "Widget", "w", world.api.UID("widgets", "n/w")))...)
		r := startOf(t, world.api.Connect(t), db, "r", ring, apitest.Jobs, nil, "widgets.example.org")
		defer r.stop()
		settle()
		var job *jobs.Job
		if db.set(func() { job = db.jobs[world.api.UID("jobs", "n/a")] }); job == nil || job.Parent.Name != "w" {
			t.Errorf("%+v", job)
		}
	})
}
