package http

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/recorder"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// runs writes jobs of one transition each.
func (c *chronicle) runs(keys ...string) {
	c.t.Helper()
	for _, key := range keys {
		c.lives(key, "bob", "", jobs.Running)
	}
}

// crowd writes so many jobs at once, which run and succeed.
func (c *chronicle) crowd(n int) {
	c.t.Helper()
	batch := store.Batch{To: c.log.Version + 1}
	for i := range n {
		var job *jobs.Job
		for _, state := range []jobs.State{jobs.Running, jobs.Succeeded} {
			next, transition := jobs.Next(job, jobs.Seen{
				ObjectID: jobs.ObjectID{UID: fmt.Sprint("crowd-", c.log.Seq, "-", i), Namespace: "a", Name: "j"},
				Version:  batch.To, Observed: c.at, Said: jobs.Said{State: state},
			})
			job, batch.Transitions = next, append(batch.Transitions, transition)
		}
		batch.Jobs = append(batch.Jobs, job)
	}
	var err error
	if c.log, err = c.db.Write(c.t.Context(), c.log, batch); err != nil {
		c.t.Fatal(err)
	}
}

// away takes the database away, and gives what brings it back.
func (c *chronicle) away(table string) (back func()) {
	c.t.Helper()
	db, err := sql.Open("sqlite", c.file)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = db.Close() })
	rename := func(from, to string) {
		if _, err := db.Exec("ALTER TABLE " + from + " RENAME TO " + to); err != nil {
			c.t.Fatal(err)
		}
	}
	rename(table, "gone_"+table)
	return func() { rename("gone_"+table, table) }
}

// numbers reads so many transitions, which must be the next events, and returns their numbers and
// the positions behind them.
func (s *events) numbers(n int) (seqs, ids []string) { return s.transitions(n, "seq") }

// jobs is numbers for the names of the transitions' jobs.
func (s *events) jobs(n int) (names, ids []string) { return s.transitions(n, "name") }

func (s *events) transitions(n int, field string) (values, ids []string) {
	s.t.Helper()
	for range n {
		f := s.next()
		if _, name, of := strings.Cut(f.event, "."); f.event != "transition" && !(of && name == "transition") {
			s.t.Fatalf("%q instead of a transition", f.raw)
		}
		values, ids = append(values, f.field(field)), append(ids, f.id)
	}
	return values, ids
}

func count(from, to int) (all []string) {
	for i := from; i <= to; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// TestHistoryStreamGoesOnBehindEachNumber: whoever is cut off anywhere, and comes back to whatever
// replica, is told what follows, once.
func TestHistoryStreamGoesOnBehindEachNumber(t *testing.T) {
	c := newChronicle(t)
	empty := c.stream(allJobs + "?limit=0")
	if f := empty.expect("synced"); f.data != `{"seq":"0","count":0}` || !strings.HasSuffix(f.id, ".h-p0") {
		t.Errorf("%s", f.raw)
	}
	c.runs("a/1", "a/2", "b/3", "a/4", "b/5")
	s := c.stream(allJobs + "?limit=2")
	seqs, ids := s.numbers(2)
	if f := s.expect("synced"); !slices.Equal(seqs, count(4, 5)) || f.data != `{"seq":"5","count":2}` || f.id != ids[1] || !strings.HasSuffix(f.id, ".h-5") {
		t.Errorf("%v, %s", seqs, f.raw)
	}
	c.runs("a/6", "b/7")
	live, more := s.numbers(2)
	if !slices.Equal(live, count(6, 7)) {
		t.Errorf("%v", live)
	}
	all := slices.Concat([]string{empty.lastID}, ids, more)
	for i, id := range all {
		from := []int{1, 5, 6, 7, 8}[i]
		again := c.stream(allJobs, "Last-Event-ID: "+id)
		if seqs, _ := again.numbers(7 - from + 1); !slices.Equal(seqs, count(from, 7)) {
			t.Errorf("behind %s: %v", id, seqs)
		}
		again.close()
	}
	last := c.stream(allJobs, "Last-Event-ID: "+all[4])
	c.runs("a/8")
	if seqs, _ := last.numbers(1); seqs[0] != "8" {
		t.Errorf("%v", seqs)
	}
}

// TestHistoryStandsBesideWatches on one connection, whose ids name where both stand.
func TestHistoryStandsBesideWatches(t *testing.T) {
	c := newChronicle(t)
	c.runs("a/1")
	path := "/stream?past=" + url.QueryEscape(allJobs+"?limit=10&heartbeat=20s") + "&jobs=/apis/batch/v1/jobs"
	s := c.stream(path)
	seen := map[string]bool{}
	for range 3 {
		seen[s.next().event] = true
	}
	if !seen["past.transition"] || !seen["past.synced"] || !seen["jobs.synced"] {
		t.Errorf("%v", seen)
	}
	id := s.lastID
	if !strings.Contains(id, ".jobs-") || !strings.HasSuffix(id, ".past-1") {
		t.Errorf("the position is %s", id)
	}
	s.close()
	c.runs("a/2")
	again := c.stream(path, "Last-Event-ID: "+id)
	if seqs, _ := again.numbers(1); seqs[0] != "2" {
		t.Errorf("%v", seqs)
	}
	for query, want := range map[string]string{
		"?past=" + allJobs + "%3Flimit%3D1001":                 "past: limit: ",
		"?past=" + allJobs + "%3Fview%3Djobs":                  `past: view: \"jobs\" is not streamed`,
		"?past=" + allJobs + "%3Fcontinue%3Dx":                 "past: continue: ",
		"?past=" + allJobs + "%3FonwerX%3Dx":                   "past: onwerX: there is no such parameter",
		"?past=" + allJobs + "%3FlastEventId%3Dx":              "there is one position",
		"?past=/history/api/v1/pods":                           "past: no history is kept of this kind",
		"?past=/history/apis/batch/v1/namespaces/a/jobs/b/c":   "past: below /history",
		"?past=" + allJobs + "%3Fheartbeat%3Dsoon":             "heartbeat",
		"?past=/history/clusters/none/apis/batch/v1/jobs":      "no cluster",
		"?past=" + allJobs + "%3Fticket%3Dx&a=/api/v1/pods":    "ticket: is the request's",
		"?past=" + allJobs + "&labelSelector=a&Limit=3&a=/b/c": "neither a parameter",
	} {
		if a := c.get("/stream"+query, "Accept: text/event-stream"); a.code != 400 && a.code != 404 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", query, a.code, a.body)
		}
	}
}

