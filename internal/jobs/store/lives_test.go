package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
)

// grown are jobs of as many lengths of life as there are, of which the state changed now.
func grown(to uint64, now jobs.Time) (b Batch) {
	b.To = to
	for life := range lengths - 1 {
		uid := fmt.Sprintf("u%02d", life)
		seen := jobs.Seen{
			ObjectID: jobs.ObjectID{UID: uid, Namespace: "n0", Name: uid}, Version: to, Created: now - 1000<<life + 1, Observed: now,
			Said: jobs.Said{State: jobs.Running, At: now},
		}
		job, transition := jobs.Next(nil, seen)
		b.Jobs, b.Transitions = append(b.Jobs, job), append(b.Transitions, transition)
	}
	return b
}

// The bounds of when jobs were created have all whose state changed within the span.
func TestLengthsOfLifeBoundWhenJobsWereCreated(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	for range 200_000 {
		j := &jobs.Job{Created: jobs.Time(random.Int64N(1 << 42))}
		j.Since = j.Created + jobs.Time(random.Int64N(1<<random.IntN(43)+1))
		q := &search{}
		q.span[0] = j.Since - jobs.Time(random.IntN(2))
		q.span[1] = j.Since + 1 + jobs.Time(random.IntN(2))
		if from, before := q.created(lived(j)); int64(j.Created) < from || int64(j.Created) >= before {
			t.Fatalf("%+v: created from %d before %d", j, from, before)
		}
	}
}

// A caller may see much, and asks of jobs of all lengths of life: no database is asked more than it takes.
func TestWhoMaySeeMuchFindsJobsOfAllLengthsOfLife(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		const now = 1 << 42
		log := write(t, s, take(t, s, "a"), grown(7, now))
		for _, n := range []int{1100, 9999} {
			var namespaces, objects []NamespacedName
			for i := range n {
				namespaces = append(namespaces, NamespacedName{Namespace: fmt.Sprintf("n%d", i)})
				objects = append(objects, NamespacedName{Namespace: "n0", Name: fmt.Sprintf("u%02d", i)})
			}
			for of, places := range map[string][]NamespacedName{"namespaces": namespaces, "objects": objects} {
				found, err := s.Jobs(t.Context(), log, Filter{Since: now, Within: places}, JobAfter{}, 100)
				if err != nil || len(found) != lengths-1 {
					t.Errorf("%d %s: %d jobs, %.200v", n, of, len(found), err)
				}
			}
		}
	})
}

// Who may see very many namespaces, each of them a living one, searches: what a search asks does not stand in it once for each length of life.
func TestWhoMaySeeManyNamespacesSearches(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		const now = 1 << 42
		log := write(t, s, take(t, s, "a"), grown(7, now))
		for _, n := range []int{300, 1100, 9999} {
			f := Filter{Search: "u", Within: []NamespacedName{}, Living: []Namespace{}}
			for i := range n {
				name := fmt.Sprintf("n%d", i)
				f.Within = append(f.Within, NamespacedName{Namespace: name})
				f.Living = append(f.Living, Namespace{Name: name, UID: name, Created: 1})
			}
			found, err := s.Jobs(t.Context(), log, f, JobAfter{}, 100)
			if err != nil || len(found) != lengths-1 {
				t.Errorf("%d namespaces: %d jobs, %.200v", n, len(found), err)
			}
		}
	})
}

// The state of a job changes between the two questions of which a page is made.
func TestAJobThatGrowsOlderWhileAPageIsReadIsOnIt(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		const now = 1 << 42
		job, transition := jobs.Next(nil, jobs.Seen{
			ObjectID: jobs.ObjectID{UID: "u", Namespace: "n", Name: "j"}, Version: 7, Created: now - 1000, Observed: now, Said: jobs.Said{State: jobs.Running, At: now}})
		log := write(t, s, take(t, s, "a"), Batch{To: 7, Jobs: []*jobs.Job{job}, Transitions: []*jobs.Transition{transition}})
		q := s.search(log, Filter{Since: now}, search{table: "jobs", key: "uid", by: "created", page: "created DESC, uid DESC", order: "jobs_created", state: "state", time: "since"})
		by, err := q.fewLives(t.Context(), JobAfter{}, firstWindow)
		if err != nil || by == nil {
			t.Fatal(by, err)
		}
		next, transition := jobs.Next(job, jobs.Seen{Version: 8, Observed: now + 60_000, Said: jobs.Said{State: jobs.Succeeded, At: now + 60_000}})
		write(t, s, log, Batch{To: 8, Jobs: []*jobs.Job{next}, Transitions: []*jobs.Transition{transition}})
		text, args := q.rows(by, &where{}, 10)
		found, err := s.jobs(t.Context(), text, args...)
		if err != nil || len(found) != 1 {
			t.Errorf("the job whose state changed meanwhile: %v, %v", found, err)
		}
	})
}
