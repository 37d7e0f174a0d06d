package cache

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
)

// An object that is read once for several fields gives the same answers as one that is read for each field alone.
func TestFieldsReadAtOnceAreThoseReadOneByOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	paths := []string{"a", "a.b", "a.b.c", "a.0", "a.1.b", "b.0.0", `x\\.y/z`, `x\\.y/z.a`, "metadata.name", "metadata", "b", "c.a.b.c", "ä", "q"}
	var value func(depth int) string
	value = func(depth int) string {
		switch n := rng.IntN(9); {
		case n < 3 && depth < 4:
			var members []string
			for _, key := range []string{"a", "b", "c", "x.y/z", "ä", `q\"`, "q"} {
				if rng.IntN(2) == 0 {
					members = append(members, fmt.Sprintf("%q:%s", key, value(depth+1)))
				}
			}
			return "{" + strings.Join(members, ",") + "}"
		case n < 5 && depth < 4:
			var elements []string
			for range rng.IntN(3) {
				elements = append(elements, value(depth+1))
			}
			return "[" + strings.Join(elements, ",") + "]"
		}
		return []string{`""`, `"v"`, "1", "true", "null", `"1"`}[rng.IntN(6)]
	}
	matched := 0
	for range 20000 {
		members := strings.TrimPrefix(value(0), "{")
		if members == "}" || !strings.HasSuffix(members, "}") {
			members = "}"
		} else {
			members = "," + members
		}
		json := `{"metadata":{"name":"v","resourceVersion":"1"}` + members
		o, err := cluster.NewObject(json)
		if err != nil {
			t.Fatal(err, json)
		}
		var conditions []string
		for range 1 + rng.IntN(5) {
			conditions = append(conditions, paths[rng.IntN(len(paths))]+[]string{"=", "!="}[rng.IntN(2)]+[]string{"", "v", "1"}[rng.IntN(3)])
		}
		text := strings.Join(conditions, ",")
		s, err := Paths{}.Selector("", text)
		if err != nil {
			t.Fatal(err, text)
		}
		want := true
		for i := range s.fields {
			f := &s.fields[i]
			f.unset = []string{"", "", "v"}[rng.IntN(3)]
			value := fieldValue(o, f.path)
			if value == "" {
				value = f.unset
			}
			want = want && (value == f.want) != f.not
		}
		s.tree = newTerms(s.fields)
		if got := s.Matches(o); got != want {
			t.Fatalf("%s is selected by %s: %v, want %v", json, text, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d were selected: this shows little", matched)
	}
}

// A selector with as many conditions as are allowed does not make an object expensive to match.
func BenchmarkSelectorOfManyFields(b *testing.B) {
	pod, err := cluster.NewObject(`{"metadata":{"name":"v","resourceVersion":"1"},"spec":{"pad":"` + strings.Repeat("x", 20<<10) + `"},"status":{"phase":"Running"}}`)
	if err != nil {
		b.Fatal(err)
	}
	for _, terms := range []int{1, 2, 64} {
		var conditions []string
		for i := range terms {
			conditions = append(conditions, fmt.Sprintf("status.x%d!=y", i))
		}
		s, err := Paths{}.Selector("", strings.Join(conditions, ","))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(terms), func(b *testing.B) {
			for b.Loop() {
				s.Matches(pod)
			}
		})
	}
}
