package http

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/historyapi"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// hides writes jobs of another namespace, a second apart each, with one of namespace a among 1500.
func (c *chronicle) hides(n int) {
	c.t.Helper()
	b := store.Batch{To: c.log.Version + 1}
	for _, namespace := range []string{"a", "b"} {
		c.api.Put("namespaces", namespace)
	}
	for i := range n {
		c.at += 1000
		namespace := "b"
		if i%1500 == 0 {
			namespace = "a"
		}
		job, transition := jobs.Next(nil, jobs.Seen{
			ObjectID: jobs.ObjectID{UID: fmt.Sprintf("uid-%05d", i), Namespace: namespace, Name: fmt.Sprintf("job-%05d", i)}, Version: b.To, Created: c.at, Observed: c.at,
			Said: jobs.Said{State: jobs.Running},
		})
		job.NamespaceUID = c.api.UID("namespaces", namespace)
		transition.NamespaceUID = job.NamespaceUID
		b.Jobs, b.Transitions = append(b.Jobs, job), append(b.Transitions, transition)
	}
	var err error
	if c.log, err = c.db.Write(c.t.Context(), c.log, b); err != nil {
		c.t.Fatal(err)
	}
}

// Each page of a search ends after the first rows that it has looked at: from page to page it comes to the end all the same, tells
// everything once, and its tokens do not tell of when there were jobs that the caller may not see.
func TestAnUnfinishedSearchComesToItsEnd(t *testing.T) {
	c := newChronicle(t)
	hour := strconv.FormatInt(int64(c.at), 10)[:6] // or so
	c.hides(3600)
	some := []string{"a"} // and so many others that none of them leads
	for i := range 150 {
		some = append(some, fmt.Sprint("c", i))
	}
	c.access.permit("narrow", auth.Scope{Namespaces: some})
	c.server.jobHistory = historyapi.New(historyapi.Options{
		Jobs: c.past, Access: c.server.access, Turns: c.server.turns, Processors: c.server.processors, WriteTimeout: time.Minute, SearchWithin: time.Nanosecond,
	})
	for _, query := range []string{"?search=job-0", "?view=transitions&search=job-0"} {
		for user, want := range map[string]int{"alice": 3600, "narrow": 3} {
			told, empty, next := map[string]int{}, 0, ""
			for pages := 0; ; pages++ {
				if pages > 100 {
					t.Fatalf("%s: %s is told %d on 100 pages", query, user, len(told))
				}
				path := allJobs + query + "&limit=1000"
				if next != "" {
					path += "&continue=" + next
				}
				items, rest := itemsOf(t, c.get(path, "Authorization: Bearer "+user))
				for _, item := range items {
					told[item]++
				}
				if next = rest; next == "" {
					break
				}
				if len(items) == 0 {
					empty++
				}
				raw, err := base64.RawURLEncoding.DecodeString(next)
				if user == "narrow" && (err != nil || !strings.Contains(string(raw), `"l":"`) && !strings.Contains(string(raw), `"r":"`) || strings.Contains(string(raw), hour)) {
					t.Errorf("%s: a token is %s, %v", query, raw, err)
				}
			}
			if len(told) != want {
				t.Errorf("%s: %s is told %d, not %d", query, user, len(told), want)
			}
			for item, times := range told {
				if times != 1 {
					t.Errorf("%s: %s is told %s %d times", query, user, item, times)
				}
			}
			if user == "narrow" && empty == 0 {
				t.Errorf("%s: no page was empty, so none went on where nothing was found", query)
			}
		}
	}
}
