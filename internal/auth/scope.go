package auth

import (
	"maps"
	"slices"
)

// Scope is the part of a resource that an identity may see with one verb. The zero Scope is nothing.
type Scope struct {
	// All means that everything may be seen, in all namespaces and outside of them. The other fields are then empty.
	All bool
	// Namespaces are the namespaces in which everything may be seen, sorted. Not all of them need exist.
	Namespaces []string
	// Names are the names of single objects that may be seen, too, sorted, by namespace. Under "" are names that may
	// be seen in every namespace, and those of objects without a namespace.
	Names map[string][]string
}

// Empty reports whether nothing may be seen.
func (s Scope) Empty() bool { return !s.All && len(s.Namespaces) == 0 && len(s.Names) == 0 }

// Sees reports whether an object may be seen.
func (s Scope) Sees(namespace, name string) bool {
	return s.SeesNamespace(namespace) || has(s.Names[namespace], name) || has(s.Names[""], name)
}

// SeesNamespace reports whether everything in a namespace may be seen; "" stands for all of them.
func (s Scope) SeesNamespace(namespace string) bool {
	return s.All || namespace != "" && has(s.Namespaces, namespace)
}

// In returns the part of the scope within a namespace.
func (s Scope) In(namespace string) Scope {
	if s.SeesNamespace(namespace) {
		return Scope{Namespaces: []string{namespace}}
	}
	names := slices.Concat(s.Names[""], s.Names[namespace])
	if len(names) == 0 {
		return Scope{}
	}
	slices.Sort(names)
	return Scope{Names: map[string][]string{namespace: slices.Compact(names)}}
}

// And is what both of two scopes show.
func (s Scope) And(other Scope) (both Scope) {
	switch {
	case s.All:
		return other
	case other.All:
		return s
	}
	for _, namespace := range s.Namespaces {
		if other.SeesNamespace(namespace) {
			both.Namespaces = append(both.Namespaces, namespace)
		}
	}
	names := map[string][]string{}
	add := func(a, b Scope) {
		for namespace, in := range a.Names {
			for _, name := range in {
				if b.Sees(namespace, name) {
					names[namespace] = append(names[namespace], name)
					continue
				}
				if namespace != "" {
					continue
				}
				for _, whole := range b.Namespaces {
					names[whole] = append(names[whole], name)
				}
				for only, shown := range b.Names {
					if has(shown, name) {
						names[only] = append(names[only], name)
					}
				}
			}
		}
	}
	add(s, other)
	add(other, s)
	for namespace, in := range names {
		slices.Sort(in)
		names[namespace] = slices.Compact(in)
	}
	if len(names) > 0 {
		both.Names = names
	}
	return both
}

// Equal reports whether two scopes are the same.
func (s Scope) Equal(other Scope) bool {
	return s.All == other.All && slices.Equal(s.Namespaces, other.Namespaces) &&
		maps.EqualFunc(s.Names, other.Names, slices.Equal[[]string])
}

func has(sorted []string, s string) bool {
	_, found := slices.BinarySearch(sorted, s)
	return found
}

// Namespaces knows the namespaces of clusters. Authorizers that cannot enumerate permissions ask about each of them.
type Namespaces interface {
	// Names returns a cluster's namespaces, sorted; ok is false if they are not known. Callers must not change the
	// slice.
	Names(cluster string) (names []string, ok bool)
	// Changes arranges for changed to be called when a namespace has come or gone, like Authorizer's Changes.
	Changes(changed func()) (stop func())
}
