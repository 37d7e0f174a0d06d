package auth

import (
	"math/rand/v2"
	"testing"
)

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

// What both of two scopes show is what each of them shows, of any namespace and name.
func TestScopeOfTwoPermissionsIsWhatBothShow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func() (s Scope) {
		some := func(of []string) (few []string) {
			for _, one := range of {
				if random.IntN(3) == 0 {
					few = append(few, one)
				}
			}
			return few
		}
		if random.IntN(10) == 0 {
			return Scope{All: true}
		}
		s.Namespaces = some([]string{"a", "b", "c"})
		for _, namespace := range some([]string{"", "a", "b", "c"}) {
			if names := some([]string{"x", "y", "z"}); len(names) > 0 {
				if s.Names == nil {
					s.Names = map[string][]string{}
				}
				s.Names[namespace] = names
			}
		}
		return s
	}
	for range 2000 {
		one, other := pick(), pick()
		both := one.And(other)
		for _, namespace := range []string{"a", "b", "c", "d"} {
			if want := one.SeesNamespace(namespace) && other.SeesNamespace(namespace); both.SeesNamespace(namespace) != want {
				t.Fatalf("%+v and %+v: %+v", one, other, both)
			}
			for _, name := range []string{"x", "y", "z", "w"} {
				if want := one.Sees(namespace, name) && other.Sees(namespace, name); both.Sees(namespace, name) != want {
					t.Fatalf("%+v and %+v: %+v for %s/%s", one, other, both, namespace, name)
				}
			}
		}
		if !both.Equal(other.And(one)) {
			t.Fatalf("%+v and %+v: %+v, and the other way %+v", one, other, both, other.And(one))
		}
	}
}
