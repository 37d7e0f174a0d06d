package http

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// logAnswer is an answer to a question about logs.
type logAnswer struct {
	First    string
	From     int
	Items    []logItem
	Count    int
	Index    *int
	Complete bool
	Stopped  string
	Matches  []struct {
		Index         int
		Item          logItem
		Before, After []logItem
	}
}

type logItem struct {
	Type, Pod, Container, Text, Reason, Message string
	Time                                        time.Time
	Restart                                     *int
	ExitCode                                    *int
	Cut                                         bool
}

func (i logItem) String() string {
	switch i.Type {
	case "line":
		return i.Container + " " + i.Text
	case "ended":
		return fmt.Sprint("ended ", i.Container, "#", *i.Restart, " ", *i.ExitCode)
	case "reset":
		return strings.TrimSpace("reset " + i.Reason + " " + i.Message)
	}
	return fmt.Sprint(i.Type, " ", i.Container, "#", *i.Restart)
}

func (g *gateway) asksLog(path string, headers ...string) (a logAnswer) {
	g.t.Helper()
	got := g.get("/logs"+path, append(headers, "Accept: application/json")...)
	if got.code != 200 {
		g.t.Fatalf("%s: %d %s", path, got.code, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), &a); err != nil {
		g.t.Fatal(err)
	}
	return a
}

func textsOf(items []logItem) (all []string) {
	for _, i := range items {
		all = append(all, i.String())
	}
	return all
}

// Any stretch of a log can be read, with the run before and how that ended, and of several
// containers in the order of their times; an item has the same place in each answer.
func TestStretchesOfALogAreReadByTheirPlace(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		k.starts("a/web", "main")
		k.writes("a/web", "main", "of before")
		k.exits("a/web", "main", 137)
		k.starts("a/web", "main")
		k.starts("a/web", "side")
		for n := range 3 {
			time.Sleep(time.Second)
			k.writes("a/web", "main", fmt.Sprint("line ", n))
			time.Sleep(time.Second)
			k.writes("a/web", "side", fmt.Sprint("beside ", n))
		}
		pass(time.Second)
		const path = "/api/v1/namespaces/a/pods/web?view=lines"
		want := []string{"started main#0", "main of before", "ended main#0 137", "started main#1", "main line 0", "side beside 0", "main line 1", "side beside 1", "main line 2", "side beside 2"}
		whole := g.asksLog(path)
		got := textsOf(whole.Items)
		if at := slices.Index(got, "started side#0"); at < 0 || !slices.Equal(slices.Delete(slices.Clone(got), at, at+1), want) {
			t.Fatalf("%q", got)
		}
		if !whole.Complete || whole.Count != len(got) || whole.First == "" {
			t.Errorf("%+v", whole)
		}
		for from := range got {
			part := g.asksLog(fmt.Sprint(path, "&limit=2&from=", from))
			if !slices.Equal(textsOf(part.Items), got[from:min(from+2, len(got))]) || part.First != "" && part.First != whole.First {
				t.Errorf("from %d: %q", from, part.Items)
			}
			if line := whole.Items[from]; line.Type == "line" {
				placed := g.asksLog(path + "&limit=0&time=" + line.Time.Format(time.RFC3339Nano))
				if placed.Index == nil || *placed.Index != from {
					t.Errorf("%v is at %v in place of %d", line, placed.Index, from)
				}
			}
		}
		if one := g.asksLog(path + "&container=side"); len(one.Items) != 4 {
			t.Errorf("of one container: %q", one.Items)
		}
		if late := g.asksLog(path + "&limit=0&time=2999-01-01T00:00:00Z"); late.Index != nil || !late.Complete {
			t.Errorf("%+v", late)
		}
	})
}

