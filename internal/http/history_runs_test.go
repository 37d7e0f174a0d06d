package http

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// pods is the log of pods of a chronicle.
type pods struct {
	*chronicle
	log  store.Log
	runs map[string]store.Run
}

func newPods(t *testing.T, opts ...option) *pods {
	t.Helper()
	c := newChronicle(t, opts...)
	log, err := c.db.Take(t.Context(), store.LogName{Cluster: c.log.Cluster, Resource: store.RunsResource}, "default", "test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return &pods{chronicle: c, log: log, runs: map[string]store.Run{}}
}

// pod writes that a pod of a job in a namespace was made, or has come to a node.
func (p *pods) pod(key, job, uid, node string) {
	p.t.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	run, there := p.runs[key]
	if !there {
		p.at += 1000
		run = store.Run{Of: p.chronicle.log.ID, Owner: "bob", Run: &jobs.Run{
			ObjectID: jobs.ObjectID{UID: "pod-" + name, Namespace: namespace, Name: name}, NamespaceUID: p.api.UID("namespaces", namespace),
			Job: jobs.Ref{Resource: "jobs.batch", Name: job, UID: uid}, Created: p.at, Requests: map[string]string{"cpu": "2"},
		}}
	}
	next := *run.Run
	next.Node = node
	run.Run = &next
	p.runs[key] = run
	var err error
	if p.log, err = p.db.Write(p.t.Context(), p.log, store.Batch{To: p.log.Version + 1, Runs: []*store.Run{&run}}); err != nil {
		p.t.Fatal(err)
	}
}

// lists is what a page of runs has, as name@node.
func (p *pods) lists(path, user string) (items []string, next string) {
	p.t.Helper()
	a := p.get(path, "Authorization: Bearer "+user)
	var page struct {
		Items    []struct{ Name, Node string }
		Continue *string
	}
	if err := json.Unmarshal([]byte(a.body), &page); a.code != 200 || err != nil || page.Items == nil || page.Continue == nil {
		p.t.Fatalf("%s: %d %s %v", path, a.code, a.body, err)
	}
	for _, i := range page.Items {
		items = append(items, i.Name+"@"+i.Node)
	}
	return items, *page.Continue
}

// next reads so many runs, which must be the next events, and returns them with the positions behind them.
func (p *pods) next(s *events, n int) (told, ids []string) {
	p.t.Helper()
	for range n {
		f := s.next()
		if f.event != "run" && !strings.HasSuffix(f.event, ".run") {
			p.t.Fatalf("%q instead of a run", f.raw)
		}
		told, ids = append(told, f.field("name")+"@"+f.field("node")), append(ids, f.id)
	}
	return told, ids
}

const runsOfAll = allJobs + "?view=runs"

// Runs are those of the jobs that are asked for, in pages that go on, and nobody sees those of jobs
// that they may not see, nor of a former tenant's.
func TestRunsAreSeenAsTheirJobsAre(t *testing.T) {
	p := newPods(t)
	one := p.lives("a/one", "bob", "", jobs.Running)
	two := p.lives("b/two", "bob", "", jobs.Running)
	for i := range 3 {
		p.pod(fmt.Sprint("a/one-", i), "one", one, "")
		p.pod(fmt.Sprint("b/two-", i), "two", two, "n1")
	}
	p.pod("a/one-0", "one", one, "n2")
	p.access.permit("dan", auth.Scope{Namespaces: []string{"a"}})
	p.access.permit("eve", auth.Scope{Names: map[string][]string{"b": {"two"}}})
	p.access.permit("nobody", auth.Scope{})
	ones, twos := "one-2@ one-1@ one-0@n2", "two-2@n1 two-1@n1 two-0@n1"
	for query, want := range map[string]string{
		allJobs + "?view=runs&uid=" + one:                        ones,
		allJobs + "?view=runs&owner=bob&uid=" + two:              twos,
		allJobs + "?view=runs&owner=alice":                       "",
		allJobs + "?view=runs&queue=q":                           "",
		"/history/apis/batch/v1/namespaces/a/jobs?view=runs":     ones,
		"/history/apis/batch/v1/namespaces/b/jobs/two?view=runs": twos,
		"/history/apis/batch/v1/namespaces/b/jobs/one?view=runs": "",
		allJobs + "?view=runs&until=2000h":                       "",
		allJobs + "?view=runs&since=2000h&uid=" + one:            ones,
	} {
		if got, _ := p.lists(query, "bob"); strings.Join(got, " ") != want {
			t.Errorf("%s: %q", query, got)
		}
	}
	var all []string
	for path := runsOfAll + "&limit=4"; ; {
		items, token := p.lists(path, "bob")
		if all = append(all, items...); token == "" {
			break
		}
		path = runsOfAll + "&limit=4&continue=" + token
	}
	if want := "two-2@n1 one-2@ two-1@n1 one-1@ two-0@n1 one-0@n2"; strings.Join(all, " ") != want {
		t.Errorf("pages have %q", all)
	}
	for user, want := range map[string]string{"dan": ones, "eve": twos} {
		if got, _ := p.lists(runsOfAll, user); strings.Join(got, " ") != want {
			t.Errorf("%s sees %q", user, got)
		}
	}
	for _, query := range []string{"&state=Running", "&by=owner", "&node=n1"} {
		if a := p.get(runsOfAll + query); a.code != 400 {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
	if a := p.get(runsOfAll, "Authorization: Bearer nobody"); a.code != 403 {
		t.Errorf("%d %s", a.code, a.body)
	}
	p.remade("a")
	if got, _ := p.lists(runsOfAll, "dan"); len(got) != 0 {
		t.Errorf("the next tenant sees %q", got)
	}
}

// Whoever is cut off anywhere is told what each run that has changed since has become, once; nobody
// learns from positions how much else there is.
func TestRunsStreamGoesOnBehindEachChange(t *testing.T) {
	p := newPods(t)
	one := p.lives("a/one", "bob", "", jobs.Running)
	two := p.lives("b/two", "bob", "", jobs.Running)
	early := p.stream(runsOfAll)
	early.expect("synced")
	p.pod("a/x", "one", one, "")
	p.pod("b/y", "two", two, "")
	p.pod("a/z", "one", one, "")
	p.pod("a/x", "one", one, "n1")
	// Once the live stream was told of it, it is in memory, where a later change does not replace it.
	for last := ""; last != "x@n1"; {
		told, _ := p.next(early, 1)
		last = told[0]
	}
	s := p.stream(runsOfAll + "&uid=" + one)
	told, ids := p.next(s, 2)
	if s.expect("synced"); !slices.Equal(told, []string{"z@", "x@n1"}) {
		t.Errorf("%q", told)
	}
	synced := s.lastID
	p.pod("a/z", "one", one, "n2")
	p.pod("b/y", "two", two, "n9")
	p.pod("a/x", "one", one, "n3")
	live, more := p.next(s, 2)
	if !slices.Equal(live, []string{"z@n2", "x@n3"}) {
		t.Errorf("%q", live)
	}
	for id, want := range map[string]string{ids[0]: "x@n1 z@n2 x@n3", synced: "z@n2 x@n3", more[0]: "x@n3", more[1]: ""} {
		again := p.stream(runsOfAll+"&uid="+one, "Last-Event-ID: "+id)
		told, _ := p.next(again, len(strings.Fields(want)))
		if strings.Join(told, " ") != want {
			t.Errorf("behind %s: %q, not %q", id, told, want)
		}
		again.close()
	}
	if _, position, _ := strings.Cut(synced, "."); !strings.HasPrefix(position, "h-p") || len(position) < 20 {
		t.Errorf("the position is %q", position)
	}
	p.access.permit("dan", auth.Scope{Namespaces: []string{"b"}})
	dan := p.stream(runsOfAll, "Authorization: Bearer dan")
	dan.expect("narrowed")
	if told, _ := p.next(dan, 1); told[0] != "y@n9" {
		t.Errorf("%q", told)
	}
	dan.expect("synced")
	beside := p.stream("/stream?runs=" + url.QueryEscape(runsOfAll+"&limit=0") + "&past=" + url.QueryEscape(allJobs+"?limit=0"))
	seen := []string{beside.next().event, beside.next().event}
	if slices.Sort(seen); !slices.Equal(seen, []string{"past.synced", "runs.synced"}) {
		t.Errorf("%q", seen)
	}
	p.lives("a/gone", "bob", "", jobs.Running, jobs.Deleted)
	gone := p.lives("a/gone2", "bob", "", jobs.Running, jobs.Deleted)
	p.pod("a/g", "gone2", gone, "")
	if removed, err := p.db.Expire(t.Context(), p.chronicle.log, jobs.At(time.Now()), 10); err != nil || removed.Runs != 1 || removed.Jobs != 2 {
		t.Fatalf("%+v, %v", removed, err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) { // what is in memory is not missed
		late := p.stream(runsOfAll+"&limit=0", "Last-Event-ID: "+ids[0])
		if first := late.next(); first.event == "reset" && first.field("reason") == "expired" {
			late.expect("synced")
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%s", first.raw)
		}
		late.close()
	}
}
