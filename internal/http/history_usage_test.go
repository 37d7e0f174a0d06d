package http

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// uses checks what a user is told of usage: the items, with times as hours after a moment.
func (c *chronicle) uses(query, user string, origin jobs.Time, want ...string) {
	c.t.Helper()
	for i, item := range want {
		for strings.Contains(item, "@") {
			before, after, _ := strings.Cut(item, "@")
			hours, rest, _ := strings.Cut(after, "@")
			var n int
			fmt.Sscan(hours, &n)
			item = before + (origin + jobs.Time(n*3_600_000)).Std().Format(time.RFC3339) + rest
		}
		want[i] = item
	}
	a := c.get(allJobs+"?view=usage&"+query, "Authorization: Bearer "+user)
	if text := `{"items":[` + strings.Join(want, ",") + `],"continue":""}` + "\n"; a.code != 200 || a.body != text {
		c.t.Errorf("%s: %s is told %d %s, not %s", query, user, a.code, a.body, text)
	}
}

// spread is how so many times are spread that clients are told.
func spread(count, half, longest int) string {
	return fmt.Sprintf(`{"count":%d,"p50":%d,"p90":%[3]d,"max":%[3]d}`, count, half, longest)
}

// Usage counts jobs where they were created, and hours where they ran, for those whom the caller
// may see, and those that are asked for.
func TestHistorySumsUpWhatIsUsed(t *testing.T) {
	c := newChronicle(t)
	origin := c.at
	for range 3 { // all of one time
		c.at = origin - 60_000
		c.lives("a/one", "alice", "gold", jobs.Submitted, jobs.Running, jobs.Succeeded)
	}
	c.at = origin - 60_000
	c.lives("b/two", "bob", "", jobs.Running, jobs.Pending, jobs.Running, jobs.Deleted)
	since := "since=" + url.QueryEscape(origin.Std().Format(time.RFC3339))
	hour := spread(3, 3600, 3600)
	a := `{"key":"a","from":null,"jobs":3,"waitedSeconds":` + hour + `,"ranSeconds":` + hour + `,"cpuHours":6,"memoryHours":0,"gpuHours":0,"hoursUnknown":0}`
	b := `{"key":"b","from":null,"jobs":1,"waitedSeconds":` + spread(1, 0, 0) + `,"ranSeconds":` + spread(1, 7200, 7200) + `,"cpuHours":4,"memoryHours":0,"gpuHours":0,"hoursUnknown":0}`
	c.uses("", "alice", 0, a, b)
	c.uses("by=namespace&owner=bob", "alice", 0, b)
	c.uses("state=Deleted&by=state", "alice", 0, strings.Replace(b, `"b"`, `"Deleted"`, 1))
	c.uses("by=queue&owner=me", "alice", 0, strings.Replace(a, `"a"`, `"gold"`, 1))
	c.uses("by=resource&"+since, "alice", origin,
		`{"key":"jobs.batch","from":"@0@","jobs":4,"waitedSeconds":`+spread(4, 3600, 3600)+`,"ranSeconds":`+spread(4, 3600, 7200)+`,"cpuHours":10,"memoryHours":0,"gpuHours":0,"hoursUnknown":0}`)
	none := `"jobs":0,"waitedSeconds":null,"ranSeconds":null,`
	c.uses("step=1h&by=owner&owner=bob&"+since, "alice", origin, strings.Replace(strings.Replace(strings.Replace(b, `"b"`, `"bob"`, 1), "null", `"@0@"`, 1), `"cpuHours":4`, `"cpuHours":2`, 1),
		`{"key":"bob","from":"@2@",`+none+`"cpuHours":2,"memoryHours":0,"gpuHours":0,"hoursUnknown":0}`)
	c.uses("until=200h", "alice", 0)
	c.access.permit("narrow", auth.Scope{Namespaces: []string{"b"}})
	c.uses("", "narrow", 0, b)
	c.uses("owner=alice", "narrow", 0)
	for query, want := range map[string]string{
		"view=usage&by=name": "by: ", "view=usage&by=": "by: ", "view=usage&by=owner&by=queue": "by: ", "view=usage&step=1h": "step: needs since", "view=usage&since=2h&step=1s": "step: ",
		"view=usage&since=2000h&step=1h": "2000 steps", "view=usage&since=2h&step=x": "step: ", "view=usage&limit=3": "limit: ", "view=usage&continue=x": "continue: ", "by=owner": "by: ",
		"view=transitions&step=1h": "step: ",
	} {
		if a := c.get(allJobs + "?" + query); a.code != 400 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
}

// A job says what its pods have held by now and how they ended, wherever it is shown; one that
// nobody can know of says null.
func TestAJobSaysWhatItsPodsComeTo(t *testing.T) {
	p := newPods(t)
	before := p.lives("a/before", "bob", "", jobs.Running, jobs.Succeeded)
	if err := p.db.Began(t.Context(), p.log, p.at+1); err != nil {
		t.Fatal(err)
	}
	one, none := p.lives("a/one", "bob", "", jobs.Running), p.lives("a/none", "bob", "", jobs.Pending)
	var runs []*store.Run
	for i, reason := range []string{jobs.Preempted, jobs.OOMKilled, jobs.Completed, jobs.Removed, ""} {
		run := &store.Run{Of: p.chronicle.log.ID, Run: &jobs.Run{
			ObjectID: jobs.ObjectID{UID: fmt.Sprint("pod-", i), Namespace: "a", Name: fmt.Sprint("pod-", i)}, Job: jobs.Ref{Resource: "jobs.batch", Name: "one", UID: one}, Created: p.at,
			Scheduled: p.at, Ended: p.at + 3_600_000, Reason: reason, Requests: map[string]string{"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": "1"},
		}}
		if reason == "" {
			run.Scheduled, run.Ended = 0, 0
		}
		runs = append(runs, run)
	}
	var err error
	if p.log, err = p.db.Write(t.Context(), p.log, store.Batch{To: 1, Runs: runs}); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[string]string{
		one:    `"hours":{"cpu":6,"memory":8,"gpu":4},"podFailures":2,"preemptions":1,"podCount":5`,
		none:   `"hours":{"cpu":0,"memory":0,"gpu":0},"podFailures":0,"preemptions":0,"podCount":0`,
		before: `"hours":null,"podFailures":null,"preemptions":null,"podCount":null`,
	} {
		for _, path := range []string{allJobs, "/history/apis/batch/v1/namespaces/a/jobs"} {
			if a := p.get(path + "?uid=" + uid); a.code != 200 || !strings.Contains(a.body, want) {
				t.Errorf("%s: %d %s, not %s", uid, a.code, a.body, want)
			}
		}
	}
	var page struct {
		Items []struct{ Pods []struct{ Name string } }
	}
	for query, want := range map[string]string{
		"?uid=" + one: "[{[{pod-4} {pod-3} {pod-2} {pod-1} {pod-0}]}]", "/one?since=2000h&uid=" + one: "[{[{pod-4} {pod-3} {pod-2} {pod-1} {pod-0}]}]", "?uid=" + none: "[{[]}]", "/one": "[{[]}]",
	} {
		page.Items = nil
		a := p.get("/history/apis/batch/v1/namespaces/a/jobs" + query)
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || fmt.Sprint(page.Items) != want || strings.Contains(a.body, `"pods":`) != strings.Contains(query, "uid=") {
			t.Errorf("%s: %d %s %v", query, a.code, a.body, err)
		}
	}
	since := "since=" + url.QueryEscape((p.at + 1_800_000).Std().Format(time.RFC3339Nano))
	if a := p.get(allJobs + "?view=usage&by=resource&uid=" + one + "&" + since); !strings.Contains(a.body, `"jobs":0,"waitedSeconds":null,"ranSeconds":null,"cpuHours":3,"memoryHours":4,"gpuHours":2,"hoursUnknown":0}`) {
		t.Errorf("half of it is %s", a.body)
	}
}

// Ends are counted in the steps in which jobs ended, for those whom the caller may see.
func TestHistoryCountsEnds(t *testing.T) {
	c := newChronicle(t)
	origin := c.at
	for range 2 {
		c.at = origin - 60_000
		c.lives("a/one", "alice", "gold", jobs.Running, jobs.Succeeded, jobs.Deleted)
	}
	c.at = origin - 60_000
	c.why = &jobs.Cause{Reason: "OOMKilled", Text: "out of memory"}
	c.lives("b/two", "bob", "", jobs.Pending, jobs.Running, jobs.Failed)
	c.at, c.why = origin-60_000, nil
	c.lives("b/three", "bob", "", jobs.Running, jobs.Cancelled, jobs.Running, jobs.Failed)
	text := func(hours int) string { return (origin + jobs.Time(hours)*3_600_000).Std().Format(time.RFC3339) }
	since := "&since=" + url.QueryEscape(text(0))
	answers := func(user, query string, items ...string) {
		t.Helper()
		a := c.get(allJobs+"?view=ends&"+query, "Authorization: Bearer "+user)
		if want := `{"items":[` + strings.Join(items, ",") + `],"continue":""}` + "\n"; a.code != 200 || a.body != want {
			t.Errorf("%s: %d %s, not %s", query, a.code, a.body, want)
		}
	}
	item := func(key, from string, succeeded, failed, cancelled int) string {
		if from != "null" {
			from = `"` + from + `"`
		}
		return fmt.Sprintf(`{"key":%q,"from":%s,"succeeded":%d,"failed":%d,"cancelled":%d}`, key, from, succeeded, failed, cancelled)
	}
	answers("alice", "", item("a", "null", 2, 0, 0), item("b", "null", 0, 2, 1))
	answers("alice", "by=resource&step=1h"+since, item("jobs.batch", text(1), 2, 0, 1), item("jobs.batch", text(2), 0, 1, 0), item("jobs.batch", text(3), 0, 1, 0))
	answers("alice", "by=owner&owner=me", item("alice", "null", 2, 0, 0))
	answers("alice", "by=queue&queue=gold", item("gold", "null", 2, 0, 0))
	answers("alice", "by=cause", item("", "null", 2, 1, 1), item("OOMKilled", "null", 0, 1, 0))
	answers("alice", "until="+url.QueryEscape(text(2))+since, item("a", text(0), 2, 0, 0), item("b", text(0), 0, 0, 1))
	c.access.permit("narrow", auth.Scope{Namespaces: []string{"a"}})
	answers("narrow", "", item("a", "null", 2, 0, 0))
	for _, query := range []string{"by=state", "state=Failed", "limit=3", "step=1h", "continue=x"} {
		if a := c.get(allJobs + "?view=ends&" + query); a.code != 400 {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
}
