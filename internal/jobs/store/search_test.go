package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
)

// Whatever is asked for, and wherever a page begins, it has what is found by looking at each row:
// nothing is passed over where a search goes on with a wider window, skips what is of another time,
// or merges what it found by several columns. It is asked for between batches that are written, and
// old jobs that are removed.
func TestPagesHaveWhatLookingAtEachRowFinds(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.window = 30 // so that pages are made of several
		m := &modelOfPages{random: rand.New(rand.NewPCG(1, 7)), store: s, log: take(t, s, "a"), jobs: map[string]*jobs.Job{}}
		for batch := range 12 {
			m.write(t, batch)
			m.ask(t, 5)
			if batch%4 == 3 {
				m.expire(t)
			}
		}
		m.ask(t, 60)
	})
}

// modelOfPages has all that is in the database, and looks at each row.
type modelOfPages struct {
	random      *rand.Rand
	store       *Store
	log         Log
	jobs        map[string]*jobs.Job // by uid
	transitions []*jobs.Transition   // the newest last
}

// write writes a batch of changes of random jobs.
func (m *modelOfPages) write(t *testing.T, batch int) {
	t.Helper()
	random, b, changed := m.random, Batch{To: uint64(batch + 1)}, map[string]*jobs.Job{}
	for i := range 500 {
		uid := fmt.Sprintf("u%d", random.IntN(1500))
		was := m.jobs[uid]
		if was != nil && was.State == jobs.Deleted {
			continue
		}
		seen := jobs.Seen{
			ObjectID: jobs.ObjectID{UID: uid, Namespace: "rare", Name: "n" + uid}, Version: b.To, Observed: jobs.Time(1000*batch + i),
			Created: jobs.Time(1000*batch) / 4000 * 4000, Said: jobs.Said{State: jobs.States()[random.IntN(7)], Owner: "robot", Queue: "q"},
		}
		if random.IntN(2) == 0 { // else many are of one time
			seen.Created = jobs.Time(random.IntN(1000*batch + 1))
		}
		if random.IntN(8) > 0 { // one is seldom, and most are of few
			seen.Namespace, seen.Queue = fmt.Sprintf("n%d", random.IntN(3)), ""
		}
		if random.IntN(4) == 0 {
			seen.Owner = fmt.Sprintf("user%d", random.IntN(200))
		}
		if random.IntN(100) == 0 {
			seen.At = jobs.Time(random.IntN(1000*batch + 1)) // long ago
		}
		seen.Deleted = random.IntN(20) == 0
		next, transition := jobs.Next(was, seen)
		if next == nil {
			continue
		}
		if next.HasCause() && random.IntN(3) > 0 {
			next.Cause = &jobs.Cause{Reason: []string{"OOMKilled", "Evicted"}[random.IntN(2)]}
			transition.Cause = next.Cause
		}
		m.jobs[uid], changed[uid] = next, next
		b.Transitions = append(b.Transitions, transition)
	}
	for _, j := range changed {
		b.Jobs = append(b.Jobs, j)
	}
	m.log = write(t, m.store, m.log, b)
	m.transitions = append(m.transitions, b.Transitions...)
}

// expire removes what was deleted before some time.
func (m *modelOfPages) expire(t *testing.T) {
	t.Helper()
	before := jobs.Time(m.random.IntN(int(m.transitions[len(m.transitions)-1].Observed)))
	first := jobs.Time(math.MaxInt64)
	for _, j := range m.jobs {
		if j.Deleted > before {
			first = min(first, j.Deleted)
		}
	}
	if first < math.MaxInt64 {
		before = first // which stays
	}
	if _, err := m.store.Expire(t.Context(), m.log, before, 10_000); err != nil {
		t.Fatal(err)
	}
	m.transitions = slices.DeleteFunc(m.transitions, func(tr *jobs.Transition) bool {
		j := m.jobs[tr.UID]
		return j.Deleted != 0 && j.Deleted < before
	})
	maps.DeleteFunc(m.jobs, func(_ string, j *jobs.Job) bool { return j.Deleted != 0 && j.Deleted < before })
}

