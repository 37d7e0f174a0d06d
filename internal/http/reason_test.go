package http

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/jobs"
)

// A page shows something else where a gateway keeps no history than where a job is unknown, and both are 404.
func TestReasonTellsApartWhatHasTheSameStatus(t *testing.T) {
	c := newChronicle(t)
	uid := c.lives("a/train", "alice", "", jobs.Running, jobs.Failed)
	c.access.permit("nobody", auth.Scope{})
	job := "/history/apis/batch/v1/namespaces/a/jobs/train"
	none := newGateway(t)
	onStream := func(path string) string { return "/stream?past=" + url.QueryEscape(path) }
	reasonOf := func(a answer) string {
		var problem struct{ Reason string }
		_ = json.Unmarshal([]byte(a.body), &problem) // what is none has no reason
		return problem.Reason
	}
	bob, events := "Authorization: Bearer bob", "Accept: text/event-stream"
	for name, test := range map[string]struct {
		a      answer
		code   int
		reason string
	}{
		"no history":                          {none.get(allJobs), 404, "NotEnabled"},
		"no history, as a stream":             {none.get(allJobs, events), 404, "NotEnabled"},
		"no history, among watches":           {none.get(onStream(allJobs), events), 404, "NotEnabled"},
		"no notifications":                    {none.get("/notifications"), 404, "NotEnabled"},
		"no settings of notifications":        {none.get("/notifications/settings"), 404, "NotEnabled"},
		"no notifications, as a stream":       {none.get("/notifications", events), 404, "NotEnabled"},
		"no login":                            {none.get("/auth/login"), 404, "NotEnabled"},
		"a kind without a history":            {c.get("/history/api/v1/pods"), 404, "NotRecorded"},
		"a kind without one, among watches":   {c.get(onStream("/history/api/v1/pods"), events), 404, "NotRecorded"},
		"no history's address":                {c.get("/history/apis/batch/v1"), 404, "NotFound"},
		"no such cluster":                     {c.get("/history/clusters/none/apis/batch/v1/jobs"), 404, "NotFound"},
		"a log that is not kept":              {c.get(job+"?view=log&uid="+uid, bob, "Accept: text/plain"), 404, "NotKept"},
		"what a job was told, of another uid": {c.get(job+"?view=spec&uid=other", bob), 404, "NotKept"},
		"not permitted":                       {c.get(allJobs, "Authorization: Bearer nobody"), 403, "Forbidden"},
		"not permitted, logs":                 {c.get("/logs/api/v1/namespaces/a/pods/train", "Authorization: Bearer nobody", events), 403, "Forbidden"},
		"no log's address":                    {c.get("/logs/api/v1/nodes/one", events), 404, "NotFound"},
		"not understood":                      {c.get(allJobs + "?onwer=me"), 400, "BadRequest"},
		"nobody":                              {c.get(allJobs, "Authorization: "), 401, "Unauthorized"},
		"a stream that is none":               {c.get(onStream(allJobs), "Accept: text/html"), 406, "NotAcceptable"},
	} {
		if got := reasonOf(test.a); test.a.code != test.code || got != test.reason {
			t.Errorf("%s: %d %q, not %d %q: %s", name, test.a.code, got, test.code, test.reason, test.a.body)
		}
	}
}