func TestLogIsSearchedWithWhatStandsBesideAMatch(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		k.starts("a/web", "main")
		for n := range 3000 {
			text := fmt.Sprint("line ", n)
			if n%1000 == 500 {
				text = "\x1b[31mLoss\x1b[0m is nan"
			}
			k.writes("a/web", "main", text)
		}
		pass(time.Second)
		const path = "/api/v1/namespaces/a/pods/web?view=search"
		found := g.asksLog(path + "&search=loss+is&ignoreCase=true&context=2")
		if len(found.Matches) != 3 || !found.Complete || found.Count != 3001 {
			t.Fatalf("%d, %v, %d", len(found.Matches), found.Complete, found.Count)
		}
		last := found.Matches[2]
		if last.Index != 2501 || !slices.Equal(textsOf(last.Before), []string{"main line 2498", "main line 2499"}) || !slices.Equal(textsOf(last.After), []string{"main line 2501", "main line 2502"}) {
			t.Errorf("%+v", last)
		}
		if next := g.asksLog(path + "&search=Loss&limit=1&from=502"); len(next.Matches) != 1 || next.Matches[0].Index != 1501 || next.Complete {
			t.Errorf("%+v", next)
		}
		if none := g.asksLog(path + "&search=loss"); len(none.Matches) != 0 || !none.Complete {
			t.Errorf("in another case: %+v", none)
		}
	})
}

// A question takes what it is given, and no more of the gateway than it may.
func TestQuestionsAboutLogsAreBounded(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		k.starts("a/web", "main")
		k.writes("a/web", "main", strings.Repeat("x", 100<<10), "bad \xff")
		pass(time.Second)
		const path = "/api/v1/namespaces/a/pods/web"
		if a := g.asksLog(path + "?view=lines"); len(a.Items) != 3 || len(a.Items[1].Text) != 64<<10 || !a.Items[1].Cut || a.Items[2].Text != "bad \uFFFD" {
			t.Errorf("%d items", len(a.Items))
		}
		for query, code := range map[string]int{
			"view=lines&limit=2001": 400, "view=lines&from=-1": 400, "view=lines&time=now": 400, "view=lines&tailLines=1": 400, "view=lines&follow=false": 400, "view=lines&nothing=1": 400,
			"view=search": 400, "view=search&search=x&context=21": 400, "view=search&search=x&ignoreCase=1": 400, "view=other": 400, "view=lines&view=lines": 400,
		} {
			if a := g.get("/logs"+path+"?"+query, "Accept: application/json"); a.code != code {
				t.Errorf("%s: %d %s", query, a.code, a.body)
			}
		}

		for range 130 { // more than one answer, and than one question, may have
			k.writes("a/web", "main", strings.Repeat("x", 60<<10))
		}
		if a := g.asksLog(path + "?view=lines"); a.Stopped != "size" || a.Complete || len(a.Items) > 72 || a.Count != len(a.Items) {
			t.Errorf("%q after %d of %d", a.Stopped, len(a.Items), a.Count)
		}
		for range 1000 {
			k.writes("a/web", "main", strings.Repeat("x", 64<<10))
		}
		if a := g.asksLog(path + "?view=search&search=none"); a.Stopped != "bytes" || a.Complete {
			t.Errorf("%q after %d", a.Stopped, a.Count)
		}

		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "2026-01-31T09:00:00Z first")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		k.instead.Store(&slow)
		began := time.Now()
		if a := g.asksLog(path + "?view=lines"); a.Stopped != "time" || len(a.Items) != 2 || time.Since(began) > 20*time.Second {
			t.Errorf("%q after %v: %q", a.Stopped, time.Since(began), a.Items)
		}
		k.instead.Store(nil)

		for n := range 9 {
			k.starts("b/web", fmt.Sprint("c", n))
		}
		pass(time.Second)
		if a := g.get("/logs/api/v1/namespaces/b/pods/web?view=lines", "Accept: application/json"); a.code != 422 {
			t.Errorf("of nine containers: %d %s", a.code, a.body)
		}
	})
}