// TestUselessPositionsOfAHistoryAreReset, and the newest follow.
func TestUselessPositionsOfAHistoryAreReset(t *testing.T) {
	c := newChronicle(t)
	c.lives("a/gone", "bob", "", jobs.Running, jobs.Deleted)
	c.runs("a/3", "a/4")
	first := c.stream(allJobs + "?limit=1")
	_, ids := first.numbers(1)
	epoch, _, _ := strings.Cut(ids[0], ".")
	if removed, err := c.db.Expire(t.Context(), c.log, jobs.At(time.Now()), 10); removed.Jobs != 1 || removed.Transitions != 2 || err != nil {
		t.Fatal(removed, err)
	}
	for id, want := range map[string]string{
		epoch + ".h-1":           "reset expired",
		epoch + ".h-p0":          "reset expired",
		epoch + ".h-5":           "reset ahead",
		"other.h-3":              "reset epoch",
		epoch + ".h-3-s00000000": "reset epoch",
		epoch + ".h-3-4":         "reset unreadable",
		epoch + ".h-p7":          "reset unreadable",
		"%":                      "reset unreadable",
	} {
		s := c.stream(allJobs+"?limit=1", "Last-Event-ID: "+id)
		if s.expect(want); strings.Contains(id, "-s0") {
			s.expect("widened")
		}
		if seqs, _ := s.numbers(1); seqs[0] != "4" {
			t.Errorf("%s: %v", id, seqs)
		}
		s.expect("synced")
		s.close()
	}
	for _, id := range []string{epoch + ".h-2", epoch + ".h-3"} {
		s := c.stream(allJobs, "Last-Event-ID: "+id)
		n, _ := strconv.Atoi(strings.TrimPrefix(id, epoch+".h-"))
		if seqs, _ := s.numbers(4 - n); !slices.Equal(seqs, count(n+1, 4)) {
			t.Errorf("%s: %v", id, seqs)
		}
		s.close()
	}
}

