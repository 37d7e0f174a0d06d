package http

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/inbox"
	"github.com/kubecast/kubecast/internal/jobs/rules"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// newTold runs a gateway with a history that the test writes, and inboxes.
func newTold(t *testing.T, opts ...option) *chronicle {
	t.Helper()
	set, err := rules.New(rules.Options{Key: "history"})
	if err != nil {
		t.Fatal(err)
	}
	box := inbox.New(inbox.Options{
		States: []jobs.State{jobs.Succeeded, jobs.Failed}, Keep: time.Hour, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	database := store.Options{Address: "sqlite", StateDir: t.TempDir(), Writers: []store.Writer{box}}
	a, err := service.New(service.Options{
		Database: database, Rules: set, Serves: func(string, string) bool { return true }, Migrate: true, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	if err := a.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	box.Use(a.Database(), a.Ready(), a.Seal)
	running, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = box.Run(running)
	}()
	t.Cleanup(func() { stop(); <-ended })
	c := &chronicle{file: filepath.Join(database.StateDir, "history.db"), at: jobs.At(time.Now().Add(-100 * time.Hour).Truncate(time.Second))}
	c.gateway = newGateway(t, append(opts, options(func(o *Options) { o.History, o.Inbox = a, box }))...)
	if c.db, err = store.New(database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.db.Close() })
	identity, err := c.kinds.Cluster().Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.log, err = c.db.Take(t.Context(), store.LogName{Cluster: identity, Resource: rules.Jobs}, "default", "test", time.Hour); err != nil {
		t.Fatal(err)
	}
	c.lives("a/before", "carol", "", jobs.Running, jobs.Failed) // the first start, of which nobody is told
	return c
}

// inboxOf is the list of a user.
func (c *chronicle) inboxOf(user, query string) (l struct {
	Items []struct {
		ID, Kind, Title string
		Silent          bool
		ReadAt          *time.Time
		Transition      *struct{ Name, Cluster, Resource string }
	}
	Unread   int
	Continue string
}) {
	c.t.Helper()
	a := c.get("/notifications"+query, "Authorization: Bearer "+user)
	if err := json.Unmarshal([]byte(a.body), &l); err != nil || a.code != 200 {
		c.t.Fatalf("%d %s", a.code, a.body)
	}
	return l
}

func (c *chronicle) titles(user string) (all []string) {
	c.t.Helper()
	for _, item := range c.inboxOf(user, "").Items {
		all = append(all, item.Title)
	}
	return all
}

// sends sends a body as a user.
func (c *chronicle) sends(user, method, path, body string, headers ...string) answer {
	c.t.Helper()
	r := c.newRequest(c.t.Context(), method, path, append([]string{"Authorization: Bearer " + user}, headers...))
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	response, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	c.checkPublic(string(text))
	return answer{response.StatusCode, response.Header, string(text)}
}

func TestNotificationsAreTheCallersOwnAsFarAsTheyMayGetTheJobs(t *testing.T) {
	c := newTold(t)
	c.access.permit("carol", auth.Scope{Namespaces: []string{"a"}, Names: map[string][]string{"b": {"named"}}})
	c.access.permit("dan", auth.Scope{})
	c.access.permit("eve", auth.Scope{All: true})
	c.lives("a/hers", "carol", "", jobs.Running, jobs.Failed)
	c.lives("b/hidden", "carol", "", jobs.Running, jobs.Failed)
	c.lives("b/named", "carol", "", jobs.Running, jobs.Succeeded)
	c.lives("a/his", "dan", "", jobs.Succeeded)
	if got := c.titles("carol"); !slices.Equal(got, []string{"named succeeded", "hers failed"}) {
		t.Errorf("carol is told %q", got)
	}
	for user, unread := range map[string]int{"carol": 2, "dan": 0, "eve": 0} {
		if l := c.inboxOf(user, ""); l.Unread != unread || len(l.Items) != unread {
			t.Errorf("%s: %+v", user, l)
		}
	}
	if item := c.inboxOf("carol", "?limit=1").Items[0]; item.Kind != "Succeeded" || item.Transition.Name != "named" || item.Transition.Cluster != "default" || item.Transition.Resource != "jobs.batch" {
		t.Errorf("%+v", item)
	}
	page := c.inboxOf("carol", "?limit=1&unread=true")
	if next := c.inboxOf("carol", "?limit=1&unread=true&continue="+page.Continue); len(next.Items) != 1 || next.Items[0].Title != "hers failed" || next.Continue != "" {
		t.Errorf("the second page: %+v", next)
	}
	for query, want := range map[string]string{
		"?owner=dan": "owner: there is no such parameter", "?limit=0": "limit: ", "?limit=1001": "limit: ", "?unread=maybe": "unread: ",
		"?continue=%21": "continue: is no token", "?continue=" + page.Continue: "continue: is a token of another question", "?limit=1&limit=2": "limit: given more than once",
	} {
		if a := c.get("/notifications" + query); a.code != 400 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
	for header, code := range map[string]int{"Authorization: ": 401, "Accept: text/html": 406} {
		if a := c.get("/notifications", header); a.code != code {
			t.Errorf("%s: %d %s", header, a.code, a.body)
		}
	}
	own := newTold(t, options(func(o *Options) { o.SeeTheirOwn = true }))
	own.access.permit("carol", auth.Scope{})
	own.lives("b/hidden", "carol", "", jobs.Failed)
	if got := own.titles("carol"); !slices.Equal(got, []string{"hidden failed"}) {
		t.Errorf("where owners see their own, carol is told %q", got)
	}
	none := newGateway(t)
	for _, path := range []string{"/notifications", "/notifications/settings"} {
		if a := none.get(path); a.code != 404 {
			t.Errorf("%s without a history: %d %s", path, a.code, a.body)
		}
	}
}

func TestNotificationStreamTellsAllTabsWhatIsReadAndGoesOnBehindEachNumber(t *testing.T) {
	c := newTold(t)
	c.access.permit("carol", auth.Scope{Namespaces: []string{"a"}})
	empty := c.stream("/notifications", "Authorization: Bearer carol")
	start := empty.expect("synced")
	if empty.close(); !strings.Contains(start.data, `"count":0,"unread":0}`) {
		t.Errorf("%s", start.raw)
	}
	time.Sleep(2 * time.Millisecond)
	c.lives("a/one", "carol", "", jobs.Failed)
	c.lives("b/hidden", "carol", "", jobs.Failed)
	// Nobody else follows the inbox, so nothing wakes the first who comes back.
	c.eventually("nobody follows the inbox", func() bool { return c.streams() == 0 })
	time.Sleep(300 * time.Millisecond) // what is new is known before
	alone := c.stream("/notifications", "Authorization: Bearer carol", "Last-Event-ID: "+start.id)
	if f := alone.expect("notification"); f.field("title") != "one failed" {
		t.Errorf("%s", f.raw)
	}
	alone.close()
	multi := "/stream?jobs=/apis/batch/v1/namespaces/a/jobs&told=" + url.QueryEscape("/notifications?limit=5")
	tabs := []*events{
		c.stream("/notifications?limit=5", "Authorization: Bearer carol"), c.stream(multi, "Authorization: Bearer carol"),
		c.stream("/notifications", "Authorization: Bearer carol", "Last-Event-ID: "+start.id),
	}
	next := func(tab int, want ...string) (last frame) {
		t.Helper()
		for _, event := range want {
			for {
				last = tabs[tab].next()
				name := strings.TrimPrefix(last.event, "told.")
				if name == event {
					break
				}
				if name == "notification" || name == "read" || name == "reset" {
					t.Fatalf("tab %d: %q instead of %s", tab, last.raw, event)
				}
			}
		}
		return last
	}
	if f := next(0, "notification", "synced"); !strings.Contains(f.data, `"count":1,"unread":1}`) {
		t.Errorf("%s", f.raw)
	}
	next(1, "notification", "synced")
	one := next(2, "notification")
	ids := []string{one.id}
	if one.field("title") != "one failed" {
		t.Errorf("%s", one.raw)
	}
	c.lives("a/two", "carol", "", jobs.Succeeded)
	for tab := range tabs {
		f := next(tab, "notification")
		if f.field("title") != "two succeeded" {
			t.Errorf("%s", f.raw)
		}
	}
	ids = append(ids, tabs[2].lastID)
	read := `{"upTo":"` + one.field("id") + `"}`
	for range 2 {
		if a := c.sends("carol", http.MethodPost, "/notifications/read", read); a.code != 204 || a.body != "" {
			t.Errorf("%d %s", a.code, a.body)
		}
	}
	for tab := range tabs {
		if f := next(tab, "read"); f.field("upTo") != one.field("id") || !strings.Contains(f.data, `"unread":1`) {
			t.Errorf("%s", f.raw)
		}
	}
	for n, id := range ids { // what follows is told again from each place
		s := c.stream("/notifications", "Authorization: Bearer carol", "Last-Event-ID: "+id)
		if want := []string{"notification", "read"}[n:]; len(want) > 0 {
			s.expect(want...)
		}
		s.close()
	}
	epoch, _, _ := strings.Cut(one.id, ".")
	visibility := one.id[strings.LastIndexByte(one.id, '-'):]
	for id, reason := range map[string]string{
		epoch + ".n-9999999999999" + visibility: "ahead", epoch + ".n-17" + visibility: "expired", epoch + ".n-17": "epoch", "x" + one.id: "epoch", "%": "unreadable",
	} {
		s := c.stream("/notifications?limit=1", "Authorization: Bearer carol", "Last-Event-ID: "+id)
		s.expect("reset "+reason, "notification", "synced")
		s.close()
	}
	for query, want := range map[string]string{"?unread=true": "unread: ", "?limit=-1": "limit: ", "?owner=dan": "owner: "} {
		if a := c.get("/notifications"+query, "Accept: text/event-stream"); a.code != 400 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
	if a := c.get("/stream?told=/notifications/read", "Accept: text/event-stream"); a.code != 404 {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func TestNotificationsThatMayNotBeSeenAnyMoreAreTakenBack(t *testing.T) {
	c := newTold(t)
	c.access.permit("carol", auth.Scope{All: true})
	c.lives("a/one", "carol", "", jobs.Failed)
	c.lives("b/two", "carol", "", jobs.Failed)
	s := c.stream("/notifications", "Authorization: Bearer carol")
	s.expect("notification", "notification")
	if f := s.expect("synced"); !strings.Contains(f.data, `"unread":2}`) {
		t.Errorf("%s", f.raw)
	}
	c.access.permit("carol", auth.Scope{Namespaces: []string{"b"}})
	s.expect("reset epoch")
	if f := s.expect("notification"); f.field("title") != "two failed" {
		t.Errorf("%s", f.raw)
	}
	if f := s.expect("synced"); !strings.Contains(f.data, `"unread":1}`) {
		t.Errorf("%s", f.raw)
	}
	c.lives("a/three", "carol", "", jobs.Failed)
	c.lives("b/four", "carol", "", jobs.Failed)
	if f := s.expect("notification"); f.field("title") != "four failed" {
		t.Errorf("%s", f.raw)
	}
	c.access.permit("carol", auth.Scope{}) // of an empty inbox the stream goes on
	s.expect("reset epoch", "synced")
}

func TestNotificationSettingsAndMarksRefuseWhatTheyDoNotKnow(t *testing.T) {
	c := newTold(t)
	put := func(body string) answer { return c.sends("carol", http.MethodPut, "/notifications/settings", body) }
	if a := c.get("/notifications/settings", "Authorization: Bearer carol"); a.code != 200 || strings.TrimSpace(a.body) != `{"states":["Succeeded","Failed"],"digest":"0s","pausedUntil":null}` {
		t.Errorf("%d %s", a.code, a.body)
	}
	for body, want := range map[string]string{
		`{"states":["Failed","Failed"],"digest":"300s"}`:        `{"states":["Failed"],"digest":"5m","pausedUntil":null}`,
		`{"states":[],"pausedUntil":"2100-01-02T03:04:05Z"}`:    `{"states":[],"digest":"0s","pausedUntil":"2100-01-02T03:04:05Z"}`,
		`{"digest":"24h","pausedUntil":"2001-01-02T03:04:05Z"}`: `{"states":["Succeeded","Failed"],"digest":"24h","pausedUntil":null}`,
	} {
		if a := put(body); a.code != 200 || strings.TrimSpace(a.body) != want {
			t.Errorf("%s: %d %s", body, a.code, a.body)
		}
		if a := c.get("/notifications/settings", "Authorization: Bearer carol"); strings.TrimSpace(a.body) != want {
			t.Errorf("%s: then %s", body, a.body)
		}
	}
	for _, body := range []string{
		``, `null`, `[]`, `{"states":["Done"]}`, `{"states":"Failed"}`, `{"digest":"25h"}`, `{"digest":"-1s"}`, `{"digest":5}`, `{"digest":"soon"}`, `{"pausedUntil":"tomorrow"}`, `{"other":1}`, `{} {}`,
	} {
		if a := put(body); a.code != 400 {
			t.Errorf("settings %s: %d %s", body, a.code, a.body)
		}
	}
	post := func(body string, headers ...string) answer {
		return c.sends("carol", http.MethodPost, "/notifications/read", body, headers...)
	}
	for _, body := range []string{``, `{}`, `{"upTo":"1","ids":["1"]}`, `{"upTo":1}`, `{"upTo":""}`, `{"upTo":"-1"}`, `{"upTo":"99999999999999999999"}`, `{"ids":["x"]}`, `{"ids":["1"],"owner":"dan"}`,
		`{"ids":[` + strings.Repeat(`"1",`, 500) + `"1"]}`} {
		if a := post(body); a.code != 400 {
			t.Errorf("read %s: %d %s", body, a.code, a.body)
		}
	}
	for body, code := range map[string]int{`{"ids":[]}`: 204, `{"ids":["1","2"]}`: 204, `{"upTo":"5"}`: 204, `{"ids":["` + strings.Repeat("1", 70_000) + `"]}`: 413} {
		if a := post(body); a.code != code {
			t.Errorf("read %.40s: %d %s", body, a.code, a.body)
		}
	}
	if a := post(`{"upTo":"5"}`, "Content-Type: text/plain"); a.code != 415 {
		t.Errorf("%d %s", a.code, a.body)
	}
	for path, allow := range map[string]string{"/notifications": "GET, HEAD, OPTIONS", "/notifications/read": "POST, OPTIONS", "/notifications/settings": "GET, HEAD, PUT, OPTIONS"} {
		if a := c.request(http.MethodDelete, path); a.code != 405 || a.header.Get("Allow") != allow {
			t.Errorf("%s: %d %s", path, a.code, a.header.Get("Allow"))
		}
	}
}

func TestNotificationsOfADatabaseThatIsAwayAreUnavailable(t *testing.T) {
	c := newTold(t)
	c.lives("a/one", "alice", "", jobs.Failed)
	s := c.stream("/notifications")
	s.expect("notification", "synced")
	c.away("inbox_news")
	c.away("inbox_heads")
	s.expect("goodbye unavailable")
	if a := c.get("/notifications/settings"); a.code != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a := c.get("/apis/batch/v1/jobs"); a.code != 200 {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// Anybody may be named as the owner of a job that they may not see. Whoever is, and makes a
// namespace of the same name later, is not told what was in the former one: not where it is known
// which namespace that was, and not where it is not.
func TestNotificationsOfANamespaceAreNotItsNextTenants(t *testing.T) {
	c := newTold(t)
	c.access.permit("mallory", auth.Scope{Namespaces: []string{"blue"}})
	c.access.permit("eve", auth.Scope{Names: map[string][]string{"blue": {"hers"}}})
	c.access.permit("root", auth.Scope{All: true})
	for _, user := range []string{"mallory", "eve", "root"} {
		c.lives("blue/hers", user, "", jobs.Running, jobs.Failed)
		now := c.at
		c.at = jobs.At(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)) // before each namespace that lives
		c.livesIn("", "blue/hers", user, "", jobs.Failed)
		c.at = now
		if got := c.titles(user); !slices.Contains(got, "hers failed") {
			t.Errorf("%s is told %q in the namespace's own life", user, got)
		}
	}
	c.remade("blue")
	for user, want := range map[string]int{"mallory": 0, "eve": 0, "root": 2} {
		if l := c.inboxOf(user, ""); len(l.Items) != want || l.Unread != want {
			t.Errorf("%s is told of the former tenant: %+v", user, l)
		}
		s := c.stream("/notifications", "Authorization: Bearer "+user)
		if synced := s.until("synced"); synced.field("count") != strconv.Itoa(want) {
			t.Errorf("%s: %s", user, synced.raw)
		}
		s.close()
	}
	s := c.stream("/notifications", "Authorization: Bearer mallory")
	s.until("synced")
	c.lives("blue/next", "mallory", "", jobs.Succeeded)
	c.livesIn("", "blue/after", "mallory", "", jobs.Succeeded) // seen when this one was there
	for _, want := range []string{"next succeeded", "after succeeded"} {
		if f := s.until("notification"); f.field("title") != want {
			t.Errorf("%s instead of %s", f.raw, want)
		}
	}
	s.close()
	c.api.Intercept(func(r *http.Request) *apitest.Fault {
		if r.URL.Path == "/api/v1/namespaces/blue" {
			return apitest.Refuse(403)
		}
		return nil
	})
	if a := c.get("/notifications", "Authorization: Bearer mallory"); a.code != 503 || strings.Contains(a.body, apitest.SecretDetail) {
		t.Errorf("what cannot be asked: %d %s", a.code, a.body)
	}
}

// A notification is of a transition, and its reader may not see all of the kind: whatever happens
// to others, they are told the same.
func TestNotificationsDoNotCountOthersTransitions(t *testing.T) {
	for _, hidden := range []int{0, 50} {
		c := newTold(t)
		for range 2 {
			for n := range hidden {
				c.lives(fmt.Sprint("b/hidden-", n), "bob", "", jobs.Running)
			}
			c.lives("a/hers", "carol", "", jobs.Running, jobs.Succeeded)
		}
		a := c.get("/notifications", "Authorization: Bearer carol")
		s := c.stream("/notifications", "Authorization: Bearer carol")
		told := a.body + s.next().data + s.next().data
		seqs := sealedNumber.FindAllStringSubmatch(told, -1)
		if plain := unsealedNumber.FindString(told); len(seqs) != 4 || plain != "" || seqs[0][2] != seqs[3][2] || seqs[0][2] == seqs[1][2] {
			t.Errorf("%v, %s", seqs, plain)
		}
		// The text is that by which the history names the transition.
		c.access.permit("carol", auth.Scope{Namespaces: []string{"a"}})
		if past := c.get(allJobs+"?view=transitions&limit=1", "Authorization: Bearer carol"); !strings.Contains(past.body, `"seq":"`+seqs[0][2]+`"`) {
			t.Errorf("%s is not in %s", seqs[0][2], past.body)
		}
		s.close()
	}
}
