package store

import (
	"slices"
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
)

// TestFiltersMeanTheSameInMemory: a reader who goes on from memory must not be shown what the
// database would hide from them.
func TestFiltersMeanTheSameInMemory(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		log := take(t, s, "a")
		for i, namespace := range []string{"a", "A", "b", "ä"} {
			for j, owner := range []string{"ann", "Ann", "ann ", ""} {
				uids := numbered(namespace+owner, 2)
				log = write(t, s, log, seen(uint64(10*i+j+1), namespace, owner, uids, jobs.Pending, jobs.Running, jobs.Deleted))
			}
		}
		all, err := s.TransitionsAfter(t.Context(), log, Filter{}, 0, 1000, 1000)
		if err != nil || len(all) != 96 {
			t.Fatal(len(all), err)
		}
		for i, f := range []Filter{
			{}, {Namespace: "a"}, {Namespace: "a", Name: "name-aann000"}, {Search: "nn00"}, {Search: "ANN"}, {Search: "Ann0"}, {Search: "ä"}, {Search: "n_"}, {Search: "%"}, {Search: "nn ", Namespace: "b"}, {Name: "name-bAnn001"}, {Owners: []string{"ann"}},
			{Owners: []string{"Ann", "ann "}}, {States: []jobs.State{jobs.Running, jobs.Deleted}}, {Queues: []string{"q"}}, {Queues: []string{"Q"}},
			{UIDs: []string{"bann000", "x"}}, {Since: 2005}, {Until: 2005}, {Since: 2010, Until: 2011}, {Within: []NamespacedName{}}, {Within: []NamespacedName{}, Own: "ann"},
			{Within: []NamespacedName{{Namespace: "a"}, {Namespace: "b", Name: "name-bann001"}}}, {Within: []NamespacedName{{Namespace: AnyNamespace, Name: "name-äann000"}}},
			{Within: []NamespacedName{{Namespace: AnyNamespace}}}, {Within: []NamespacedName{{Namespace: "b"}}, Own: "ann", Owners: []string{"ann", "Ann"}},
		} {
			found, err := s.TransitionsAfter(t.Context(), log, f, 0, 1000, 1000)
			if err != nil {
				t.Fatal(err)
			}
			var want, got []uint64
			for _, tr := range found {
				want = append(want, tr.Seq)
			}
			for _, tr := range all {
				if f.Matches(tr) {
					got = append(got, tr.Seq)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("filter %d: %v in memory, %v in the database", i, got, want)
			}
		}
	})
}
