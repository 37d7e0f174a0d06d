package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// keeps keeps something of a job.
func (c *chronicle) keeps(uid string, kind store.KeptKind, text string) {
	c.t.Helper()
	data, ok := store.Pack([]byte(text))
	if !ok {
		c.t.Fatal("it is too large")
	}
	if err := c.db.Keep(c.t.Context(), c.log, store.Kept{UID: uid, Kind: kind, At: c.at, Data: data}); err != nil {
		c.t.Fatal(err)
	}
}

// Where a namespace had used up its budget, callers who may see what would have been kept are told
// so, and nobody else is.
func TestWhatIsNotKeptForItsNamespacesBudgetIsToldSo(t *testing.T) {
	c := newChronicle(t)
	uid := c.lives("blue/train", "mallory", "", jobs.Running, jobs.Failed)
	poor, err := store.New(store.Options{Address: "sqlite", StateDir: filepath.Dir(c.file), KeepBudget: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer poor.Close()
	for _, kind := range []store.KeptKind{store.KeptSpec, store.KeptLog} {
		data, _ := store.Pack([]byte("secret-word"))
		if err := poor.Keep(t.Context(), c.log, store.Kept{UID: uid, Namespace: "blue", Kind: kind, At: c.at, Data: data}); !errors.Is(err, store.ErrOverBudget) {
			t.Fatal(err)
		}
	}
	c.access.permit("other", auth.Scope{Namespaces: []string{"red"}, Names: map[string][]string{"blue": {"other"}}})
	job := "/history/apis/batch/v1/namespaces/blue/jobs/train"
	for path, want := range map[string]string{
		job + "?view=spec&uid=" + uid:  "the spec of the job is not kept: its namespace had used up its budget (history.keepBudget)",
		job + "?view=log&uid=" + uid:   "the log of the job is not kept: its namespace had used up its budget (history.keepBudget)",
		job + "?view=spec&uid=nobodys": "there is no such job, or its spec is not kept",
	} {
		if a := c.get(path, "Accept: */*", "Authorization: Bearer bob"); a.code != 404 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
		if a := c.get(path, "Accept: */*", "Authorization: Bearer other"); a.code != 403 || strings.Contains(a.body, "budget") {
			t.Errorf("%s, of a stranger: %d %s", path, a.code, a.body)
		}
	}
	if spec, log := c.flag(job, "spec"), c.flag(job, "log"); spec != false || log != false {
		t.Errorf("the job says that they are kept: %v %v", spec, log)
	}
}

// flag is what a list says of a job's member.
func (c *chronicle) flag(path, member string) any {
	c.t.Helper()
	var page struct{ Items []map[string]any }
	if a := c.get(path); json.Unmarshal([]byte(a.body), &page) != nil || len(page.Items) != 1 {
		c.t.Fatalf("%s: %d %s", path, a.code, a.body)
	}
	return page.Items[0][member]
}

// A spec has what the object had, secrets in its environment included. It is shown to those who may
// get the object now, and nobody else learns whether there is one: not by another name or uid, in
// another namespace, after the namespace was made anew, or because somebody named them as its
// owner.
func TestASpecIsShownToWhoMayGetTheJob(t *testing.T) {
	c := newChronicle(t, options(func(o *Options) { o.SeeTheirOwn = true }))
	uid := c.lives("blue/train", "mallory", "", jobs.Running, jobs.Failed, jobs.Deleted)
	other := c.lives("blue/other", "mallory", "", jobs.Running, jobs.Failed)
	spec := `{"kind":"Job","spec":{"secret-word":true}}`
	c.keeps(uid, store.KeptSpec, spec)
	job := "/history/apis/batch/v1/namespaces/blue/jobs/train"
	path := job + "?view=spec&uid=" + uid
	c.access.permit("narrow", auth.Scope{Namespaces: []string{"blue"}})
	c.access.permit("by-name", auth.Scope{Names: map[string][]string{"blue": {"train"}}})
	c.access.permit("other", auth.Scope{Namespaces: []string{"red"}, Names: map[string][]string{"blue": {"other"}}})
	c.access.permit("mallory", auth.Scope{})
	as := func(user string) string { return "Authorization: Bearer " + user }
	for _, user := range []string{"bob", "narrow", "by-name"} {
		if a := c.get(path, as(user)); a.code != 200 || a.body != spec || a.header.Get("Content-Type") != "application/json" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s %v", user, a.code, a.body, a.header)
		}
	}
	hidden := func(user, path string, codes ...int) {
		t.Helper()
		a := c.get(path, as(user))
		if strings.Contains(a.body, "secret-word") || a.code != codes[0] {
			t.Errorf("%s of %s: %d %s", path, user, a.code, a.body)
		}
	}
	hidden("other", path, 403)
	hidden("mallory", path, 403)
	hidden("mallory", path+"&owner=me", 400)
	hidden("bob", path+"&owner=me", 400)
	hidden("bob", job+"?view=spec", 400)
	hidden("bob", job+"?view=spec&uid="+uid+","+other, 400)
	hidden("bob", allJobs+"?view=spec&uid="+uid, 400)
	hidden("bob", job+"?view=spec&uid="+other, 404)
	hidden("bob", "/history/apis/batch/v1/namespaces/red/jobs/train?view=spec&uid="+uid, 404)
	hidden("bob", "/history/apis/batch/v1/namespaces/blue/jobs/other?view=spec&uid="+uid, 404)
	hidden("bob", "/history/apis/batch/v1/namespaces/blue/jobs/other?view=spec&uid="+other, 404)
	nothing := c.get("/history/apis/batch/v1/namespaces/blue/jobs/train?view=spec&uid=nobodys", as("narrow"))
	c.remade("blue")
	for _, user := range []string{"narrow", "by-name"} {
		if a := c.get(path, as(user)); a.code != 404 || a.body != nothing.body {
			t.Errorf("%s of a former tenant's: %d %s", user, a.code, a.body)
		}
	}
	if a := c.get(path, as("bob")); a.body != spec {
		t.Errorf("%d %s", a.code, a.body)
	}
	if has, hasNot := c.flag(job, "spec"), c.flag("/history/apis/batch/v1/namespaces/blue/jobs/other", "spec"); has != true || hasNot != false {
		t.Errorf("a job says that its spec is kept: %v, and one of which it is not: %v", has, hasNot)
	}
}

// Logs are more secret than states. The end of one is shown to those who may get the job and the
// logs of all pods in its namespace, now and in the namespace that lives; everybody else is told
// nothing of it.
func TestTheEndOfALogIsShownToWhoMayReadLogs(t *testing.T) {
	c := newChronicle(t)
	uid := c.lives("a/train", "bob", "", jobs.Running, jobs.Failed, jobs.Deleted)
	c.keeps(uid, store.KeptLog, "<b>secret-word</b>\n")
	path := "/history/apis/batch/v1/namespaces/a/jobs/train?view=log&uid=" + uid
	ask := func(headers ...string) answer {
		return c.get(path, append([]string{"Accept: text/plain", "Authorization: Bearer bob"}, headers...)...)
	}
	for _, test := range []struct {
		may  []string
		code int
	}{
		{[]string{"get jobs", "get pods/log"}, 200},
		{[]string{"get jobs train", "get pods/log"}, 200},
		{[]string{"get jobs"}, 403},
		{[]string{"get jobs", "get pods", "list pods"}, 403},
		{[]string{"get jobs", "get pods/log web"}, 403},
		{[]string{"get pods/log", "get pods", "list pods"}, 403},
		{[]string{"get jobs other", "get pods/log"}, 403},
	} {
		c.may(test.may...)
		a := ask()
		if a.code != test.code || strings.Contains(a.body, "secret-word") != (test.code == 200) {
			t.Errorf("%q: %d %s", test.may, a.code, a.body)
		}
	}
	c.may("get jobs", "get pods/log")
	a := ask("Accept-Encoding: gzip, zstd")
	if a.header.Get("Content-Type") != "text/plain; charset=utf-8" || a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Cache-Control") != "no-store" ||
		a.header.Get("Content-Encoding") != "" || a.body != "<b>secret-word</b>\n" {
		t.Errorf("%v %q", a.header, a.body)
	}
	for accept, code := range map[string]int{"*/*": 200, "text/*;q=0.1": 200, "": 200, "application/json": 406, "text/html": 406} {
		if a := c.get(path, "Accept: "+accept, "Authorization: Bearer bob"); a.code != code {
			t.Errorf("%q: %d %s", accept, a.code, a.body)
		}
	}
	if a := c.get(strings.Replace(path, "view=log", "view=spec", 1), "Authorization: Bearer bob"); a.code != 404 {
		t.Errorf("a spec that is not kept: %d %s", a.code, a.body)
	}
	if c.flag("/history/apis/batch/v1/namespaces/a/jobs/train", "log") != true {
		t.Error("the job does not say that its log is kept")
	}
}

// The log of a pod that its job outlived is shown to whom the job's is, and to nobody else. The job
// says of which of its pods there is one.
func TestTheEndOfAPodsLogIsShownToWhoMayReadLogs(t *testing.T) {
	c := newChronicle(t)
	uid := c.lives("a/train", "bob", "", jobs.Running, jobs.Failed)
	other := c.lives("a/other", "bob", "", jobs.Running, jobs.Failed)
	c.keeps(uid, store.KeptOfPod("pod-1"), "secret-word\n")
	job := "/history/apis/batch/v1/namespaces/a/jobs/train"
	ask := func(path string) answer { return c.get(path, "Accept: text/plain", "Authorization: Bearer bob") }
	is := func(path string, code int) {
		t.Helper()
		if a := ask(path); a.code != code || strings.Contains(a.body, "secret-word") != (code == 200) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	own := "?view=log&uid=" + uid
	c.may("get jobs", "get pods/log")
	is(job+own+"&pod=pod-1", 200)
	is(job+own, 404)
	is(job+own+"&pod=pod-2", 404)
	is(job+own+"&pod=", 400)
	is(job+own+"&pod=pod-1,pod-2", 400)
	is(job+own+"&pod="+strings.Repeat("x", 200), 400)
	is(job+"?view=spec&uid="+uid+"&pod=pod-1", 400)
	is("/history/apis/batch/v1/namespaces/a/jobs/other?view=log&uid="+other+"&pod=pod-1", 404)
	if a := c.get(job+"?view=jobs&pod=pod-1", "Authorization: Bearer bob"); a.code != 400 {
		t.Errorf("a list with a pod: %d %s", a.code, a.body)
	}
	c.may("get jobs")
	is(job+own+"&pod=pod-1", 403)
	c.may("get jobs", "get pods/log web")
	is(job+own+"&pod=pod-1", 403)
}

// A job that still runs says which logs of its pods there are: also of one that a hundred pods came after.
func TestARunningJobNamesThePodsOfWhichItKeepsLogs(t *testing.T) {
	p := newPods(t)
	uid := p.lives("a/train", "bob", "", jobs.Running)
	var runs []*store.Run
	for i := range mostPodsTold + 20 {
		pod := fmt.Sprintf("pod-%03d", i)
		runs = append(runs, &store.Run{Of: p.chronicle.log.ID, Run: &jobs.Run{
			ObjectID: jobs.ObjectID{UID: pod, Namespace: "a", Name: pod}, Job: jobs.Ref{Resource: "jobs.batch", Name: "train", UID: uid},
			Created: p.at + jobs.Time(i), Ended: p.at + 3_600_000, Reason: jobs.Preempted,
		}})
	}
	var err error
	if p.log, err = p.db.Write(t.Context(), p.log, store.Batch{To: 1, Runs: runs}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []string{"pod-003", "pod-007", "pod-110", "pod-of-another"} {
		p.keeps(uid, store.KeptOfPod(pod), "loss is nan")
	}
	var page struct {
		Items []struct {
			Pods []struct {
				UID string
				Log bool
			}
		}
	}
	a := p.get("/history/apis/batch/v1/namespaces/a/jobs/train?uid=" + uid)
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Items) != 1 {
		t.Fatalf("%d %s", a.code, a.body)
	}
	var kept []string
	for _, pod := range page.Items[0].Pods {
		if pod.Log {
			kept = append(kept, pod.UID)
		}
	}
	if n := len(page.Items[0].Pods); strings.Join(kept, " ") != "pod-110 pod-007 pod-003" || n != mostPodsTold+2 {
		t.Errorf("of %d pods, there are logs of %q", n, kept)
	}
}

// mostPodsTold is how many of a job's pods are told with it, the newest, besides those of which a log is kept.
const mostPodsTold = 100

// The namespace is made anew. Who may read logs in it may not read what was written in the former
// one, though they may see the jobs of all namespaces.
func TestTheEndOfALogIsNotTheNextTenants(t *testing.T) {
	c := newChronicle(t)
	uid := c.lives("a/train", "bob", "", jobs.Running, jobs.Failed)
	c.keeps(uid, store.KeptLog, "secret-word")
	c.access.set(func(a *fakeAuth) {
		a.decide = func(id auth.Identity, r auth.Request) (bool, error) {
			return id.Username != "mallory" || r.Resource == "jobs" || r.Resource == "pods" && r.Subresource == "log" && r.Namespace == "a", nil
		}
	})
	path := "/history/apis/batch/v1/namespaces/a/jobs/train?view=log&uid=" + uid
	as := func(user string) answer { return c.get(path, "Accept: text/plain", "Authorization: Bearer "+user) }
	if a := as("mallory"); a.code != 200 || a.body != "secret-word" {
		t.Fatalf("in the namespace's own life: %d %s", a.code, a.body)
	}
	c.remade("a")
	if a := as("mallory"); a.code != 404 || strings.Contains(a.body, "secret-word") {
		t.Errorf("a former tenant's log is told: %d %s", a.code, a.body)
	}
	if a := as("bob"); a.code != 200 {
		t.Errorf("who may read all logs: %d %s", a.code, a.body)
	}
}
