package http

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// links are what a user is told of jobs' parents and children, as name>parent:children.
func (c *chronicle) links(path, user string) string {
	c.t.Helper()
	a := c.get(path, "Authorization: Bearer "+user)
	var page struct {
		Items []struct {
			Name     string
			Parent   *struct{ Resource, Name, UID string }
			Children *int
		}
	}
	if err := json.Unmarshal([]byte(a.body), &page); a.code != 200 || err != nil {
		c.t.Fatalf("%s: %d %s %v", path, a.code, a.body, err)
	}
	var told []string
	for _, i := range page.Items {
		text := i.Name
		if i.Parent != nil {
			text += ">" + i.Parent.Name
		}
		if i.Children == nil {
			c.t.Errorf("%s: the children of %s are not counted", path, i.Name)
			continue
		}
		told = append(told, fmt.Sprint(text, ":", *i.Children))
	}
	return strings.Join(told, " ")
}

// Of other kinds a caller is told no more than these kinds' own lists would.
func TestPartsAreToldAsFarAsTheirKindsMayBeSeen(t *testing.T) {
	c := newChronicle(t)
	ofJobs := c.log
	var err error
	if c.log, err = c.db.Take(t.Context(), store.LogName{Cluster: c.log.Cluster, Resource: goneKind}, "default", "test", time.Hour); err != nil {
		t.Fatal(err)
	}
	if c.log, err = c.db.Write(t.Context(), c.log, store.Batch{To: 100}); err != nil { // or uids would come twice
		t.Fatal(err)
	}
	first, second := c.lives("a/first", "alice", "", jobs.Running, jobs.Succeeded), c.lives("b/second", "bob", "", jobs.Running, jobs.Succeeded)
	c.log = ofJobs
	var uids []string
	for i, part := range []string{"a/p1", "a/p2", "b/q1", "a/alone"} {
		uid := c.lives(part, "alice", "", jobs.Running, jobs.Succeeded)
		uids = append(uids, uid)
		parent := jobs.Ref{Resource: goneKind, Name: "first", UID: first}
		if part == "b/q1" {
			parent = jobs.Ref{Resource: goneKind, Name: "second", UID: second}
		}
		if i == 3 {
			continue
		}
		living, err := c.db.Living(t.Context(), c.log)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range living {
			if job.UID == uid {
				job.Parent = parent
				if c.log, err = c.db.Write(t.Context(), c.log, store.Batch{To: c.log.Version + 1, Jobs: []*jobs.Job{job}}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	ofTraining := "/history/apis/kubeflow.org/v1/pytorchjobs"
	tells := func(path, user, want string) {
		t.Helper()
		if told := c.links(path, user); told != want {
			t.Errorf("%s: %s is told %q, not %q", path, user, told, want)
		}
	}
	tells(allJobs, "alice", "alone:0 q1>second:0 p2>first:0 p1>first:0")
	tells(ofTraining, "alice", "second:1 first:2")
	tells(allJobs+"?parent="+first, "alice", "p2>first:0 p1>first:0")
	tells(allJobs+"?parent="+first+","+second+"&limit=2", "alice", "q1>second:0 p2>first:0")
	tells(allJobs+"?parent=none", "alice", "")
	tells(allJobs+"?uid="+uids[0]+"&parent="+first, "alice", "p1>first:0") // with its pods, which name no parent
	c.access.set(func(a *fakeAuth) {
		a.decide = func(id auth.Identity, r auth.Request) (bool, error) {
			only := map[string]string{"jobs": "jobs", "training": "pytorchjobs"}[id.Username]
			return only == "" || r.Resource == only, nil
		}
	})
	tells(allJobs, "jobs", "alone:0 q1:0 p2:0 p1:0")
	tells(ofTraining, "training", "second:0 first:0")
	c.access.permit("narrow", auth.Scope{Namespaces: []string{"a"}})
	tells(allJobs, "narrow", "alone:0 p2>first:0 p1>first:0")
	tells(ofTraining, "narrow", "first:2")
	tells("/history/apis/kubeflow.org/v1/namespaces/a/pytorchjobs/first", "narrow", "first:2")
	c.access.permit("named", auth.Scope{Names: map[string][]string{"a": {"p1", "first"}}})
	tells(allJobs, "named", "p1>first:0")
	tells(ofTraining, "named", "first:1")
	for _, view := range []string{"transitions", "runs", "usage"} {
		if a := c.get(allJobs + "?parent=x&view=" + view); a.code != 400 || !strings.Contains(a.body, "parent: ") {
			t.Errorf("%s: %d %s", view, a.code, a.body)
		}
	}
	a := c.get(allJobs + "?view=usage&by=resource")
	if !strings.Contains(a.body, `"jobs":1,`) {
		t.Errorf("usage counts parts again: %s", a.body)
	}
	for path, want := range map[string]string{allJobs: `"succeeded":1,`, ofTraining: `"succeeded":2,`} {
		if a := c.get(path + "?view=ends&by=resource"); strings.Count(a.body, `"key"`) != 1 || !strings.Contains(a.body, want) {
			t.Errorf("the ends of jobs and of their parts are not those of the jobs: %s", a.body)
		}
	}
}