// TestHistoryStreamShowsOnlyWhatMayBeWatchedNow: of what may not be seen not even a position tells,
// and no more of it comes once a permission is gone.
func TestHistoryStreamShowsOnlyWhatMayBeWatchedNow(t *testing.T) {
	c := newChronicle(t)
	c.runs("a/1", "b/2", "a/3")
	c.access.permit("dan", auth.Scope{Namespaces: []string{"a"}})
	c.access.permit("nobody", auth.Scope{})
	s := c.stream(allJobs, "Authorization: Bearer dan")
	s.expect("narrowed")
	if names, ids := s.jobs(2); !slices.Equal(names, []string{"1", "3"}) || !strings.Contains(ids[0], ".h-p") {
		t.Errorf("%v %v", names, ids)
	}
	before := s.expect("synced").id
	c.access.permit("dan", auth.Scope{Namespaces: []string{"b"}})
	if f := s.expect("narrowed"); f.data != `{"namespaces":["b"]}` {
		t.Errorf("%s", f.raw)
	}
	c.runs("a/4", "b/5")
	if names, _ := s.jobs(1); names[0] != "5" {
		t.Errorf("%v", names)
	}
	c.stream(allJobs, "Authorization: Bearer dan", "Last-Event-ID: "+before).expect("reset epoch", "narrowed", "transition", "transition", "synced")
	c.access.permit("dan", auth.Scope{All: true})
	s.expect("widened")
	c.runs("a/6")
	if seqs, _ := s.numbers(1); seqs[0] != "6" {
		t.Errorf("%v", seqs)
	}
	c.access.permit("dan", auth.Scope{})
	s.expect("goodbye revoked")
	s.end()
	if a := c.get(allJobs, "Accept: text/event-stream", "Authorization: Bearer nobody"); a.code != 403 {
		t.Errorf("%d %s", a.code, a.body)
	}
	if a := c.get(allJobs, "Accept: text/event-stream", "Authorization: "); a.code != 401 {
		t.Errorf("%d %s", a.code, a.body)
	}
}

// TestHistoryStreamOfOnesOwn goes on without any other permission, where owners see their own.
func TestHistoryStreamOfOnesOwn(t *testing.T) {
	c := newChronicle(t, options(func(o *Options) { o.SeeTheirOwn = true }))
	c.lives("a/hers", "carol", "", jobs.Running)
	c.runs("a/his")
	c.access.permit("carol", auth.Scope{})
	s := c.stream(allJobs+"?owner=me", "Authorization: Bearer carol")
	s.expect("narrowed")
	if names, _ := s.jobs(1); names[0] != "hers" {
		t.Errorf("%v", names)
	}
	s.expect("synced")
	c.access.permit("carol", auth.Scope{Namespaces: []string{"b"}})
	s.expect("widened")
	c.access.permit("carol", auth.Scope{})
	s.expect("narrowed")
	c.runs("a/his-next")
	c.lives("b/hers", "carol", "", jobs.Running)
	if f := s.expect("transition"); f.field("name") != "hers" || f.field("namespace") != "b" {
		t.Errorf("%s", f.raw)
	}
}

// TestReaderThatFallsBehindReadsTheDatabase: who takes nothing while much is written is told all of it, in order.
func TestReaderThatFallsBehindReadsTheDatabase(t *testing.T) {
	c := newChronicle(t)
	s := c.stream(allJobs + "?limit=0&state=Succeeded")
	position := s.expect("synced").id
	s.close()
	slow := c.stream(allJobs + "?limit=0")
	slow.expect("synced")
	const jobCount = 700
	for range 7 {
		c.crowd(jobCount / 7)
	}
	s = c.stream(allJobs+"?state=Succeeded", "Last-Event-ID: "+position)
	for i := range jobCount {
		if f := s.next(); f.event != "transition" || f.field("seq") != strconv.Itoa(2*i+2) {
			t.Fatalf("%d: %s", i, f.raw)
		}
	}
	c.lives("a/last", "bob", "", jobs.Succeeded)
	if f := s.next(); f.field("seq") != strconv.Itoa(2*jobCount+1) {
		t.Errorf("%s", f.raw)
	}
	if seqs, _ := slow.numbers(2*jobCount + 1); !slices.Equal(seqs, count(1, 2*jobCount+1)) {
		t.Errorf("%v", seqs)
	}
}

// TestRareTransitionIsFoundFarAhead: one question looks at a part of the log only, however few of
// it a filter leaves; so what comes behind that part must be asked for, too.
func TestRareTransitionIsFoundFarAhead(t *testing.T) {
	c := newChronicle(t)
	s := c.stream(allJobs + "?limit=0&state=Failed")
	position := s.expect("synced").id
	s.close()
	const parts, jobCount = 11, 1000 // of two transitions each: more than service.maxSpan
	for range parts {
		c.crowd(jobCount)
	}
	c.lives("a/rare", "bob", "", jobs.Failed)
	s = c.stream(allJobs+"?state=Failed", "Last-Event-ID: "+position)
	if f := s.next(); f.event != "transition" || f.field("seq") != strconv.Itoa(2*parts*jobCount+1) {
		t.Errorf("%s", f.raw)
	}
}

