package http

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
)

// watched is a watch in Kubernetes' own form.
type watched struct {
	t      testing.TB
	code   int
	header http.Header
	lines  *bufio.Reader
	close  func()
}

func (g *gateway) watch(path string, headers ...string) *watched {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), g.patience)
	g.t.Cleanup(cancel)
	response, err := g.client.Do(g.newRequest(ctx, http.MethodGet, path, headers))
	if err != nil {
		g.t.Fatal(err)
	}
	w := &watched{t: g.t, code: response.StatusCode, header: response.Header, lines: bufio.NewReader(response.Body), close: func() { response.Body.Close() }}
	g.t.Cleanup(w.close)
	if kind := response.Header.Get("Content-Type"); kind != "application/json" {
		g.t.Errorf("Content-Type: %s", kind)
	}
	return w
}

// next is the next event; the zero one at the end.
func (w *watched) next() gjson.Result {
	w.t.Helper()
	line, err := w.lines.ReadString('\n')
	if err == io.EOF && line == "" {
		return gjson.Result{}
	}
	if err != nil || !gjson.Valid(line) {
		w.t.Fatalf("%q: %v", line, err)
	}
	return gjson.Parse(line)
}

// expect reads events and compares them: TYPE name@version.
func (w *watched) expect(want ...string) (last gjson.Result) {
	w.t.Helper()
	for _, text := range want {
		last = w.next()
		for last.Get("type").String() == "BOOKMARK" && !strings.HasPrefix(text, "BOOKMARK") {
			last = w.next() // as there is one from time to time
		}
		got := last.Get("type").String()
		if name := last.Get("object.metadata.name").String(); name != "" {
			got += " " + name
		}
		if strings.Contains(text, "@") {
			got += "@" + last.Get("object.metadata.resourceVersion").String()
		}
		if code := last.Get("object.code").String(); code != "" {
			got += " " + code
		}
		if got != text {
			w.t.Fatalf("%s, not %s: %s", got, text, last)
		}
	}
	return last
}

func (w *watched) end() {
	w.t.Helper()
	if event := w.next(); event.Exists() {
		w.t.Errorf("%s", event)
	}
}

// TestKubernetesWatchBeginsWhereItIsAskedTo: with the state, with what follows a version, or now.
func TestKubernetesWatchBeginsWhereItIsAskedTo(t *testing.T) {
	g := newGateway(t)
	first := g.api.Put("pods", "team-a/a")
	second := g.api.Put("pods", "team-b/b", "metadata.labels.app=web")
	g.get("/api/v1/pods")
	third := g.api.Put("pods", "team-a/c")
	g.get(fmt.Sprintf("/api/v1/pods?resourceVersion=%d", third)) // waits for it
	at := func(name string, version uint64) string { return fmt.Sprintf("ADDED %s@%d", name, version) }
	open := map[string]*watched{}
	for query, want := range map[string][]string{
		"watch=true":                                                          {at("a", first), at("c", third), at("b", second)},
		"watch=true&resourceVersion=0":                                        {at("a", first), at("c", third), at("b", second)},
		"watch=1&labelSelector=app%3Dweb":                                     {at("b", second)},
		"watch&fieldSelector=metadata.name%3Dc":                               {at("c", third)},
		"watch=true&search=C":                                                 {at("c", third)},
		fmt.Sprintf("watch=true&resourceVersion=%d", second):                  {at("c", third)},
		"watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan": {at("a", first), at("c", third), at("b", second), fmt.Sprintf("BOOKMARK@%d", third)},
		fmt.Sprintf("watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=%d", third): nil,
	} {
		w := g.watch("/api/v1/pods?allowWatchBookmarks=true&" + query)
		last := w.expect(want...)
		if last.Get("type").String() == "BOOKMARK" {
			if end := last.Get(`object.metadata.annotations.k8s\.io/initial-events-end`).String(); end != "true" || last.Get("object.kind").String() != "Pod" {
				t.Errorf("%s", last)
			}
		}
		open[query] = w
	}
	fourth := g.api.Put("pods", "team-a/web-c", "metadata.labels.app=web")
	for query, w := range open {
		if !strings.Contains(query, "fieldSelector") {
			w.expect(at("web-c", fourth))
		}
	}
	// Without a version it begins now, which may be after its headers have come.
	w := g.watch("/api/v1/pods?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
	changes := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-changes:
				return
			case <-time.After(10 * time.Millisecond):
				g.api.Put("pods", "team-b/now")
			}
		}
	})
	if event := w.next(); event.Get("object.metadata.name").String() != "now" {
		t.Errorf("%s", event)
	}
	close(changes)
	running.Wait()
	w = g.watch("/api/v1/namespaces/team-a/pods/a?watch=true")
	w.expect(at("a", first))
	g.api.Put("pods", "team-a/other")
	version := g.api.Put("pods", "team-a/a", "x=1")
	w.expect(fmt.Sprintf("MODIFIED a@%d", version))
	version = g.api.Delete("pods", "team-a/a")
	w.expect(fmt.Sprintf("DELETED a@%d", version))
}

