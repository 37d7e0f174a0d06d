package visibility

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
)

func TestVisibilityIsWhatMayBeSeen(t *testing.T) {
	pods := cluster.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	nodes := cluster.Kind{Version: "v1", Resource: "nodes", Kind: "Node"}
	namespaces := cluster.Kind{Version: "v1", Resource: "namespaces", Kind: "Namespace"}
	some := auth.Scope{Namespaces: []string{"a", "b"}, Names: map[string][]string{"c": {"x"}, "": {"y"}}}
	object := func(namespace, name string) *cluster.Object { return cluster.Probe(namespace, name) }
	for name, c := range map[string]struct {
		scope auth.Scope
		t     Target
		kind  cluster.Kind
		see   []*cluster.Object // nil: refused
		not   []*cluster.Object
		where []string // nil: everywhere
	}{
		"all":           {scope: auth.Scope{All: true}, kind: pods, see: []*cluster.Object{object("q", "q")}},
		"one namespace": {scope: auth.Scope{Namespaces: []string{"a"}}, t: Target{Namespace: "a"}, kind: pods, see: []*cluster.Object{object("a", "q")}},
		"some namespaces": {
			scope: auth.Scope{Namespaces: []string{"a", "b"}, Names: map[string][]string{"c": {"x"}}}, kind: pods, where: []string{"a", "b", "c"},
			see: []*cluster.Object{object("a", "q"), object("b", "q"), object("c", "x")}, not: []*cluster.Object{object("c", "q"), object("d", "x")}},
		"names everywhere": {scope: some, kind: pods, see: []*cluster.Object{object("d", "y"), object("a", "q")}, not: []*cluster.Object{object("c", "q"), object("d", "x")}},
		"names in a namespace": {
			scope: some.In("c"), t: Target{Namespace: "c"}, kind: pods, where: []string{"c"},
			see: []*cluster.Object{object("c", "x"), object("c", "y")}, not: []*cluster.Object{object("c", "q")}},
		"nothing":                             {kind: pods},
		"of what has no namespace":            {scope: some, kind: nodes, see: []*cluster.Object{object("", "y")}, not: []*cluster.Object{object("", "a"), object("", "x")}},
		"a role in a namespace shows no node": {scope: auth.Scope{Namespaces: []string{"a"}, Names: map[string][]string{"b": {"x"}}}, kind: nodes},
		"a namespace is in itself": {
			scope: some, kind: namespaces, see: []*cluster.Object{object("", "a"), object("", "b"), object("", "y")}, not: []*cluster.Object{object("", "c"), object("", "x")}},
	} {
		s, ok := Of(c.scope, c.t, c.kind)
		if ok != (c.see != nil) {
			t.Errorf("%s: %t", name, ok)
		}
		for _, o := range c.see {
			if !s.Sees(o) {
				t.Errorf("%s: %s is not seen", name, o.Key())
			}
		}
		for _, o := range c.not {
			if s.Sees(o) {
				t.Errorf("%s: %s is seen", name, o.Key())
			}
		}
		if s != nil && !slices.Equal(s.where.Namespaces(), c.where) {
			t.Errorf("%s: looks in %v", name, s.where.Namespaces())
		}
		if (s.Name() == "") != (len(c.not) == 0) {
			t.Errorf("%s: %q", name, s.Name())
		}
	}
	var many auth.Scope
	for i := range maxNarrow + 1 {
		many.Namespaces = append(many.Namespaces, fmt.Sprintf("n%03d", i))
	}
	if s, ok := Of(many, Target{}, pods); !ok || !s.where.All() || s.Sees(object("m", "x")) || !s.Sees(object("n001", "x")) {
		t.Error("of many namespaces")
	}
}

func TestVisibilitiesCoverEachOther(t *testing.T) {
	pods := cluster.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	of := func(scope auth.Scope) *Visibility {
		s, _ := Of(scope, Target{}, pods)
		return s
	}
	all := of(auth.Scope{All: true})
	a, ab := of(auth.Scope{Namespaces: []string{"a"}}), of(auth.Scope{Namespaces: []string{"a", "b"}})
	x := of(auth.Scope{Names: map[string][]string{"a": {"x"}}})
	everywhere := of(auth.Scope{Names: map[string][]string{"": {"x"}}})
	for _, c := range []struct {
		s, other *Visibility
		want     bool
	}{
		{all, a, true}, {a, all, false}, {ab, a, true}, {a, ab, false}, {a, x, true}, {x, a, false}, {everywhere, x, true}, {x, everywhere, false},
		{ab, everywhere, false}, {all, everywhere, true}, {all, all, true}, {a, a, true},
	} {
		if c.s.Covers(c.other) != c.want {
			t.Errorf("%+v covers %+v: %t", c.s, c.other, !c.want)
		}
	}
}

// Names that are short enough for event ids can be found by a search: the digests of these two visibilities begin
// with the same 40 bits. Only the names are the same, and nothing else.
func TestShortNamesOfVisibilitiesTellNobodyApart(t *testing.T) {
	pods := cluster.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true}
	hers, _ := Of(auth.Scope{Namespaces: []string{"team-1458946"}}, Target{}, pods)
	his, _ := Of(auth.Scope{Namespaces: []string{"team-1840343"}}, Target{}, pods)
	if hers.Name() != his.Name() || hers.Same(his) || hers.Tag() == his.Tag() {
		t.Fatalf("%s %s", hers.Name(), his.Name())
	}
}
