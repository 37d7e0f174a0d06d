package http

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/rules"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// chronicle is a gateway with a history that the test writes.
type chronicle struct {
	*gateway
	file string // of the database
	db   *store.Store
	log  store.Log
	past *service.Service
	at   jobs.Time
	why  *jobs.Cause // of jobs that fail
}

// newChronicle runs a gateway with an empty history in a file.
func newChronicle(t *testing.T, opts ...option) *chronicle {
	t.Helper()
	database := store.Options{Address: "sqlite", StateDir: t.TempDir()}
	a := openJobs(t, database)
	c := &chronicle{past: a, file: filepath.Join(database.StateDir, "history.db"), at: jobs.At(time.Now().Add(-100 * time.Hour).Truncate(time.Second))}
	c.gateway = newGateway(t, append([]option{options(func(o *Options) {
		o.History = a
		o.Stream.Heartbeat, o.Reauthorize = time.Hour, time.Hour // so that no stream is woken that should have been before
	})}, opts...)...)
	var err error
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
	return c
}

// openJobs makes ready the history in a database.
func openJobs(t *testing.T, database store.Options) *service.Service {
	t.Helper()
	set, err := rules.New(rules.Options{Key: "history", Kinds: []rules.KindRules{{Resource: goneKind}}})
	if err != nil {
		t.Fatal(err)
	}
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
	return a
}

// goneKind is recorded, and the cluster does not have it.
const goneKind = "pytorchjobs.kubeflow.org"