// TestKubernetesWatchThatMissedSomethingIs410, so that informers list again.
func TestKubernetesWatchThatMissedSomethingIs410(t *testing.T) {
	g := newGateway(t)
	g.api.Put("pods", "team-a/a")
	g.get("/api/v1/pods")
	g.api.Compact()
	for _, version := range []string{"1", "99999999"} {
		w := g.watch("/api/v1/pods?watch=true&resourceVersion=" + version)
		if reason := w.expect("ERROR 410").Get("object.reason").String(); reason != "Expired" {
			t.Errorf("%s: %s", version, reason)
		}
		w.end()
	}
}

// Another gateway watches on from a version of the history, and of the visible part, that it was told before, and of no other one.
func TestKubernetesWatchOfAGatewayGoesOnInItsOwnHistoryOnly(t *testing.T) {
	g := newGateway(t)
	g.access.permit("ann", in("team-a"))
	g.api.Put("pods", "team-a/a")
	list := g.get("/api/v1/pods", asAnn)
	version, history := gjson.Get(list.body, "metadata.resourceVersion").String(), list.header.Get(cluster.HistoryHeader)
	epoch, visible, narrowed := strings.Cut(history, "-")
	if epoch == "" || visible == "" || !narrowed {
		t.Fatalf("a list is of the history %q", history)
	}
	g.api.Put("pods", "team-a/a")
	for claimed, goesOn := range map[string]bool{history: true, "": true, epoch: false, "other-" + visible: false, epoch + "-s1": false, "é.": false} {
		w := g.watch("/api/v1/pods?watch=true&resourceVersion="+version, asAnn, cluster.HistoryHeader+": "+claimed)
		if told := w.header.Get(cluster.HistoryHeader); told != history {
			t.Errorf("with %q, a watch is of the history %q", claimed, told)
		}
		if goesOn {
			w.expect("MODIFIED a")
		} else {
			w.expect("ERROR 410")
			w.end()
		}
		w.close()
	}
}

// TestKubernetesWatchInItsForms: columns are told once, and a bookmark has the form of the rest.
func TestKubernetesWatchInItsForms(t *testing.T) {
	g := newGateway(t)
	g.api.Put("pods", "team-a/a", "spec.nodeName=n")
	const query = "/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	w := g.watch(query, "Accept: application/json;as=Table;v=v1;g=meta.k8s.io, application/json")
	row := w.next().Get("object")
	if row.Get("kind").String() != "Table" || len(row.Get("columnDefinitions").Array()) == 0 || row.Get("rows.0.cells.0").String() != "a" {
		t.Errorf("%s", row)
	}
	mark := w.next().Get("object")
	if mark.Get("kind").String() != "Table" || mark.Get("metadata.resourceVersion").String() == "" || mark.Get("metadata.creationTimestamp").Exists() || mark.Get("metadata.annotations").Exists() ||
		len(mark.Get("rows").Array()) != 1 || len(mark.Get("rows.0.cells").Array()) != 9 || mark.Get("rows.0.object.kind").Str != "PartialObjectMetadata" ||
		mark.Get("rows.0.object.metadata.annotations.k8s\\.io/initial-events-end").Str != "true" || mark.Get("rows.0.object.metadata.resourceVersion").Str == "" {
		t.Errorf("%s", mark)
	}
	g.api.Put("pods", "team-a/b")
	row = w.next().Get("object")
	if row.Get("columnDefinitions").Raw != "null" || row.Get("rows.0.object.metadata.name").String() != "b" {
		t.Errorf("%s", row)
	}
	w = g.watch(query, "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
	for range 2 {
		if o := w.next().Get("object"); o.Get("kind").String() != "PartialObjectMetadata" || o.Get("spec").Exists() {
			t.Errorf("%s", o)
		}
	}
	if mark := w.next(); mark.Get("type").String() != "BOOKMARK" || mark.Get("object.kind").String() != "PartialObjectMetadata" {
		t.Errorf("%s", mark)
	}
	w = g.watch(query+"&fields=spec.nodeName", "Accept: application/json")
	if o := w.next().Get("object"); o.Get("spec.nodeName").String() != "n" || o.Get("metadata.name").String() != "a" {
		t.Errorf("%s", o)
	}
}

// TestKubernetesWatchEnds at its time, without a word; bookmarks come before, to those who want them.
func TestKubernetesWatchEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "team-a/a")
		for text, bookmarks := range map[string]bool{"false": false, "0": false, "": false, "true": true, "perhaps": true} { // as the API server reads it
			began := time.Now()
			w := g.watch("/api/v1/pods?watch=true&timeoutSeconds=150&allowWatchBookmarks=" + text)
			w.expect("ADDED a")
			told := 0
			for event := w.next(); event.Exists(); event = w.next() {
				if told++; event.Get("type").String() != "BOOKMARK" || event.Get("object.kind").String() != "Pod" {
					t.Errorf("%s", event)
				}
			}
			if took := time.Since(began); took != 150*time.Second || (told >= 3) != bookmarks || !bookmarks && told > 0 {
				t.Errorf("bookmarks %v: ended after %v with %d", bookmarks, took, told)
			}
		}
		// A permission that is gone ends it, too.
		began := time.Now()
		g.access.set(func(a *fakeAuth) {
			a.decide = func(auth.Identity, auth.Request) (bool, error) { return time.Since(began) < time.Minute, nil }
		})
		w := g.watch("/api/v1/pods?watch=true")
		w.expect("ADDED a")
		w.end()
		if took := time.Since(began); took < time.Minute || took > 75*time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}

