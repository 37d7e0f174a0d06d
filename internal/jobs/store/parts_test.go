package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
)

// Parts are found and counted by what they are parts of, in each kind, as far as a filter lets
// them; and usage and ends have them in that only.
func TestPartsAreFoundByWhatTheyArePartsOf(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		parent := jobs.Ref{Resource: "jobsets.jobset.x-k8s.io", Name: "set", UID: "set"}
		log := take(t, s, "a")
		for i, namespace := range []string{"n", "m"} {
			b := seen(uint64(i+1), namespace, "robot", numbered(namespace, 30), jobs.Running, jobs.Succeeded)
			for i, job := range b.Jobs {
				if i%3 == 0 {
					job.Parent = parent
				}
				if i%3 == 1 {
					job.Parent = jobs.Ref{Resource: "x", Name: "other", UID: "other"}
				}
			}
			log = write(t, s, log, b)
		}
		pages := func(f Filter) (uids []string) {
			var after JobAfter
			for {
				page, err := s.Jobs(t.Context(), log, f, after, 3)
				if err != nil {
					t.Fatal(err)
				}
				for _, j := range page {
					uids = append(uids, j.UID)
					after = JobAfter{Created: j.Created, UID: j.UID}
				}
				if len(page) < 3 {
					return uids
				}
			}
		}
		for _, test := range []struct {
			f    Filter
			want int
		}{
			{Filter{Parents: []string{"set"}}, 20},
			{Filter{Parents: []string{"set", "other"}}, 40},
			{Filter{Parents: []string{"none"}}, 0},
			{Filter{Parents: []string{"set"}, Within: []NamespacedName{{Namespace: "m"}}}, 10},
			{Filter{Parents: []string{"set"}, Within: []NamespacedName{{Namespace: "n", Name: "name-n003"}, {Namespace: AnyNamespace, Name: "name-m006"}}}, 2},
			{Filter{Parents: []string{"set"}, States: []jobs.State{jobs.Failed}}, 0},
			{Filter{Parents: []string{"set"}, Owners: []string{"robot"}, Namespace: "n", Since: 1}, 10},
			{Filter{Parents: []string{"set"}, Since: 2000 + 10*9, Until: 2000 + 10*12}, 2},
		} {
			if uids := pages(test.f); len(uids) != test.want || len(slices.Compact(slices.Sorted(slices.Values(uids)))) != test.want {
				t.Errorf("%+v: %v, not %d", test.f, uids, test.want)
			}
			if parts, err := s.Parts(t.Context(), log, test.f); test.f.Since <= 1 && (err != nil || parts["set"]+parts["other"] != test.want) {
				t.Errorf("%+v: %v are counted, not %d: %v", test.f, parts, test.want, err)
			}
		}
		if living, err := s.Living(t.Context(), log); err != nil || living[slices.IndexFunc(living, func(j *jobs.Job) bool { return j.UID == "n003" })].Parent != parent {
			t.Error(living, err)
		}
		if found, err := s.JobsOf(t.Context(), "c1", map[string][]string{"jobs.batch": {"n003"}}); err != nil || found[jobs.Ref{Resource: "jobs.batch", Name: "name-n003", UID: "n003"}].Parent != parent {
			t.Error(found, err)
		}
		for uid, want := range map[string]string{"set": "[jobs.batch]", "none": "[]"} {
			if kinds, err := s.KindsOfParts(t.Context(), "c1", []string{uid, "m002"}); err != nil || fmt.Sprint(kinds) != want {
				t.Error(uid, kinds, err)
			}
		}
		if kinds, err := s.KindsOfParts(t.Context(), "another", []string{"set"}); err != nil || len(kinds) > 0 {
			t.Error(kinds, err)
		}
		n := 0
		if err := s.Lives(t.Context(), log, Filter{}, ByOwner, jobs.Span{Until: 1_000_000}, 1_000_000, func(all []jobs.Lived) error {
			n += len(all)
			return nil
		}); err != nil || n != 20 {
			t.Errorf("usage counts %d jobs: %v", n, err)
		}
		n = 0
		if err := s.Ends(t.Context(), log, Filter{}, func(all []*jobs.Transition) error {
			n += len(all)
			return nil
		}); err != nil || n != 20 {
			t.Errorf("%d ends are counted: %v", n, err)
		}
	})
}