// What a node says in place of a log is no line of it, and an unread log is not a short one.
func TestQuestionAboutALogThatCannotBeReadSaysSo(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one")
		pass(time.Second)
		k.cannotTell()
		a := g.asksLog("/api/v1/namespaces/a/pods/web?view=lines")
		if got := textsOf(a.Items); !slices.Equal(got, []string{"started main#0", "main one", "reset unavailable " + nodeSays}) {
			t.Errorf("%q", got)
		}
		if a := g.asksLog("/api/v1/namespaces/a/pods/web?view=search&search=retrieve"); len(a.Matches) != 0 {
			t.Errorf("what the node says was found: %+v", a.Matches)
		}
	})
}

// A node that does not answer keeps nobody from the lines of others: its container is told as one that cannot be read.
func TestANodeThatHangsSilencesNoOtherLog(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		for _, c := range []string{"main", "other", "stuck"} {
			k.starts("a/web", c)
			k.writes("a/web", c, "of "+c)
		}
		pass(time.Second)
		hangs := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("container") != "stuck" {
				k.ServeHTTP(w, r)
				return
			}
			<-r.Context().Done()
		})
		k.instead.Store(&hangs)
		for _, query := range []string{"view=lines", "view=search&search=of"} {
			began := time.Now()
			a := g.asksLog("/api/v1/namespaces/a/pods/web?" + query)
			items := a.Items
			for _, m := range a.Matches {
				items = append(items, m.Item)
			}
			got := textsOf(items)
			for _, want := range []string{"main of main", "other of other"} {
				if !slices.Contains(got, want) {
					t.Errorf("%s: %q is missing in %q", query, want, got)
				}
			}
			if query == "view=lines" && !slices.Contains(got, "reset unavailable") {
				t.Errorf("nothing is told of the log that cannot be read: %q", got)
			}
			if waited := time.Since(began); a.Complete != (query == "view=lines") || waited > 5*time.Second {
				t.Errorf("%s: complete %t, after %s", query, a.Complete, waited)
			}
		}
		// One that is asked for alone is waited for: nobody else is.
		if a := g.asksLog("/api/v1/namespaces/a/pods/web?view=lines&container=stuck"); a.Stopped != "time" {
			t.Errorf("stopped for %q", a.Stopped)
		}
	})
}

// Questions need what following the same logs needs.
func TestNobodyAsksAboutLogsThatTheyMayNotGet(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		g.api.Put("jobs", "a/train", "metadata.uid=u")
		k.ownedPod("a/web", ownedBy("Job", "batch/v1", "train"))
		k.starts("a/web", "main")
		k.writes("a/web", "main", "secret of web")
		pass(time.Second)
		const pods, job = "/logs/api/v1/namespaces/a/pods", "/logs/apis/batch/v1/namespaces/a/jobs/train"
		for _, view := range []string{"?view=lines", "?view=search&search=secret"} {
			for _, test := range []struct {
				may  []string
				path string
				code int
			}{
				{[]string{"get pods/log"}, pods + "/web", 200},
				{[]string{"get pods", "list pods"}, pods + "/web", 403},
				{[]string{"get pods/log"}, pods, 403},
				{[]string{"get pods/log", "list pods"}, pods, 200},
				{[]string{"get pods/log", "list pods"}, job, 403},
				{[]string{"get pods/log", "list pods", "get jobs"}, job, 200},
			} {
				g.may(test.may...)
				a := g.get(test.path+view, "Accept: application/json", "Authorization: Bearer bob")
				if a.code != test.code || strings.Contains(a.body, "secret of web") != (test.code == 200) {
					t.Errorf("with %q, %s%s: %d %s", test.may, test.path, view, a.code, a.body)
				}
			}
		}
		g.access.set(func(a *fakeAuth) { a.decide = nil })
		g.access.permit("bob", auth.Scope{Namespaces: []string{"b"}})
		if a := g.get(pods+"/web?view=lines", "Accept: application/json", "Authorization: Bearer bob"); a.code != 403 {
			t.Errorf("of another namespace: %d %s", a.code, a.body)
		}
	}, between)
}
