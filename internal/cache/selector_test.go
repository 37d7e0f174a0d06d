package cache

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/cluster/clustertest"
	"github.com/kubecast/kubecast/internal/stream"
)

func newObject(t testing.TB, o clustertest.Object) *cluster.Object {
	t.Helper()
	made, err := cluster.NewObject(o.JSON(pods))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// someObjects are random, of few names and values, so that they often meet.
func someObjects(t testing.TB, rng *rand.Rand, n int) (objects []*cluster.Object) {
	t.Helper()
	for range n {
		o := clustertest.Object{
			Namespace: []string{"a", "a-b", "a.b", "b"}[rng.IntN(4)],
			Name:      fmt.Sprintf("%c-%d", 'a'+rng.IntN(3), rng.IntN(20)),
			Fields:    map[string]any{"spec": map[string]any{}},
		}
		for range rng.IntN(4) {
			if o.Labels == nil {
				o.Labels = map[string]string{}
			}
			o.Labels[someKey(rng)] = []string{"", "web", "db", "1", "7", "100"}[rng.IntN(6)]
		}
		if rng.IntN(4) > 0 {
			o.Fields["spec"].(map[string]any)["node"] = []any{"", "n1", "n2", 7, true, nil}[rng.IntN(6)]
		}
		objects = append(objects, newObject(t, o))
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
	selector, err := ParseSelector(text, field)
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
		ours, err := ParseSelector(text, "")
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
			scope := []stream.Scope{stream.AllNamespaces(), stream.Namespaces("a"), stream.Namespaces("a", "none", "a-b", "b"), stream.Namespaces("none")}[rng.IntN(4)]
			after := clustertest.Object{}
			if rng.IntN(2) == 0 {
				after = clustertest.Object{Namespace: []string{"a", "a-b", "a.b", "b", "none"}[rng.IntN(5)], Name: fmt.Sprintf("%c-%d", 'a'+rng.IntN(3), rng.IntN(20))}
			}
			var want, got []string
			for _, o := range sorted {
				inScope := scope.All() || slices.Contains(scope.Namespaces(), o.GetNamespace())
				if inScope && selector.Matches(o) && (after.Name == "" || o.Key() > after.Namespace+"/"+after.Name) {
					want = append(want, o.Key())
				}
			}
			most := 1 + rng.IntN(50)
			for o := range snapshot.List(scope, selector, after.Namespace, after.Name) {
				got = append(got, o.Key())
				if len(got) == most {
					break
				}
			}
			if want = want[:min(most, len(want))]; !slices.Equal(got, want) {
				t.Fatalf("seed %d: %q in %v after %s/%s:\n%q, not\n%q", seed, text, scope, after.Namespace, after.Name, got, want)
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

func TestFieldSelectors(t *testing.T) {
	o, err := cluster.NewObject(`{"kind":"Pod","metadata":{"name":"a","resourceVersion":"1","annotations":{"a.b/c":"x","a":{"b/c":"y"},"0":"zero","*":"star","q\"\\":"odd","é":"accent"}},` +
		`"spec":{"containers":[{"image":"one"},{"image":"two"}],"n":7,"f":1.5,"e":1e3,"t":true,"z":null,"o":{"a":1},"empty":"","s":"a,b=c\\d","esc":"\u0041"},"status":{"phase":"Running"}}`)
	if err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]bool{
		"status.phase=Running":            true,
		"status.phase==Running":           true,
		"status.phase!=Running":           false,
		"status.phase=Pending":            false,
		"status.phase=Running,spec.n=7":   true,
		"status.phase=Running,spec.n!=7":  false,
		"metadata.name=a":                 true,
		"spec.f=1.5":                      true,
		"spec.e=1000":                     true,
		"spec.t=true":                     true,
		"spec.z=":                         true,
		"spec.missing=":                   true,
		"spec.missing!=":                  false,
		"spec.missing!=x":                 true,
		"missing.at.all=":                 true,
		"spec.empty=":                     true,
		"spec.n.deeper=":                  true,
		"spec.containers.0.image=one":     true,
		"spec.containers.1.image=two":     true,
		"spec.containers.2.image=":        true,
		"spec.containers.image=":          true, // an array has no names
		"spec.containers.#=":              true, // and no count, or the like
		"spec.containers.#.image=":        true,
		"spec.containers.-1.image=":       true,
		"spec.containers.@reverse=":       true,
		"@this=":                          true,
		"spec.@keys=":                     true,
		"spec.*=":                         true,
		"spec.containers.0|image=":        true,
		`metadata.annotations.a\.b/c=x`:   true,
		`metadata.annotations.a.b/c=y`:    true,
		`metadata.annotations.0=zero`:     true,
		`metadata.annotations.*=star`:     true,
		`metadata.annotations.q"\\=odd`:   true,
		`metadata.annotations.é=accent`:   true,
		`spec.s=a\,b\=c\\d`:               true,
		`spec.esc=A`:                      true,
		` status.phase =Running`:          true,
		"spec.o.a=1":                      true,
		"kind=Pod":                        true,
		"metadata.annotations.a.b/c!=y":   false,
		"metadata.resourceVersion=1":      true,
		"spec.containers.0.image!=two":    true,
		"spec.containers.00000.image=one": true,
	} {
		parsed, err := ParseSelector("", selector)
		if err != nil {
			t.Errorf("%q: %v", selector, err)
		} else if got := parsed.Matches(o); got != want {
			t.Errorf("%q: %v", selector, got)
		}
	}
	for _, bad := range []string{"status.phase", "=x", ".=x", "a..b=x", "a.=x", ".a=x", "a=b=c", `a=b\`, `a=b\c`} {
		if _, err := ParseSelector("", bad); err == nil || !strings.HasPrefix(err.Error(), "unable to parse fieldSelector: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := ParseSelector("a in (", ""); err == nil || !strings.HasPrefix(err.Error(), "unable to parse labelSelector: ") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", " "} {
		if s, err := ParseSelector(text, ""); err != nil || !s.Empty() || s.Match() != nil {
			t.Errorf("%q is not empty: %v", text, err)
		}
	}
}

// lookUp is what a path means: a plain walk over the decoded object.
func lookUp(value any, keys []string) (text string, sure bool) {
	for _, key := range keys {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if strings.Trim(key, "0123456789") != "" || err != nil || i >= len(v) {
				return "", err == nil || strings.Trim(key, "0123456789") != ""
			}
			value = v[i]
		default:
			return "", true
		}
	}
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), strings.Trim(v.String(), "0123456789") == ""
	}
	return "", false // objects and arrays
}

func FuzzSelectors(f *testing.F) {
	f.Add("app=web,tier!=db", "status.phase=Running", `{"metadata":{"name":"a","resourceVersion":"1","labels":{"app":"web"}},"status":{"phase":"Running"}}`)
	f.Add("", `a.#.b\|c=x`, `{"metadata":{"name":"a","resourceVersion":"1"},"a":[{"b|c":"x"}],"#":1}`)
	f.Add("!a", `a.@this.1.*=`, `{"metadata":{"name":"a","resourceVersion":"1"},"a":{"@this":["",{"*":"y"}]}}`)
	f.Add("a in (b)", `a.{x}.!"y".[0]=z`, `{"metadata":{"name":"a","resourceVersion":"1"},"a":{"{x}":{"!\"y\"":{"[0]":"z"}}}}`)
	f.Add("", `a.\u00e9.?=z`, `{"metadata":{"name":"a","resourceVersion":"1"},"a":{"\u00e9":{"?":"z"}}}`)
	f.Fuzz(func(t *testing.T, labelSelector, fieldSelector, text string) {
		selector, err := ParseSelector(labelSelector, fieldSelector)
		if err != nil || jsontext.NewDecoder(strings.NewReader(text)).SkipValue() != nil {
			return
		}
		value := jsontext.Value(text)
		if value.Compact() != nil {
			return
		}
		o, err := cluster.NewObject(string(value))
		if err != nil {
			return
		}
		matches := selector.Matches(o)
		state, err := newState(nil)
		if err != nil {
			t.Fatal(err)
		}
		state.put(o)
		for listed := range (&Snapshot{state: state}).List(stream.AllNamespaces(), selector, "", "") {
			if listed != o || !matches {
				t.Fatal("what is listed does not match")
			}
			matches = false
		}
		if matches {
			t.Fatal("what matches is not listed")
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var members map[string]any
		if err := dec.Decode(&members); err != nil {
			t.Fatal(err)
		}
		parsed, err := fields.ParseSelector(fieldSelector)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range parsed.Requirements() {
			keys, err := SplitPath(r.Field)
			if err != nil {
				t.Fatal(err)
			}
			if want, sure := lookUp(members, keys); sure && fieldValue(o, selector.fields[i].path) != want {
				t.Fatalf("%q of %s is %q, not %q", r.Field, text, fieldValue(o, selector.fields[i].path), want)
			}
		}
	})
}
