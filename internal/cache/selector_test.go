package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

func newObject(t testing.TB, key string, fields ...string) *cluster.Object {
	t.Helper()
	made, err := cluster.NewObject(apitest.JSON(pods, key, fields...))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// someObjects returns random objects with few names and values, so that they often share them.
func someObjects(t testing.TB, rng *rand.Rand, n int) (objects []*cluster.Object) {
	t.Helper()
	for range n {
		key := fmt.Sprintf("%s/%c-%d", []string{"a", "a-b", "a.b", "b"}[rng.IntN(4)], 'a'+rng.IntN(3), rng.IntN(20))
		labels := map[string]string{}
		for range rng.IntN(4) {
			labels[someKey(rng)] = []string{"", "web", "db", "1", "7", "100"}[rng.IntN(6)]
		}
		fields := []string{"spec:={}"}
		if len(labels) > 0 {
			fields = append(fields, apitest.Set("metadata.labels", labels))
		}
		if rng.IntN(4) > 0 {
			fields[0] = apitest.Set("spec.node", []any{"", "n1", "n2", 7, true, nil}[rng.IntN(6)])
		}
		objects = append(objects, newObject(t, key, fields...))
	}
	return objects
}

func someKey(rng *rand.Rand) string {
	return []string{"app", "tier", "app.kubernetes.io/name", "x"}[rng.IntN(4)]
}

func someLabelSelector(rng *rand.Rand) string {
	var terms []string
	for range rng.IntN(4) {
		terms = append(terms, fmt.Sprintf([]string{
			"%s=%s", "%s==%s", "%s!=%s", "%s in (%s)", "%s in (%s,db)", "%s notin (%s)", "%[1]s", "!%[1]s", "%s>%[3]d", "%s<%[3]d",
		}[rng.IntN(10)], someKey(rng), []string{"web", "db", "", "1"}[rng.IntN(4)], rng.IntN(20)))
	}
	for i, term := range terms {
		terms[i], _, _ = strings.Cut(term, "%!(EXTRA")
	}
	return strings.Join(terms, ",")
}

func someSelector(t testing.TB, rng *rand.Rand) (text string, selector Selector) {
	t.Helper()
	text = someLabelSelector(rng)
	field := []string{"", "", "spec.node=n1", "spec.node!=n1", "spec.node=", "spec.node=7", "metadata.name=a-3", "metadata.namespace!=a,spec.node=n2"}[rng.IntN(8)]
	selector, err := Paths{}.Selector(text, field)
	if err != nil {
		t.Fatalf("%q, %q: %v", text, field, err)
	}
	return text + " " + field, selector
}

func TestLabelSelectorsMeanWhatTheyMeanInKubernetes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	matched := 0
	for range 5000 {
		text := someLabelSelector(rng)
		ours, err := Paths{}.Selector(text, "")
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		theirs, err := labels.Parse(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, o := range someObjects(t, rng, 3) {
			want := theirs.Matches(labels.Set(o.GetLabels()))
			if got := ours.Matches(o); got != want {
				t.Fatalf("%q of %v: %v", text, o.GetLabels(), got)
			}
			if match := ours.Match(); match != nil && match(o) != want || match == nil && !ours.Empty() {
				t.Fatalf("%q: Match is another than Matches", text)
			}
			if want {
				matched++
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matched", matched)
	}
}

func TestListByAnIndexIsAScanFiltered(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		indexed, err := newState([]string{"spec.node", "metadata.name"})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]*cluster.Object{}
		for _, o := range someObjects(t, rng, 300) {
			if old := all[o.Key()]; old != nil && rng.IntN(3) == 0 {
				indexed.remove(old)
				delete(all, o.Key())
				continue
			}
			indexed.put(o)
			all[o.Key()] = o
		}
		sorted := make([]*cluster.Object, 0, len(all))
		for _, o := range all {
			sorted = append(sorted, o)
		}
		slices.SortFunc(sorted, func(a, b *cluster.Object) int { return strings.Compare(a.Key(), b.Key()) })
		snapshot := &Snapshot{state: indexed}
		for range 60 {
			text, selector := someSelector(t, rng)
			scope := []stream.NamespaceSet{stream.AllNamespaces(), stream.Namespaces("a"), stream.Namespaces("a", "none", "a-b", "b"), stream.Namespaces("none")}[rng.IntN(4)]
			namespace, name := "", ""
			if rng.IntN(2) == 0 {
				namespace, name = []string{"a", "a-b", "a.b", "b", "none"}[rng.IntN(5)], fmt.Sprintf("%c-%d", 'a'+rng.IntN(3), rng.IntN(20))
			}
			var want, got []string
			for _, o := range sorted {
				inScope := scope.All() || slices.Contains(scope.Namespaces(), o.GetNamespace())
				if inScope && selector.Matches(o) && (name == "" || o.Key() > namespace+"/"+name) {
					want = append(want, o.Key())
				}
			}
			most := 1 + rng.IntN(50)
			for o := range snapshot.List(scope, selector, namespace, name) {
				got = append(got, o.Key())
				if len(got) == most {
					break
				}
			}
			if want = want[:min(most, len(want))]; !slices.Equal(got, want) {
				t.Fatalf("seed %d: %q in %v after %s/%s:\n%q, not\n%q", seed, text, scope, namespace, name, got, want)
			}
		}
		for _, o := range all {
			indexed.remove(o)
		}
		if n := indexed.labels.tree.Len() + indexed.paths[0].tree.Len() + indexed.paths[1].tree.Len() + indexed.objects.Len(); n > 0 {
			t.Fatalf("seed %d: %d entries are left of nothing", seed, n)
		}
	}
}
