package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

// What was written before rows had a namespace's uid is read as it was after the migration, and no
// next tenant of the namespace sees it: only a namespace that was there before a job shows it.
func TestRowsOfBeforeAreNotTheNextNamespaces(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, address string) {
		s := openAt(t, address)
		all := migrations
		migrations = all[:slices.IndexFunc(all, func(m []string) bool { return strings.Contains(m[0], "ADD COLUMN IF NOT EXISTS namespace_uid") })]
		var log Log
		err := s.Migrate(t.Context())
		if err == nil {
			log, err = s.Take(t.Context(), jobLog, "default", "a", time.Minute)
		}
		migrations = all
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			`INSERT INTO jobs (log, uid, namespace, name, owner, queue, state, since, reason, message, attempt, version, created, started, ended, deleted, spent, requests, lived)
				VALUES (?, 'u', 'blue', 'old', 'alice', '', 'Deleted', 9000, '', '', 1, 2, 5000, 6000, 0, 9000, '{}', '{}', 0)`,
			`INSERT INTO transitions (log, seq, uid, namespace, name, version, from_state, to_state, at, observed, late, attempt, reason, message, owner, queue)
				VALUES (?, 1, 'u', 'blue', 'old', 2, 'Running', 'Deleted', 9000, 9000, 0, 1, '', '', 'alice', '')`,
			`UPDATE logs SET seq = 1, version = 2 WHERE id = ?`,
		} {
			if _, err := s.writes.ExecContext(t.Context(), s.dialect.bind(statement), log.ID); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		log = take(t, s, "a")
		for created, want := range map[jobs.Time]int{4999: 1, 5000: 0, 8000: 0} { // the deletion alone is younger than the last
			f := Filter{Within: []NamespacedName{{Namespace: "blue"}}, Living: []Namespace{{Name: "blue", UID: "next", Created: created}}}
			found, told := finds(t, s, log, f)
			if found != want || told != want {
				t.Errorf("a namespace of %d shows %d jobs and %d transitions", created, found, told)
			}
		}
		if found, told := finds(t, s, log, Filter{}); found != 1 || told != 1 {
			t.Errorf("all there is are %d jobs and %d transitions", found, told)
		}
	})
}

// finds counts what a filter finds, by each way on which rows are found.
func finds(t *testing.T, s *Store, log Log, f Filter) (jobList, transitions int) {
	t.Helper()
	found, err := s.Jobs(t.Context(), log, f, JobAfter{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	told, err := s.Transitions(t.Context(), log, f, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.TransitionsAfter(t.Context(), log, f, 0, log.Seq, 100)
	if err != nil || len(after) != len(told) {
		t.Fatalf("%d transitions, and the other way %d: %v", len(told), len(after), err)
	}
	used := 0
	if err := s.Lives(t.Context(), log, f, ByOwner, jobs.Span{Until: 1 << 60}, 1<<60, func(lived []jobs.Lived) error {
		used += len(lived)
		return nil
	}); err != nil || used != len(found) {
		t.Fatalf("%d jobs, and usage of %d: %v", len(found), used, err)
	}
	return len(found), len(told)
}

// In a namespace that was made anew, neither tenant's rows are the other's, however they are asked
// for, and whether it is known of each row which namespace it is of, or of its job only.
func TestANamespaceHasOnlyTheRowsOfItsOwnLife(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		for i, uid := range []string{"former", "next", "other"} {
			namespace := []string{"blue", "blue", "red"}[i]
			b := seen(uint64(i+1), namespace, "ann", numbered(uid, 3), jobs.Pending, jobs.Deleted)
			for n, tr := range b.Transitions {
				if n > 0 { // that of the first one is not known, but of its job
					tr.NamespaceUID = uid
				}
			}
			for _, j := range b.Jobs {
				j.NamespaceUID = uid
			}
			log = write(t, s, log, b)
		}
		next, former, red := Namespace{"blue", "next", 1 << 50}, Namespace{"blue", "former", 1 << 50}, Namespace{"red", "other", 1 << 50}
		all, err := s.TransitionsAfter(t.Context(), log, Filter{}, 0, 1000, 1000)
		if err != nil || len(all) != 18 {
			t.Fatal(len(all), err)
		}
		blue, any, one := []NamespacedName{{Namespace: "blue"}}, []NamespacedName{{Namespace: "blue"}, {Namespace: "red"}}, []NamespacedName{{"blue", "name-former001"}, {"blue", "name-next001"}}
		for name, test := range map[string]struct {
			filter Filter
			jobs   int
		}{
			"the next":         {Filter{Within: blue, Living: []Namespace{next}}, 3},
			"the former":       {Filter{Within: blue, Living: []Namespace{former}}, 3},
			"nobody":           {Filter{Within: blue, Living: []Namespace{}}, 0},
			"another":          {Filter{Within: blue, Living: []Namespace{red}}, 0},
			"two":              {Filter{Within: any, Living: []Namespace{next, red}}, 6},
			"in one":           {Filter{Namespace: "blue", Within: any, Living: []Namespace{next, red}}, 3},
			"by owner":         {Filter{Owners: []string{"ann"}, Within: any, Living: []Namespace{next, red}}, 6},
			"objects":          {Filter{Within: one, Living: []Namespace{next}}, 1},
			"a mixture":        {Filter{Within: append(slices.Clone(one), NamespacedName{Namespace: "red"}), Living: []Namespace{next, red}}, 4},
			"names everywhere": {Filter{Within: []NamespacedName{{AnyNamespace, "name-former001"}}, Living: []Namespace{next}}, 1},
			"one's own":        {Filter{Within: blue, Living: []Namespace{next}, Own: "ann"}, 9},
			"whichever":        {Filter{Within: blue}, 6},
		} {
			jobList, transitions := finds(t, s, log, test.filter)
			matched := 0
			for _, tr := range all {
				if test.filter.Matches(tr) {
					matched++
				}
			}
			if jobList != test.jobs || transitions != 2*test.jobs || matched != transitions {
				t.Errorf("%s: %d jobs, %d transitions, %d in memory; there are %d jobs", name, jobList, transitions, matched, test.jobs)
			}
		}
	})
}
