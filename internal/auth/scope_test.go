package auth

import "testing"

func TestScopeSees(t *testing.T) {
	s := Scope{Namespaces: []string{"a", "b"}, Names: map[string][]string{"": {"everywhere"}, "c": {"x", "y"}}}
	for _, c := range []struct {
		namespace, name string
		want            bool
	}{
		{"a", "any", true}, {"b", "any", true}, {"c", "any", false}, {"c", "x", true}, {"d", "x", false},
		{"d", "everywhere", true}, {"", "everywhere", true}, {"", "any", false}, {"", "", false}, {"c", "", false},
	} {
		if s.Sees(c.namespace, c.name) != c.want {
			t.Errorf("%s/%s: %t", c.namespace, c.name, !c.want)
		}
	}
	for namespace, want := range map[string]Scope{
		"a": {Namespaces: []string{"a"}},
		"c": {Names: map[string][]string{"c": {"everywhere", "x", "y"}}},
		"d": {Names: map[string][]string{"d": {"everywhere"}}},
	} {
		if in := s.In(namespace); !in.Equal(want) {
			t.Errorf("in %s: %+v", namespace, in)
		}
	}
	if !(Scope{}).In("a").Empty() || !(Scope{All: true}).In("a").Equal(Scope{Namespaces: []string{"a"}}) {
		t.Error("in a namespace, of nothing or of all")
	}
	if !(Scope{All: true}).Sees("", "node") || (Scope{}).Sees("a", "b") || s.Empty() || !(Scope{}).Empty() {
		t.Error("all, or nothing")
	}
	if s.Equal(Scope{Namespaces: []string{"a", "b"}}) || !s.Equal(s) || s.Equal(Scope{All: true}) {
		t.Error("equal")
	}
}
