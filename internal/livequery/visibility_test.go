package livequery

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/visibility"
)

// TestNobodyIsGivenTheAnswerToAnotherQuestion: queries differ in what may be seen, in the target,
// the selectors, the order or the grouping, and in nothing else. Each is answered for itself, also
// once something has changed.
func TestNobodyIsGivenTheAnswerToAnotherQuestion(t *testing.T) {
	inBubble(t, 20, 1<<20, func(a *asked) {
		target := visibility.Target{Version: "v1", Resource: "pods"}
		sees := func(scope auth.Scope) Query {
			visible, _ := visibility.Of(scope, target, pods)
			return Query{Target: visibility.VisibleTarget{Target: target, Visible: visible}}
		}
		all := sees(auth.Scope{All: true})
		within, selected, sorted, labelled := all, all, all, all
		within.Target.Target.Namespace = "a"
		selected.Selector = must(cache.Paths{}.Selector("", "metadata.name=1"))
		labelled.Selector = must(cache.Paths{}.Selector("app=web", ""))
		sorted.Order = must(cache.Paths{}.Order("-metadata.namespace"))
		byName, byNamespace := all, all
		byName.By, byNamespace.By = must(cache.Paths{}.Grouping("metadata.name")), must(cache.Paths{}.Grouping("metadata.namespace"))
		queries := map[string]struct {
			Query
			before, after []string // in their order; or the values that are counted
		}{
			"all":              {all, []string{"a/1", "a/2", "b/1"}, []string{"a/1", "a/2", "a/3", "b/1", "b/3"}},
			"one namespace":    {sees(auth.Scope{Namespaces: []string{"a"}}), []string{"a/1", "a/2"}, []string{"a/1", "a/2", "a/3"}},
			"another":          {sees(auth.Scope{Namespaces: []string{"b"}}), []string{"b/1"}, []string{"b/1", "b/3"}},
			"two namespaces":   {sees(auth.Scope{Namespaces: []string{"b", "c"}}), []string{"b/1"}, []string{"b/1", "b/3"}},
			"one object":       {sees(auth.Scope{Names: map[string][]string{"a": {"3"}}}), nil, []string{"a/3"}},
			"nothing":          {Query{Target: visibility.VisibleTarget{Target: target, Visible: visibility.Nothing()}}, nil, nil},
			"the path's":       {within, []string{"a/1", "a/2"}, []string{"a/1", "a/2", "a/3"}},
			"a field":          {selected, []string{"a/1", "b/1"}, []string{"a/1", "b/1"}},
			"a label":          {labelled, nil, []string{"a/3", "b/3"}},
			"in another order": {sorted, []string{"b/1", "a/1", "a/2"}, []string{"b/1", "b/3", "a/1", "a/2", "a/3"}},
			"by name":          {byName, []string{"1", "2"}, []string{"1", "2", "3"}},
			"by namespace":     {byNamespace, []string{"a", "b"}, []string{"a", "b"}},
		}
		readers := map[string]*Reader{}
		check := func(name string, want []string) {
			t.Helper()
			synctest.Wait() // an answer may be shown once more, as it is, just after it was ready
			snapshot := a.snapshot(readers[name], nil)
			if got := shown(snapshot); !slices.Equal(got, want) {
				t.Errorf("%s: %v, not %v", name, got, want)
			}
			if found := a.registry.Find(a.store, queries[name].Query, snapshot.Revision, snapshot.Revision); found != snapshot {
				t.Errorf("%s: another answer is found than is told", name)
			}
		}
		names := slices.Sorted(maps.Keys(queries))
		for _, name := range names {
			r, err := a.registry.Ask(a.kinds, a.store, queries[name].Query, name)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			readers[name] = r
		}
		for _, name := range names {
			check(name, queries[name].before)
		}
		a.api.Put("pods", "a/3", "metadata.labels.app=web")
		a.api.Put("pods", "b/3", "metadata.labels.app=web")
		for _, name := range names {
			check(name, queries[name].after)
		}
	})
}

// shown is the objects of an order, or the values that are counted.
func shown(snapshot *Snapshot) (all []string) {
	if snapshot.Tally != nil {
		for _, value := range gjson.GetBytes(snapshot.Tally.AppendJSON(nil, 0), "#.value").Array() {
			all = append(all, value.Str)
		}
		slices.Sort(all)
		return all
	}
	for _, o := range snapshot.Ranking.Window(make([]*cluster.Object, 0, snapshot.Ranking.Len()), 0, snapshot.Ranking.Len()) {
		all = append(all, o.Key())
	}
	return all
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