// edge is a random one of the first and last transitions of blocks; nil if there is none.
func (m *modelOfPages) edge() *jobs.Transition {
	var edges []*jobs.Transition
	for _, tr := range m.transitions {
		if tr.Seq%blockSize <= 1 {
			edges = append(edges, tr)
		}
	}
	if len(edges) == 0 {
		return nil
	}
	return edges[m.random.IntN(len(edges))]
}

// ask asks for so many pages of each, and compares them.
func (m *modelOfPages) ask(t *testing.T, times int) {
	t.Helper()
	random := m.random
	all := slices.SortedFunc(maps.Values(m.jobs), func(a, b *jobs.Job) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(b.UID, a.UID))
	})
	for range times {
		f := anyFilter(random)
		j := all[random.IntN(len(all))]
		after := JobAfter{j.Created, j.UID}
		before := 1 + random.Uint64N(m.log.Seq)
		if random.IntN(2) == 0 {
			after, before = JobAfter{}, 0
		}
		if edge := m.edge(); edge != nil && random.IntN(3) == 0 { // from its time on, and just behind it
			f, before = Filter{Since: edge.At}, edge.Seq+1+random.Uint64N(20)
		}
		var wantJobs, gotJobs []string
		for _, j := range all {
			if f.finds(j.ObjectID, j.Owner, j.Queue, j.State, j.Since, j.Cause) && (after == JobAfter{} || j.Created < after.Created || j.Created == after.Created && j.UID < after.UID) {
				wantJobs = append(wantJobs, j.UID)
			}
		}
		var want, got []uint64
		for _, tr := range slices.Backward(m.transitions) {
			if f.finds(tr.ObjectID, tr.Owner, tr.Queue, tr.To, tr.At, tr.Cause) && (before == 0 || tr.Seq < before) {
				want = append(want, tr.Seq)
			}
		}
		limit := 1 + random.IntN(200)
		page, err := m.store.Jobs(t.Context(), m.log, f, after, limit)
		page2, err2 := m.store.Transitions(t.Context(), m.log, f, before, limit)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for _, j := range page {
			gotJobs = append(gotJobs, j.UID)
		}
		for _, tr := range page2 {
			got = append(got, tr.Seq)
		}
		if wantJobs = wantJobs[:min(limit, len(wantJobs))]; !slices.Equal(gotJobs, wantJobs) {
			t.Fatalf("%+v after %v: %d jobs, not %d: %v, not %v", f, after, len(gotJobs), len(wantJobs), gotJobs, wantJobs)
		}
		if want = want[:min(limit, len(want))]; !slices.Equal(got, want) {
			t.Fatalf("%+v before %d: %d transitions, not %d: %v, not %v", f, before, len(got), len(want), got, want)
		}
	}
}

// oneAfterAnother writes jobs that were created a second apart each.
func oneAfterAnother(t *testing.T, s *Store, jobList int) Log {
	b := Batch{To: 1}
	for n := range jobList {
		next, transition := jobs.Next(nil, jobs.Seen{
			ObjectID: jobs.ObjectID{UID: fmt.Sprintf("u%03d", n), Namespace: "n", Name: fmt.Sprintf("job-%03d", n)}, Version: b.To, Created: jobs.Time(1000 * (n + 1)), Observed: jobs.Time(1000 * (n + 1)),
			Said: jobs.Said{State: jobs.Running},
		})
		b.Jobs, b.Transitions = append(b.Jobs, next), append(b.Transitions, transition)
	}
	return write(t, s, take(t, s, "a"), b)
}