// TestVersionsOfAKubernetesWatchNeverGoBack, not in a relist's difference behind a deletion either:
// a gateway that reads here would take that for another history.
func TestVersionsOfAKubernetesWatchNeverGoBack(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for _, name := range []string{"gone-1", "gone-2"} {
			g.api.Put("pods", "team-a/"+name)
		}
		w := g.watch("/api/v1/pods?watch=true")
		w.expect("ADDED gone-1", "ADDED gone-2")
		live := g.api.Delete("pods", "team-a/gone-1")
		w.expect("DELETED gone-1")
		g.api.Fail("pods", http.StatusServiceUnavailable)
		g.api.CutWatches("pods")
		g.watches("pods", 0)
		g.api.Delete("pods", "team-a/gone-2")
		g.api.Compact()
		g.api.Fail("pods", 0)
		if event := w.next(); told(event) != "DELETED gone-2" || event.Get("object.metadata.resourceVersion").Uint() < live {
			t.Errorf("behind version %d: %s", live, event.Raw)
		}
	})
}

// TestKubernetesWatchCutInARelistIsToldItAgain: the client's position is the version of what it was told last.
func TestKubernetesWatchCutInARelistIsToldItAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for _, name := range []string{"gone-1", "gone-2", "changed-1", "changed-2"} {
			g.api.Put("pods", "team-a/"+name)
		}
		w := g.watch("/api/v1/pods?watch=true")
		w.expect("ADDED changed-1", "ADDED changed-2", "ADDED gone-1", "ADDED gone-2")
		g.api.Fail("pods", http.StatusServiceUnavailable)
		g.api.CutWatches("pods")
		g.watches("pods", 0)
		g.api.Delete("pods", "team-a/gone-1")
		g.api.Put("pods", "team-a/changed-1")
		g.api.Delete("pods", "team-a/gone-2")
		g.api.Put("pods", "team-a/changed-2")
		g.api.Compact()
		g.api.Put("pods", "team-a/last")
		g.api.Fail("pods", 0)
		var all, versions []string
		for range 5 {
			event := w.next()
			all = append(all, told(event))
			versions = append(versions, event.Get("object.metadata.resourceVersion").String())
		}
		slices.Sort(all[:2])
		if want := []string{"DELETED gone-1", "DELETED gone-2", "MODIFIED changed-1", "MODIFIED changed-2", "ADDED last"}; !slices.Equal(all, want) {
			t.Fatalf("%q", all)
		}
		for i, version := range versions[:4] { // cut off after the event
			again := g.watch("/api/v1/pods?watch=true&resourceVersion=" + version)
			var got []string
			for event := again.next(); event.Exists(); event = again.next() {
				if got = append(got, told(event)); got[len(got)-1] == all[4] {
					break
				}
			}
			// A version within the list's difference may be known from another replica, which saw
			// more: then what the API server says happened since is right, or 410.
			slices.Sort(got[:min(2, len(got))])
			caughtUp := slices.Equal(got, []string{"ERROR "}) || slices.Equal(got, all[i+1:])
			if !slices.Equal(got, all) && !(caughtUp && i >= 2) {
				t.Errorf("cut off at %s of %q, and told %q", version, all, got)
			}
			again.close()
		}
	})
}

func told(event gjson.Result) string {
	return event.Get("type").String() + " " + event.Get("object.metadata.name").String()
}

// TestTooManyWatchesAndDraining are answered with a status that clients of Kubernetes retry.
func TestTooManyWatchesAndDraining(t *testing.T) {
	g := newGateway(t, options(func(o *Options) { o.Limits = Limits{PerUser: 1} }))
	w := g.watch("/api/v1/pods?watch=true")
	a := g.get("/api/v1/pods?watch=true")
	if a.code != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" || a.status(t).Reason != "TooManyRequests" {
		t.Errorf("%d %s", a.code, a.body)
	}
	w.close()
	g.eventually("there is a place again", func() bool { return g.streams() == 0 })
	g.drain()
	if a := g.get("/api/v1/pods?watch=true"); a.code != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.code, a.body)
	}
	if !json.Valid([]byte(a.body)) {
		t.Errorf("%q", a.body)
	}
}