// TestHistoryStreamEndsWhenTheDatabaseGoes, with the position, and goes on there once it is back.
func TestHistoryStreamEndsWhenTheDatabaseGoes(t *testing.T) {
	c := newChronicle(t)
	c.runs("a/1")
	s := c.stream(allJobs)
	s.expect("transition", "synced")
	back := c.away("logs")
	if f := s.expect("goodbye unavailable"); !strings.HasSuffix(f.id, ".h-1") {
		t.Errorf("%s", f.raw)
	}
	s.end()
	c.stream(allJobs, "Last-Event-ID: "+s.lastID).expect("goodbye unavailable")
	back()
	c.runs("a/2")
	if seqs, _ := c.stream(allJobs, "Last-Event-ID: "+s.lastID).numbers(1); seqs[0] != "2" {
		t.Errorf("%v", seqs)
	}
}

// TestHistoryStreamSaysThatItsClusterIsAway: nothing is told of it then, which is not the same as
// that nothing happens. It is live again once what happened meanwhile is told.
func TestHistoryStreamSaysThatItsClusterIsAway(t *testing.T) {
	for name, recording := range map[string]bool{"recorded here": true, "recorded by another replica": false} {
		t.Run(name, func(t *testing.T) {
			c := newChronicle(t)
			c.api.Put("jobs", "a/known")
			if recording {
				if err := c.db.Release(t.Context(), c.log.LogName, "test"); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- c.past.Record(ctx, c.kinds) }()
			defer func() {
				stop()
				<-ended
			}()
			c.eventually("it is recorded, or known that another one does", func() bool {
				logs := c.past.Status().Logs
				return len(logs) == 1 && logs[0].Phase == map[bool]recorder.Phase{true: recorder.Recording, false: recorder.Standby}[recording] && (!recording || logs[0].Seq == 1)
			})
			s := c.stream("/stream?past=" + url.QueryEscape(allJobs+"?limit=0"))
			s.expect("past.synced")
			c.api.Away(true)
			s.expect("past.stale unreachable")
			late := c.stream(allJobs + "?limit=0")
			late.expect("synced")
			late.expect("stale unreachable")
			c.api.Put("jobs", "a/meanwhile")
			c.api.Away(false)
			if recording {
				if f := s.expect("past.transition"); !strings.Contains(f.data, "meanwhile") {
					t.Errorf("%s", f.raw)
				}
			}
			s.expect("past.live live")
		})
	}
}

// TestHistoryThatIsWaitedForHoldsUpNoOtherSource of its stream: neither when it begins nor when it catches up.
func TestHistoryThatIsWaitedForHoldsUpNoOtherSource(t *testing.T) {
	c := newChronicle(t, options(func(o *Options) { o.Limits.RequestsPerUser, o.Stream.WriteTimeout = 1, time.Minute }), func(g *gateway, _ *Options) {
		g.wrap = func(l net.Listener) net.Listener { return smallBuffers{l, 256 << 10} }
	})
	c.runs("a/1")
	path := "/stream?a=" + url.QueryEscape(allJobs) + "&b=/api/v1/nodes"
	first := c.stream(path)
	for told := map[string]bool{}; !told["a.synced"] || !told["b.synced"]; {
		told[first.next().event] = true
	}
	first.close()
	for n := range 64 {
		c.api.Put("pods", fmt.Sprintf("a/big-%d", n), "spec.pad="+noise(256<<10))
	}
	c.stream("/api/v1/pods?sendInitialEvents=false")
	c.eventually("all is known", func() bool {
		objects, _ := c.known("pods")
		return len(objects) == 64
	})
	// The caller's only turn is taken by a list that is not read.
	ctx, give := context.WithCancel(t.Context())
	response, err := c.client.Do(c.newRequest(ctx, http.MethodGet, "/api/v1/pods", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	c.runs("a/2")
	c.api.Put("nodes", "gpu")
	waiting := map[string]*events{"begins": c.stream(path), "goes on": c.stream(path, "Last-Event-ID: "+first.lastID)}
	for name, s := range waiting {
		for f := s.next(); f.event != "b.added"; f = s.next() {
			if f.event == "a.synced" || f.event == "goodbye" {
				t.Fatalf("%s: %q before what does not wait for the database", name, f.raw)
			}
		}
	}
	give()
	waiting["begins"].until("a.synced")
	waiting["goes on"].until("a.transition")
}