// What took too long comes as far as it was found, and is not taken for all: a page that goes on behind its last row finds the rest.
func TestASearchThatTakesTooLongHasWhatItFound(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.window, s.looks = 30, -1 // so that it ends after the first window
		log := oneAfterAnother(t, s, 120)
		for _, f := range []Filter{{Search: "b-115"}, {Search: "b-115", Namespace: "n"}} {
			jobs, err := s.Jobs(t.Context(), log, f, JobAfter{}, 10)
			if len(jobs) != 1 || jobs[0].Name != "job-115" || !errors.Is(err, ErrUnfinished) {
				t.Errorf("%+v: %v, %v", f, jobs, err)
			}
			transitions, err := s.Transitions(t.Context(), log, f, 0, 10)
			if len(transitions) != 1 || transitions[0].Name != "job-115" || !errors.Is(err, ErrUnfinished) {
				t.Errorf("%+v: %v, %v", f, transitions, err)
			}
		}
		if jobs, err := s.Jobs(t.Context(), log, Filter{Search: "job-11"}, JobAfter{}, 3); len(jobs) != 3 || err != nil {
			t.Error("a page that is full:", len(jobs), err)
		}
		if jobs, err := s.Jobs(t.Context(), log, Filter{Namespace: "n"}, JobAfter{}, 200); len(jobs) != 120 || err != nil {
			t.Error("what is no search:", len(jobs), err)
		}
		s.looks = SearchWithin
		if jobs, err := s.Jobs(t.Context(), log, Filter{Search: "b-005"}, JobAfter{}, 10); len(jobs) != 1 || err != nil {
			t.Error("far back:", jobs, err)
		}
		// The rest of a page has no more time than the page has.
		f := Filter{Search: "b-005", SearchUntil: time.Now().Add(-time.Millisecond)}
		jobs, err := s.Jobs(t.Context(), log, f, JobAfter{}, 10)
		transitions, err2 := s.Transitions(t.Context(), log, f, 0, 10)
		if len(jobs)+len(transitions) != 0 || !errors.Is(err, ErrUnfinished) || !errors.Is(err2, ErrUnfinished) {
			t.Error("the page's time is over:", jobs, err, transitions, err2)
		}
	})
}

// Pages that end after one window each come to the end: each goes on where the one before ended, also where that found nothing.
func TestAnUnfinishedSearchGoesOnWhereItEnded(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.window, s.looks = 30, -1
		log := oneAfterAnother(t, s, 120)
		for _, f := range []Filter{{Search: "15"}, {Search: "15", Namespace: "n"}, {Search: "15", Until: 100_000}} {
			var jobs, transitions []string
			after, before := JobAfter{}, uint64(0)
			for pages, more := 0, true; more && pages < 10; pages++ {
				page, err := s.Jobs(t.Context(), log, f, after, 10)
				for _, j := range page {
					jobs = append(jobs, j.Name)
				}
				var unfinished *Unfinished
				if more = errors.As(err, &unfinished); more {
					after = unfinished.After
				} else if err != nil {
					t.Fatal(err)
				}
			}
			for pages, more := 0, true; more && pages < 10; pages++ {
				page, err := s.Transitions(t.Context(), log, f, before, 10)
				for _, tr := range page {
					transitions = append(transitions, tr.Name)
				}
				var unfinished *Unfinished
				if more = errors.As(err, &unfinished); more {
					before = unfinished.Before
				} else if err != nil {
					t.Fatal(err)
				}
			}
			want := []string{"job-115", "job-015"}
			if f.Until != 0 {
				want = want[1:]
			}
			if !slices.Equal(jobs, want) || !slices.Equal(transitions, want) {
				t.Errorf("%+v: jobs %v, transitions %v", f, jobs, transitions)
			}
		}
	})
}

// A question that takes too long, or that gets no turn, does not take with it what was found before; nor is it told as found what nobody waits for.
func TestASearchThatRunsOutOfTimeHasWhatItFound(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		s.window = 30
		log := oneAfterAnother(t, s, 120)
		for _, question := range []int{1, 4} { // of the first window, and of a further one
			ctx, cancel := context.WithCancel(t.Context())
			within, over := context.WithTimeout(ctx, time.Second)
			n := 0
			s.asked = func(string, []any) {
				if n++; n == question {
					<-within.Done()
				}
			}
			jobs, err := s.Jobs(within, log, Filter{Search: "15"}, JobAfter{}, 10)
			var unfinished *Unfinished
			if question == 1 && (err == nil || errors.Is(err, ErrUnfinished)) {
				t.Errorf("nothing was looked at: %v, %v", jobs, err)
			}
			if question == 4 && (len(jobs) != 1 || !errors.As(err, &unfinished) || unfinished.After != JobAfter{Created: 90_000}) {
				t.Errorf("%d jobs, %v", len(jobs), err)
			}
			over()
			within, n = ctx, 0
			s.asked = func(string, []any) {
				if n++; n == question {
					cancel()
				}
			}
			if jobs, err := s.Jobs(within, log, Filter{Search: "15"}, JobAfter{}, 10); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnfinished) {
				t.Errorf("nobody waits any more: %d jobs, %v", len(jobs), err)
			}
			cancel()
		}
		s.asked = nil
	})
}