// The history of a kind that the cluster does not have any more is there for those who may list
// such objects; without one, there is no such kind.
func TestHistoryOutlivesItsKind(t *testing.T) {
	c := newChronicle(t)
	gone := func(rest string) string { return "/history/apis/kubeflow.org/v1/" + rest }
	if a := c.get(gone("pytorchjobs")); a.code != 404 || !strings.Contains(a.body, "could not find") {
		t.Errorf("%d %s", a.code, a.body)
	}
	c.access.permit("narrow", auth.Scope{Namespaces: []string{"a"}})
	c.access.permit("nobody", auth.Scope{})
	if a := c.get(gone("pytorchjobs"), "Authorization: Bearer nobody"); a.code != 403 {
		t.Errorf("%d %s", a.code, a.body)
	}
	var err error
	if c.log, err = c.db.Take(t.Context(), store.LogName{Cluster: c.log.Cluster, Resource: goneKind}, "default", "test", time.Hour); err != nil {
		t.Fatal(err)
	}
	c.lives("a/one", "alice", "", jobs.Running, jobs.Deleted)
	c.lives("b/two", "bob", "", jobs.Running)
	c.tells(gone("pytorchjobs"), "alice", "two:Running one:Deleted")
	c.tells(gone("namespaces/a/pytorchjobs/one"), "alice", "one:Deleted")
	c.tells(gone("pytorchjobs"), "narrow", "one:Deleted")
	for _, path := range []string{gone("pytorchjobs"), gone("namespaces/a/pytorchjobs/one")} {
		if a := c.get(path, "Authorization: Bearer nobody"); a.code != 403 {
			t.Errorf("%d %s", a.code, a.body)
		}
	}
	if a := c.get(gone("namespaces/b/pytorchjobs"), "Authorization: Bearer narrow"); a.code != 403 {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// lives writes a job that goes through states, an hour each. Owner and queue may be left out.
func (c *chronicle) lives(key, owner, queue string, states ...jobs.State) (uid string) {
	c.t.Helper()
	namespace, _, _ := strings.Cut(key, "/")
	if c.api.UID("namespaces", namespace) == "" {
		c.api.Put("namespaces", namespace)
	}
	return c.livesIn(c.api.UID("namespaces", namespace), key, owner, queue, states...)
}

// livesIn is lives in the namespace of a uid.
func (c *chronicle) livesIn(home, key, owner, queue string, states ...jobs.State) (uid string) {
	c.t.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	c.at += 60_000
	identity := jobs.ObjectID{UID: fmt.Sprintf("uid-%d", c.log.Version), Namespace: namespace, Name: name}
	var job *jobs.Job
	batch := store.Batch{To: c.log.Version}
	for i, state := range states {
		batch.To++
		seen := jobs.Seen{
			ObjectID: identity, Version: batch.To, Created: c.at, Observed: c.at + jobs.Time(i)*3_600_000, Deleted: state == jobs.Deleted,
			Said: jobs.Said{State: state, Owner: owner, Queue: queue, Requests: map[string]string{"cpu": "2"}},
		}
		next, transition := jobs.Next(job, seen)
		if job = next; next == nil {
			c.t.Fatalf("%s does not follow", state)
		}
		next.NamespaceUID, transition.NamespaceUID = home, home
		if state == jobs.Failed {
			next.Cause, transition.Cause = c.why, c.why
		}
		batch.Transitions = append(batch.Transitions, transition)
	}
	batch.Jobs = []*jobs.Job{job}
	var err error
	if c.log, err = c.db.Write(c.t.Context(), c.log, batch); err != nil {
		c.t.Fatal(err)
	}
	return identity.UID
}

// itemsOf are the items of an answer, as name:state, or name:from→to.
func itemsOf(t testing.TB, a answer) (items []string, next string) {
	t.Helper()
	var page struct {
		Items []struct {
			Name, State string
			From        *string
			To          string
		}
		Continue *string
	}
	if err := json.Unmarshal([]byte(a.body), &page); a.code != 200 || err != nil || page.Continue == nil || page.Items == nil {
		t.Fatalf("%d %s %v", a.code, a.body, err)
	}
	for _, i := range page.Items {
		switch {
		case i.To == "":
			items = append(items, i.Name+":"+i.State)
		case i.From == nil:
			items = append(items, i.Name+":→"+i.To)
		default:
			items = append(items, i.Name+":"+*i.From+"→"+i.To)
		}
	}
	return items, *page.Continue
}

func (c *chronicle) tells(path, user, want string) {
	c.t.Helper()
	if items, _ := itemsOf(c.t, c.get(path, "Authorization: Bearer "+user)); strings.Join(items, " ") != want {
		c.t.Errorf("%s: %s is told %q, not %q", path, user, items, want)
	}
}

const allJobs = "/history/apis/batch/v1/jobs"

func TestHistoryIsFilteredByEachOfItsParameters(t *testing.T) {
	c := newChronicle(t)
	uid := c.lives("a/one", "alice", "gold", jobs.Submitted, jobs.Running, jobs.Succeeded)
	c.lives("a/two", "bob", "", jobs.Suspended)
	c.lives("b/one", "alice", "", jobs.Pending, jobs.Running, jobs.Deleted)
	at := func(hours float64) string {
		return url.QueryEscape((c.at + jobs.Time(hours*3_600_000)).Std().Format(time.RFC3339))
	}
	for path, want := range map[string]string{
		allJobs: "one:Deleted two:Suspended one:Succeeded",
		"/history/clusters/default/apis/batch/v1/jobs":            "one:Deleted two:Suspended one:Succeeded",
		"/history/apis/batch/v1/namespaces/a/jobs":                "two:Suspended one:Succeeded",
		"/history/apis/batch/v1/namespaces/a/jobs/one":            "one:Succeeded",
		"/history/apis/batch/v1/namespaces/none/jobs":             "",
		"/history/apis/batch/v1/namespaces/a/jobs/%27%20OR%201=1": "",
		allJobs + "?state=Suspended,Deleted":                      "one:Deleted two:Suspended",
		allJobs + "?state=Suspended&state=Deleted":                "one:Deleted two:Suspended",
		allJobs + "?owner=bob":                                    "two:Suspended",
		allJobs + "?owner=me":                                     "one:Deleted one:Succeeded",
		allJobs + "?owner=me,bob&state=Suspended":                 "two:Suspended",
		allJobs + "?owner=" + escape("x' OR '1'='1"):              "",
		allJobs + "?owner=ALICE":                                  "",
		allJobs + "?owner=" + escape("alice "):                    "",
		allJobs + "?queue=gold":                                   "one:Succeeded",
		allJobs + "?queue=" + escape("%"):                         "",
		allJobs + "?uid=" + uid:                                   "one:Succeeded",
		allJobs + "?search=n":                                     "one:Deleted one:Succeeded",
		allJobs + "?search=WO":                                    "two:Suspended",
		allJobs + "?search=one&state=Succeeded,Suspended":         "one:Succeeded",
		allJobs + "?search=_":                                     "",
		allJobs + "?search=" + escape("%"):                        "",
		allJobs + "?view=transitions&search=wo":                   "two:→Suspended",
		"/history/apis/batch/v1/namespaces/a/jobs/two?search=n":   "",
		allJobs + "?since=" + at(1.5):                             "one:Deleted one:Succeeded",
		allJobs + "?until=" + at(1.5):                             "two:Suspended",
		allJobs + "?since=1h":                                     "",
		allJobs + "?since=2000h&until=0s":                         "one:Deleted two:Suspended one:Succeeded",
		allJobs + "?limit=2":                                      "one:Deleted two:Suspended",
		allJobs + "?view=transitions&uid=" + uid:                  "one:Running→Succeeded one:Submitted→Running one:→Submitted",
		allJobs + "?view=transitions&state=Deleted,Succeeded":     "one:Running→Deleted one:Running→Succeeded",
		allJobs + "?view=transitions&owner=bob":                   "two:→Suspended",
		allJobs + "?view=transitions&limit=1":                     "one:Running→Deleted",
	} {
		c.tells(path, "alice", want)
	}
	a := c.get(allJobs+"?uid="+uid, "Authorization: Bearer alice")
	created := (c.at - 120_000).Std().Format(time.RFC3339)
	if want := `{"items":[{"cluster":"default","resource":"jobs.batch","namespace":"a","namespaceUID":"` + c.api.UID("namespaces", "a") + `","name":"one","uid":"` + uid + `","owner":"alice","queue":"gold",` +
		`"state":"Succeeded","since":"` + (c.at - 120_000 + 7_200_000).Std().Format(time.RFC3339) + `","reason":"","message":"","attempt":1,"createdAt":"` + created +
		`","startedAt":"` + (c.at - 120_000 + 3_600_000).Std().Format(time.RFC3339) + `","endedAt":"` + (c.at - 120_000 + 7_200_000).Std().Format(time.RFC3339) +
		`","deletedAt":null,"durations":{"Running":3600,"Submitted":3600},"waited":{"seconds":3600,"since":null},"ran":{"seconds":3600,"since":null},"requests":{"cpu":"2"},"reasons":[],"cause":null,"progress":null,"parent":null,"children":0,"log":false,"spec":false,"hours":null,"podFailures":null,"preemptions":null,"podCount":null,"pods":[]}],"continue":""}` + "\n"; a.body != want {
		t.Errorf("%s, not %s", a.body, want)
	}
	a = c.get(allJobs + "?view=transitions&limit=1&uid=" + uid)
	if !strings.HasPrefix(a.body, `{"items":[{"seq":"3","cluster":"default","resource":"jobs.batch","namespace":"a","namespaceUID":"`+c.api.UID("namespaces", "a")+`","name":"one","uid":"`+uid+
		`","resourceVersion":"3","from":"Running","to":"Succeeded","at":"`) || !strings.Contains(a.body, `"late":false,"attempt":1,"reason":"","message":"","owner":"alice","cause":null}`) {
		t.Error(a.body)
	}
	if a.header.Get("Content-Type") != "application/json" || a.header.Get("Cache-Control") != "no-store" {
		t.Error(a.header)
	}
}

// What cannot be understood is refused, and nothing of the inside is told: what was misspelled
// would show more than was meant.
func TestHistoryRefusesWhatItDoesNotKnow(t *testing.T) {
	c := newChronicle(t)
	c.lives("a/one", "alice", "", jobs.Submitted)
	c.lives("a/two", "alice", "", jobs.Submitted)
	_, token := itemsOf(t, c.get(allJobs+"?limit=1"))
	_, ofTransitions := itemsOf(t, c.get(allJobs+"?limit=1&view=transitions"))
	if token == "" || ofTransitions == "" {
		t.Fatal("there are no tokens")
	}
	many := strings.Repeat("x,", 100) + "x"
	for path, want := range map[string]struct {
		code int
		text string
	}{
		allJobs + "?onwer=me":                                        {400, "onwer: there is no such parameter"},
		allJobs + "?labelSelector=a":                                 {400, "labelSelector: there is no such parameter"},
		allJobs + "?owner=":                                          {400, "owner: has an empty value"},
		allJobs + "?owner=a,,b":                                      {400, "owner: has an empty value"},
		allJobs + "?owner=%00":                                       {400, "owner: has a value that nothing can have"},
		allJobs + "?uid=%ff":                                         {400, "uid: has a value that nothing can have"},
		allJobs + "?queue=" + strings.Repeat("q", 257):               {400, "queue: has a value that nothing can have"},
		allJobs + "?uid=" + many:                                     {400, "uid: has more than 100 values"},
		allJobs + "?search=":                                         {400, "search: has an empty value"},
		allJobs + "?search=a&search=b":                               {400, "search: is given twice"},
		allJobs + "?search=%ff":                                      {400, "search: has a value that no name can contain"},
		allJobs + "?view=runs&search=a":                              {400, "search: has a meaning with"},
		allJobs + "?view=usage&search=a":                             {400, "search: has a meaning with"},
		allJobs + "?view=ends&search=a":                              {400, "search: has a meaning with"},
		allJobs + "?search=two&continue=" + token:                    {400, "continue: is a token of another question"},
		allJobs + "?state=Done":                                      {400, `state: \"Done\" is none; there are [Submitted`},
		allJobs + "?view=all":                                        {400, `view: \"all\" is none`},
		allJobs + "?limit=0":                                         {400, "limit: "},
		allJobs + "?limit=1001":                                      {400, "limit: "},
		allJobs + "?limit=-1":                                        {400, "limit: "},
		allJobs + "?limit=99999999999999999999":                      {400, "limit: "},
		allJobs + "?since=yesterday":                                 {400, "since: "},
		allJobs + "?since=-1h":                                       {400, "since: "},
		allJobs + "?until=2026-01-01":                                {400, "until: "},
		allJobs + "?since=1h&since=2h":                               {400, "since: "},
		allJobs + "?continue=x":                                      {400, "continue: is no token"},
		allJobs + "?continue=" + ofTransitions:                       {400, "continue: is a token of another question"},
		allJobs + "?view=transitions&continue=" + token:              {400, "continue: is a token of another question"},
		allJobs + "?owner=me&continue=" + token:                      {400, "continue: is a token of another question"},
		"/history/apis/batch/v1/namespaces/a/jobs?continue=" + token: {400, "continue: is a token of another question"},
		allJobs + "?%zz":                                             {400, "malformed"},
		"/history/api/v1/pods":                                       {404, "no history is kept of this kind"},
		"/history/apis/batch/v1":                                     {404, "below /history stands the path"},
		"/history/apis/batch/v1/namespaces/a/jobs/one/status":        {404, "below /history stands the path"},
		"/history/apis/batch/v1/namespaces/%00/jobs":                 {404, "below /history stands the path"},
		"/history/apis/batch/v1/namespaces/%ff/jobs":                 {404, "below /history stands the path"},
		"/history/apis/batch/v9/jobs":                                {404, "could not find"},
		"/history/apis/batch/v1/jobs/one":                            {404, "could not find"},
		"/history/clusters/none/apis/batch/v1/jobs":                  {404, "no cluster"},
		"/history/": {404, "below /history stands the path"},
	} {
		a := c.get(path)
		if a.code != want.code || !strings.Contains(a.body, want.text) || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s, not %d %s", path, a.code, a.body, want.code, want.text)
		}
	}
	if a := c.get(allJobs, "Accept: text/html"); a.code != 406 {
		t.Errorf("%d", a.code)
	}
	if a := c.get(allJobs, "Authorization: "); a.code != 401 || a.header.Get("WWW-Authenticate") == "" {
		t.Errorf("%d %v", a.code, a.header)
	}
	if a := c.request("POST", allJobs); a.code != 405 {
		t.Errorf("%d", a.code)
	}
	if a := newGateway(t).get(allJobs); a.code != 404 || !strings.Contains(a.body, "keeps no history") {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// Who may not list a job now does not see it, deleted or not, in no view and by no parameter, as if it were not there.
func TestHistoryShowsOnlyWhatMayBeListed(t *testing.T) {
	c := newChronicle(t)
	for _, namespace := range []string{"a", "b"} {
		c.lives(namespace+"/lives", "bob", "", jobs.Running)
		c.lives(namespace+"/gone", "bob", "", jobs.Running, jobs.Deleted)
	}
	hidden := c.lives("c/hidden", "carol", "gold", jobs.Running, jobs.Deleted)
	c.access.permit("narrow", auth.Scope{Namespaces: []string{"b"}, Names: map[string][]string{"a": {"gone"}, "c": {"other"}}})
	c.access.permit("named", auth.Scope{Names: map[string][]string{"": {"gone"}}})
	c.access.permit("nobody", auth.Scope{})
	c.access.permit("carol", auth.Scope{Namespaces: []string{"a"}})
	for path, want := range map[string]string{
		allJobs:                       "gone:Deleted lives:Running gone:Deleted",
		allJobs + "?view=transitions": "gone:Running→Deleted gone:→Running lives:→Running gone:Running→Deleted gone:→Running",
		"/history/apis/batch/v1/namespaces/a/jobs":      "gone:Deleted",
		"/history/apis/batch/v1/namespaces/a/jobs/gone": "gone:Deleted",
		allJobs + "?uid=" + hidden:                      "",
		allJobs + "?owner=carol":                        "",
		allJobs + "?queue=gold&view=transitions":        "",
		allJobs + "?limit=1000&state=Deleted":           "gone:Deleted gone:Deleted",
		allJobs + "?search=hidden":                      "",
		allJobs + "?search=i":                           "lives:Running",
		allJobs + "?search=gon":                         "gone:Deleted gone:Deleted",
		allJobs + "?view=transitions&search=live":       "lives:→Running",
	} {
		c.tells(path, "narrow", want)
	}
	c.tells(allJobs, "named", "gone:Deleted gone:Deleted")
	c.tells(allJobs+"?owner=me", "carol", "") // hers is in c, and owners are as permitted
	for _, path := range []string{allJobs, "/history/apis/batch/v1/namespaces/c/jobs", "/history/apis/batch/v1/namespaces/c/jobs/hidden", allJobs + "?owner=me"} {
		if a := c.get(path, "Authorization: Bearer nobody"); a.code != 403 || strings.Contains(a.body, hidden) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	for _, path := range []string{"/history/apis/batch/v1/namespaces/a/jobs/lives", "/history/apis/batch/v1/namespaces/a/jobs/never-was"} {
		if a := c.get(path, "Authorization: Bearer narrow"); a.code != 403 {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	// A permission that is gone takes effect at once, also within a walk.
	_, token := itemsOf(t, c.get(allJobs+"?limit=1", "Authorization: Bearer narrow"))
	c.access.permit("narrow", auth.Scope{Namespaces: []string{"a"}})
	c.tells(allJobs+"?limit=10&continue="+token, "narrow", "gone:Deleted lives:Running")
}

// Where history.owners lets them, callers see their own jobs, and nobody else's besides.
func TestHistoryShowsCallersTheirOwnJobsWhereTheyMay(t *testing.T) {
	c := newChronicle(t, options(func(o *Options) { o.SeeTheirOwn = true }))
	c.lives("a/hers", "carol", "", jobs.Running)
	c.lives("a/bobs", "bob", "", jobs.Running)
	c.lives("b/bobs", "bob", "", jobs.Running)
	c.lives("b/hers", "carol", "", jobs.Running, jobs.Deleted)
	c.lives("b/strangers", "system:anonymous", "", jobs.Running)
	c.access.permit("carol", auth.Scope{})
	c.access.permit("dan", auth.Scope{Namespaces: []string{"a"}})
	c.access.permit("bob", auth.Scope{Namespaces: []string{"a"}})
	c.access.permit("system:anonymous", auth.Scope{})
	c.tells(allJobs+"?owner=me", "carol", "hers:Deleted hers:Running")
	c.tells(allJobs+"?owner=me,bob", "carol", "hers:Deleted hers:Running")
	c.tells(allJobs+"?owner=me&view=transitions", "carol", "hers:Running→Deleted hers:→Running hers:→Running")
	c.tells("/history/apis/batch/v1/namespaces/b/jobs?owner=me", "carol", "hers:Deleted")
	c.tells("/history/apis/batch/v1/namespaces/b/jobs/hers?owner=me", "carol", "hers:Deleted")
	c.tells("/history/apis/batch/v1/namespaces/b/jobs/bobs?owner=me", "carol", "")
	c.tells(allJobs+"?owner=me", "dan", "")
	c.tells(allJobs, "bob", "bobs:Running hers:Running")
	c.tells(allJobs+"?owner=me,carol", "bob", "bobs:Running bobs:Running hers:Running")
	for _, path := range []string{allJobs, allJobs + "?owner=carol", "/history/apis/batch/v1/namespaces/a/jobs/hers"} {
		if a := c.get(path, "Authorization: Bearer carol"); a.code != 403 {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	// A service account is a user of its own cluster only. In another one somebody else has that name.
	c.access.set(func(a *fakeAuth) { a.home = map[string]string{"carol": c.kinds.Cluster().Name()} })
	c.tells(allJobs+"?owner=me", "carol", "hers:Deleted hers:Running")
	c.access.set(func(a *fakeAuth) { a.home["carol"] = "another" })
	if a := c.get(allJobs+"?owner=me", "Authorization: Bearer carol"); a.code != 403 {
		t.Errorf("%d %s", a.code, a.body)
	}
	c.access.set(func(a *fakeAuth) { a.anonymous = true })
	if a := c.get(allJobs+"?owner=me", "Authorization: "); a.code != 403 {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// Pages hold each job once, the newest first, whatever is written meanwhile, also those that are
// larger than what is read at once.
func TestHistoryPagesGoOnWhereTheyEnded(t *testing.T) {
	c := newChronicle(t)
	var want []string
	for i := range 250 {
		if i%3 > 0 {
			c.at -= 60_000 // several are of one time
		}
		want = append(want, c.lives("a/"+fmt.Sprint(i), "alice", "", jobs.Submitted))
	}
	for _, limit := range []int{1000, 100, 99, 101, 7} {
		for _, view := range []string{"jobs", "transitions"} {
			got, next := map[string]bool{}, ""
			for pages := 0; pages == 0 || next != ""; pages++ {
				a := c.patiently(fmt.Sprintf("%s?view=%s&since=200h&limit=%d&continue=%s", allJobs, view, limit, next))
				var page struct {
					Items    []struct{ UID string }
					Continue string
				}
				if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.code != 200 || len(page.Items) > limit || page.Continue != "" && len(page.Items) < limit {
					t.Fatalf("limit %d: %d %v: %d items", limit, a.code, err, len(page.Items))
				}
				for _, item := range page.Items {
					if got[item.UID] {
						t.Errorf("limit %d: %s is told twice", limit, item.UID)
					}
					got[item.UID] = true
				}
				if next = page.Continue; limit < 100 && pages < 3 {
					c.lives("a/new", "alice", "", jobs.Submitted)
				}
			}
			if !slices.ContainsFunc(want, func(uid string) bool { return got[uid] }) || slices.ContainsFunc(want, func(uid string) bool { return !got[uid] }) {
				t.Errorf("limit %d: of %d jobs %d are told", limit, len(want), len(got))
			}
		}
	}
}

// Pages of large jobs end before their limit, so that no answer takes a gateway's memory.
func TestHistoryPagesAreBoundedInBytes(t *testing.T) {
	c := newChronicle(t)
	batch := store.Batch{To: 1}
	for i := range 120 {
		identity := jobs.ObjectID{UID: fmt.Sprintf("%03d", i), Namespace: "a", Name: "large"}
		requests := map[string]string{}
		for n := range 64 {
			requests[fmt.Sprintf("%d%s", n, strings.Repeat("<", 200))] = "1" // in JSON six times as long
		}
		job, transition := jobs.Next(nil, jobs.Seen{ObjectID: identity, Version: 1, Created: 1, Observed: 1, Said: jobs.Said{State: jobs.Running, Requests: requests}})
		batch.Jobs, batch.Transitions = append(batch.Jobs, job), append(batch.Transitions, transition)
	}
	if _, err := c.db.Write(t.Context(), c.log, batch); err != nil {
		t.Fatal(err)
	}
	seen, next := 0, ""
	for pages := 0; pages == 0 || next != ""; pages++ {
		a := c.patiently(allJobs + "?limit=1000&continue=" + next)
		items, more := itemsOf(t, a)
		if len(a.body) > 5<<20 || len(items) == 0 {
			t.Fatalf("a page has %d bytes, %d items", len(a.body), len(items))
		}
		seen, next = seen+len(items), more
	}
	if seen != 120 {
		t.Errorf("%d of 120 are told", seen)
	}
}

// A database that is away is 503, with a time to come back, and lists go on.
func TestHistoryOfADatabaseThatIsAwayIsUnavailable(t *testing.T) {
	set, err := rules.New(rules.Options{Key: "history"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := service.New(service.Options{
		Database: store.Options{Address: "postgres://u:" + apitest.SecretDetail + "@127.0.0.1:1/d?connect_timeout=1"}, Rules: set,
		Serves: func(string, string) bool { return true }, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	g := newGateway(t, options(func(o *Options) { o.History = a }))
	if got := g.get(allJobs); got.code != 503 || got.header.Get("Retry-After") == "" || strings.Contains(got.body, apitest.SecretDetail) {
		t.Errorf("%d %v %s", got.code, got.header, got.body)
	}
	if got := g.get("/apis/batch/v1/jobs"); got.code != 200 {
		t.Errorf("%d", got.code)
	}
}

// Questions to the history count among their user's lists and gets: one is answered at a time here,
// and sixteen more wait.
func TestHistoryWaitsForItsUsersTurn(t *testing.T) {
	c := newChronicle(t, options(func(o *Options) { o.Limits.RequestsPerUser = 1 }))
	c.lives("a/one", "alice", "", jobs.Running)
	hang := make(chan struct{})
	c.access.set(func(a *fakeAuth) { a.hang = hang })
	codes := make(chan int, 18)
	var asking sync.WaitGroup
	for i := range cap(codes) {
		path := allJobs
		if i%3 == 0 {
			path = "/apis/batch/v1/jobs"
		}
		asking.Go(func() { codes <- c.get(path).code })
	}
	if code := <-codes; code != 429 {
		t.Errorf("one too many is answered with %d", code)
	}
	close(hang)
	asking.Wait()
	close(codes)
	for code := range codes {
		if code != 200 {
			t.Errorf("one that waited is answered with %d", code)
		}
	}
}
