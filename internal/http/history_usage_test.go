package http

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/history"
)

// uses checks what a user is told of usage: the items, with times as hours after a moment.
func (c *chronicle) uses(query, user string, origin history.Time, want ...string) {
	c.t.Helper()
	for i, item := range want {
		for strings.Contains(item, "@") {
			before, after, _ := strings.Cut(item, "@")
			hours, rest, _ := strings.Cut(after, "@")
			var n int
			fmt.Sscan(hours, &n)
			item = before + (origin + history.Time(n*3_600_000)).Std().Format(time.RFC3339) + rest
		}
		want[i] = item
	}
	a := c.get(allJobs+"?view=usage&"+query, "Authorization: Bearer "+user)
	if text := `{"items":[` + strings.Join(want, ",") + `],"continue":""}` + "\n"; a.code != 200 || a.body != text {
		c.t.Errorf("%s: %s is told %d %s, not %s", query, user, a.code, a.body, text)
	}
}

// Usage counts jobs where they were created, and hours where they ran, for those whom the caller may see, and those that are asked for.
func TestHistorySumsUpWhatIsUsed(t *testing.T) {
	c := newChronicle(t)
	origin := c.at
	for range 3 { // all of one time
		c.at = origin - 60_000
		c.lives("a/one", "alice", "gold", history.Submitted, history.Running, history.Succeeded)
	}
	c.at = origin - 60_000
	c.lives("b/two", "bob", "", history.Running, history.Pending, history.Running, history.Deleted)
	since := "since=" + url.QueryEscape(origin.Std().Format(time.RFC3339))
	hour := `{"p50":3600,"p90":3600,"max":3600}`
	a := `{"key":"a","from":null,"jobs":3,"waitedSeconds":` + hour + `,"ranSeconds":` + hour + `,"cpuHours":6,"gpuHours":0}`
	b := `{"key":"b","from":null,"jobs":1,"waitedSeconds":{"p50":0,"p90":0,"max":0},"ranSeconds":{"p50":7200,"p90":7200,"max":7200},"cpuHours":4,"gpuHours":0}`
	c.uses("", "alice", 0, a, b)
	c.uses("by=namespace&owner=bob", "alice", 0, b)
	c.uses("state=Deleted&by=state", "alice", 0, strings.Replace(b, `"b"`, `"Deleted"`, 1))
	c.uses("by=queue&owner=me", "alice", 0, strings.Replace(a, `"a"`, `"gold"`, 1))
	c.uses("by=resource&"+since, "alice", origin,
		`{"key":"jobs.batch","from":"@0@","jobs":4,"waitedSeconds":{"p50":3600,"p90":3600,"max":3600},"ranSeconds":{"p50":3600,"p90":7200,"max":7200},"cpuHours":10,"gpuHours":0}`)
	none := `"jobs":0,"waitedSeconds":null,"ranSeconds":null,`
	c.uses("step=1h&by=owner&owner=bob&"+since, "alice", origin, strings.Replace(strings.Replace(strings.Replace(b, `"b"`, `"bob"`, 1), "null", `"@0@"`, 1), `"cpuHours":4`, `"cpuHours":2`, 1),
		`{"key":"bob","from":"@2@",`+none+`"cpuHours":2,"gpuHours":0}`)
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