// Where names are not in the index that leads, each is a read of the disk: one question looks at fewer of them.
func TestASearchReadsNoMoreRowsAtOnceThanItCan(t *testing.T) {
	s := openAt(t, "sqlite://"+t.TempDir()+"/h.db")
	for most, filters := range map[int][]Filter{
		mostRead:     {{Owners: []string{"o"}}, {Namespace: "n"}, {States: []jobs.State{jobs.Deleted}}, {Queues: []string{"q"}}, {Within: []NamespacedName{{Namespace: "n"}}}},
		mostSearched: {{}, {Parents: []string{"u"}}, {Name: "n"}, {Causes: []string{"OOMKilled"}}},
	} {
		for _, f := range filters {
			f.Search = "b"
			q := s.search(Log{ID: 1}, f, jobsByCreation)
			rows := firstWindow
			for range 10 {
				rows = q.wider(rows)
			}
			if rows != most {
				t.Errorf("%+v: %d rows, not %d", f, rows, most)
			}
		}
	}
}

func anyFilter(random *rand.Rand) (f Filter) {
	often := func(in int) bool { return random.IntN(in) == 0 }
	namespace := func() string { return []string{"rare", "n0", "n1", "n2", "none"}[random.IntN(5)] }
	if often(3) {
		f.Owners = []string{"robot", fmt.Sprintf("user%d", random.IntN(200))}[random.IntN(2):]
	}
	switch random.IntN(4) {
	case 0:
		f.Namespace = namespace()
	case 1:
		f.Within = []NamespacedName{{namespace(), ""}}
		if often(2) {
			f.Within = append(f.Within, NamespacedName{namespace(), ""}, NamespacedName{AnyNamespace, "nu7"}, NamespacedName{namespace(), "nu8"})
		}
		if often(2) {
			f.Own = []string{"user3", "robot"}[random.IntN(2)]
		}
		switch random.IntN(8) {
		case 0:
			f.Within = []NamespacedName{}
		case 1:
			f.Within = append(f.Within, NamespacedName{AnyNamespace, ""})
		}
	}
	if often(10) {
		f.Name = fmt.Sprintf("nu%d", random.IntN(1500))
	}
	if often(4) {
		f.Search = []string{"u77", "nu1", "_", "%", "NU1", "2"}[random.IntN(6)]
	}
	if often(3) {
		f.States = []jobs.State{jobs.States()[random.IntN(8)], jobs.Running}
	}
	if often(4) {
		f.Queues = []string{"q"}
	}
	if often(6) {
		f.Causes = []string{"OOMKilled", "Evicted", "none"}[random.IntN(3):]
	}
	if often(10) {
		f.UIDs = []string{"u5", fmt.Sprintf("u%d", random.IntN(1500)), "u5"}
	}
	if often(2) {
		f.Since = jobs.Time(random.IntN(12_000))
	}
	if often(2) {
		f.Until = f.Since + jobs.Time(random.IntN(6000))
	}
	return f
}

// finds is what a filter means.
func (f Filter) finds(is jobs.ObjectID, owner, queue string, state jobs.State, at jobs.Time, cause *jobs.Cause) bool {
	if len(f.Causes) > 0 && (cause == nil || !slices.Contains(f.Causes, cause.Reason)) {
		return false
	}
	within := f.Within == nil || f.Own != "" && owner == f.Own
	for _, p := range f.Within {
		within = within || (p.Namespace == AnyNamespace || p.Namespace == is.Namespace) && (p.Name == "" || p.Name == is.Name)
	}
	among := func(values []string, value string) bool { return len(values) == 0 || slices.Contains(values, value) }
	return within && (f.Namespace == "" || f.Namespace == is.Namespace) && (f.Name == "" || f.Name == is.Name) && strings.Contains(is.Name, f.Search) && among(f.Owners, owner) &&
		among(f.Queues, queue) && among(f.UIDs, is.UID) && (len(f.States) == 0 || slices.Contains(f.States, state)) &&
		(f.Since == 0 || at >= f.Since) && (f.Until == 0 || at < f.Until)
}
