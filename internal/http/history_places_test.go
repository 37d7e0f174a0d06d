package http

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// queueOf is the queue of a job of the history, as it is told.
func (g *gateway) queueOf(name, user string) string {
	g.t.Helper()
	var page struct {
		Items []struct {
			Name  string
			Queue json.RawMessage
		}
	}
	a := g.get("/history/apis/batch/v1/namespaces/a/jobs", "Authorization: Bearer "+user)
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.code != http.StatusOK {
		g.t.Fatalf("%d %s", a.code, a.body)
	}
	for _, j := range page.Items {
		if j.Name == name {
			return string(j.Queue)
		}
	}
	g.t.Fatalf("%s is not among %s", name, a.body)
	return ""
}

// A job of the history that waits says in which place, to whoever may list the queue. When it will start is told
// once the history has enough of how long such jobs waited and ran, and no sooner.
func TestJobsThatWaitSayTheirPlaceAndWhenTheyWillStart(t *testing.T) {
	k := &kueue{version: "v1beta2", lines: map[string]string{}}
	c := newChronicle(t, k.served())
	k.gateway = c.gateway
	c.access.set(func(a *fakeAuth) {
		a.decide = func(id auth.Identity, r auth.Request) (bool, error) {
			return id.Username != "bob" || r.Resource == "jobs", nil
		}
		a.strangers = []string{"bob"}
	})
	c.api.Put("clusterqueues", "whole", apitest.Set("spec.resourceGroups", []any{map[string]any{"flavors": flavors(map[string]any{"name": "cpu", "nominalQuota": 200})}}))
	c.lives("a/runs", "alice", "line", jobs.Queued, jobs.Running)
	c.lives("a/free", "alice", "", jobs.Queued)
	c.lives("a/elsewhere", "alice", "none", jobs.Queued)
	waits := func(name string) {
		uid := c.lives("a/"+name, "alice", "line", jobs.Queued)
		k.hostile("a", name, "line", map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true})
	}
	waits("first")
	waits("second")
	for name, want := range map[string]string{
		"first": `{"name":"line","position":1,"clusterPosition":1,"starts":null}`, "second": `{"name":"line","position":2,"clusterPosition":2,"starts":null}`,
		"runs": `"line"`, "free": `""`, "elsewhere": `"none"`,
	} {
		c.eventually(name+" is told as "+want, func() bool { return c.queueOf(name, "alice") == want })
	}
	if a := c.replica(t).get("/queues/a/line"); strings.Count(a.body, `"owner":"alice"`) != 2 {
		t.Errorf("the first answer of the queue does not say whose the jobs are: %s", a.body)
	}
	if got := c.queueOf("first", "bob"); got != `"line"` {
		t.Errorf("whoever may not list the queue is told %s", got)
	}
	for i := range 90 {
		c.at += 30 * 60_000
		c.lives(fmt.Sprintf("a/train-%d", i), "alice", "line", jobs.Queued, jobs.Running, jobs.Succeeded)
	}
	waits("train-x1")
	var told struct {
		Starts *struct {
			From, To   time.Time
			Confidence float64
		}
	}
	again := c.replica(t) // the history is read again after ten minutes only
	again.eventually("it is told when it starts", func() bool {
		_ = json.Unmarshal([]byte(again.queueOf("train-x1", "alice")), &told)
		return told.Starts != nil
	})
	if s := told.Starts; s.Confidence != 0.8 || s.To.Before(s.From) || s.From.Before(time.Now().Add(-time.Hour)) || s.To.After(time.Now().Add(48*time.Hour)) {
		t.Errorf("%+v", s)
	}
}

// Jobs whose queues are none take no places from those that wait in others.
func TestQueuesThatAreNoneTakeNoPlacesFromOthers(t *testing.T) {
	k := &kueue{version: "v1beta2", lines: map[string]string{}}
	c := newChronicle(t, k.served())
	k.gateway = c.gateway
	for i := range 8 {
		name, queue := fmt.Sprint("waits", i), fmt.Sprint("line", i)
		c.api.Put("localqueues", "a/"+queue, "spec.clusterQueue=whole")
		uid := c.lives("a/"+name, "alice", queue, jobs.Queued)
		k.hostile("a", name, queue, map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true})
	}
	for i := range 8 {
		c.lives(fmt.Sprint("a/elsewhere", i), "alice", fmt.Sprint("none", i), jobs.Queued)
	}
	for i := range 8 {
		want := fmt.Sprintf(`{"name":"line%d","position":1,"clusterPosition":%d,"starts":null}`, i, i+1)
		c.eventually(want, func() bool { return c.queueOf(fmt.Sprint("waits", i), "alice") == want })
	}
}

// What is known of when jobs of a queue start is learnt from jobs of all kinds in it: neither of these has enough by itself.
func TestAQueueIsLearntFromJobsOfAllKinds(t *testing.T) {
	k := &kueue{version: "v1beta2", lines: map[string]string{}}
	c := newChronicle(t, k.served())
	k.gateway = c.gateway
	c.api.Put("clusterqueues", "whole", apitest.Set("spec.resourceGroups", []any{map[string]any{"flavors": flavors(map[string]any{"name": "cpu", "nominalQuota": 200})}}))
	jobsLog := c.log
	identity, err := c.kinds.Cluster().Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	others, err := c.db.Take(t.Context(), store.LogName{Cluster: identity, Resource: goneKind}, "default", "test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * enough {
		c.at += 30 * 60_000
		if i%2 == 0 {
			c.log = jobsLog
		} else {
			c.log = others
		}
		c.lives(fmt.Sprintf("a/train-%d-%d", i%2, i), "alice", "line", jobs.Queued, jobs.Running, jobs.Succeeded)
		if i%2 == 0 {
			jobsLog = c.log
		} else {
			others = c.log
		}
	}
	c.log = jobsLog
	uid := c.lives("a/train-x1", "alice", "line", jobs.Queued)
	k.hostile("a", "train-x1", "line", map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "train-x1", "uid": uid, "controller": true})
	c.eventually("it is told when it starts", func() bool { return strings.Contains(c.queueOf("train-x1", "alice"), `"confidence":0.8`) })
}

// enough is how many jobs of each of two kinds are enough together, and too few alone.
const enough = 25
