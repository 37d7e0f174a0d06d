package http

import (
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// A cause is told with the job and with the transition, and both are found by its reason; a job
// that was deleted says why it had ended. Usage counts ends by it.
func TestJobsAreFoundByWhyTheyEnded(t *testing.T) {
	c := newChronicle(t)
	c.why = &jobs.Cause{Text: "main was OOM-killed", Reason: jobs.OOMKilled, Pods: 1}
	origin := c.at
	for _, name := range []string{"a/failed", "a/removed", "b/good", "b/reopened"} {
		c.at = origin
		states := map[string][]jobs.State{
			"a/failed": {jobs.Running, jobs.Failed}, "a/removed": {jobs.Running, jobs.Failed, jobs.Deleted},
			"b/good": {jobs.Running, jobs.Succeeded, jobs.Deleted}, "b/reopened": {jobs.Running, jobs.Failed, jobs.Running},
		}[name]
		c.lives(name, "alice", "", states...)
	}
	for path, want := range map[string]string{
		allJobs + "?cause=OOMKilled":                               "removed:Deleted failed:Failed",
		allJobs + "?cause=OOMKilled,Evicted&state=Failed":          "failed:Failed",
		allJobs + "?cause=Evicted":                                 "",
		allJobs + "?cause=" + escape("' OR 1=1"):                   "",
		allJobs + "?view=transitions&cause=OOMKilled":              "reopened:Running→Failed removed:Running→Failed failed:Running→Failed",
		allJobs + "?view=transitions&cause=OOMKilled&state=Failed": "reopened:Running→Failed removed:Running→Failed failed:Running→Failed",
		allJobs + "?view=transitions&cause=None":                   "",
	} {
		c.tells(path, "alice", want)
	}
	cause := `"cause":{"text":"main was OOM-killed","reason":"OOMKilled","container":"","exitCode":null,"signal":null,"pod":"","node":"","pods":1}`
	for path, n := range map[string]int{allJobs: 2, allJobs + "?view=transitions": 3} {
		if a := c.get(path); strings.Count(a.body, cause) != n {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	c.uses("by=cause&owner=alice&state=Failed,Deleted", "alice", 0,
		`{"key":"","from":null,"jobs":1,"waitedSeconds":`+spread(1, 0, 0)+`,"ranSeconds":`+spread(1, 3600, 3600)+`,"cpuHours":2,"memoryHours":0,"gpuHours":0,"hoursUnknown":0}`,
		`{"key":"OOMKilled","from":null,"jobs":2,"waitedSeconds":`+spread(2, 0, 0)+`,"ranSeconds":`+spread(2, 3600, 3600)+`,"cpuHours":4,"memoryHours":0,"gpuHours":0,"hoursUnknown":0}`)
	for _, path := range []string{"?view=runs&cause=OOMKilled", "?cause=", "?cause=" + escape("\x00"), "?view=usage&by=causes"} {
		if a := c.get(allJobs + path); a.code != 400 {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
}

// A stream of a cause tells what was known of it when it passed: what becomes known later takes no
// number, so nothing could tell it without telling others twice. Pages, and clients that begin,
// have all of it.
func TestAStreamOfACauseTellsWhatWasKnown(t *testing.T) {
	c := newChronicle(t)
	s := c.stream(allJobs + "?cause=OOMKilled&limit=10")
	s.expect("synced")
	later := c.lives("a/later", "alice", "", jobs.Running, jobs.Failed)
	version := c.log.Version
	c.why = &jobs.Cause{Text: "main was OOM-killed", Reason: jobs.OOMKilled, Pods: 1}
	c.lives("a/once", "alice", "", jobs.Running, jobs.Failed)
	if names, _ := s.jobs(1); names[0] != "once" {
		t.Errorf("%q is told first", names)
	}
	var err error
	if c.log, err = c.db.Write(t.Context(), c.log, store.Batch{To: c.log.Version + 1, Causes: []store.KnownCause{{UID: later, Version: version, To: jobs.Failed, Cause: c.why}}}); err != nil {
		t.Fatal(err)
	}
	c.lives("a/last", "alice", "", jobs.Running, jobs.Failed)
	if names, _ := s.jobs(1); names[0] != "last" {
		t.Errorf("%q is told behind it", names)
	}
	c.tells(allJobs+"?view=transitions&cause=OOMKilled", "alice", "last:Running→Failed once:Running→Failed later:Running→Failed")
	fresh := c.stream(allJobs + "?cause=OOMKilled&limit=10")
	if names, _ := fresh.jobs(3); strings.Join(names, " ") != "later once last" {
		t.Errorf("a new client is told %q", names)
	}
}
