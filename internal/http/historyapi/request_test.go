package historyapi

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/seal"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/visibility"
)

var jobsOfAll = visibility.Target{Group: "batch", Version: "v1", Resource: "jobs"}

// A time that is given as how long ago it was is the same on all pages, or the last ones would lack what the first had.
func TestPagesAreOfOneSpanOfTime(t *testing.T) {
	now := time.Now()
	query := url.Values{"since": {"24h"}, "until": {"1h"}}
	first, err := parse(query, jobsOfAll, "alice", now)
	if err != nil {
		t.Fatal(err)
	}
	query.Set("continue", first.goOn(token{Created: 5, UID: "u"}))
	next, err := parse(query, jobsOfAll, "alice", now.Add(time.Hour))
	if err != nil || next.filter.Since != first.filter.Since || next.filter.Until != first.filter.Until || first.filter.Since == 0 {
		t.Errorf("%+v, not %+v: %v", next.filter, first.filter, err)
	}
	if after, err := next.after.job(nil); err != nil || after.UID != "u" || after.Created != 5 {
		t.Errorf("%+v, %v", after, err)
	}
}

// Where a search ended is a place that only who has the key can make: of another kind's, of rows, or of another question it is refused.
func TestWhereASearchEndedIsNoPlaceThatACallerCanMake(t *testing.T) {
	key := seal.NewKey()
	creations, others := seal.New(key, "c", service.Creations("jobs.batch")), seal.New(key, "c", "jobs.batch")
	q, err := parse(url.Values{"search": {"b"}}, jobsOfAll, "alice", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]jobs.Time{creations.Position(1 << 40): 1 << 40, others.Position(1 << 40): 0, others.Row(1 << 40): 0, "x": 0} {
		at, err := decode(q.goOn(token{Looked: text}), q)
		if err != nil {
			t.Fatal(err)
		}
		if after, err := at.job(creations); (err == nil) != (want != 0) || after != (store.JobAfter{Created: want}) || err != nil && reply.To(err).Code != 410 {
			t.Errorf("%s: %v, %v", text, after, err)
		}
	}
	plain, err := parse(url.Values{}, jobsOfAll, "alice", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []token{{Looked: creations.Position(5)}, {UID: "u", Looked: creations.Position(5)}, {UID: "u", Seq: 1}, {}} {
		if _, err := decode(plain.goOn(at), plain); err == nil {
			t.Errorf("%+v is taken", at)
		}
	}
}

// Whatever a stranger writes, what goes to the database is bounded, and texts that it takes.
func FuzzQuestion(f *testing.F) {
	for _, seed := range []string{"owner=me,bob&limit=3", "view=transitions&continue=eyJxIjoiIn0", "since=24h&until=2026-01-31T09:00:00%2B02:00", "state=%00", "uid=%ff,&uid=a", "view=ends&by=queue&since=1h&step=1m", "search=%C8%BAB"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, err := parse(query, jobsOfAll, "alice", time.Now())
		if err != nil {
			return
		}
		texts := slices.Concat(q.filter.Owners, q.filter.Queues, q.filter.UIDs, []string{q.after.UID})
		if q.limit < 1 || q.limit > maxLimit || len(texts) > 3*maxValues+1 || slices.ContainsFunc(texts, func(s string) bool { return len(s) > maxValue || !isText(s) }) {
			t.Errorf("%q is taken for %+v", text, q)
		}
		if len(q.filter.Search) > 2*maxValue || !isText(q.filter.Search) {
			t.Errorf("%q looks for %q", text, q.filter.Search)
		}
		if q.me && !slices.Contains(q.filter.Owners, "alice") {
			t.Errorf("%q asks for what is the caller's own, but not for alice", text)
		}
	})
}
