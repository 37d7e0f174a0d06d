package store

import (
	"slices"

	"github.com/kubecast/kubecast/internal/history"
)

// Matches reports whether the database would find a transition with this filter.
func (f Filter) Matches(t *history.Transition) bool {
	return (f.Namespace == "" || t.Namespace == f.Namespace) &&
		(f.Name == "" || t.Name == f.Name) &&
		(f.Within == nil || f.Own != "" && t.Owner == f.Own || slices.ContainsFunc(f.Within, func(p Place) bool {
			return p.has(t) && (p.Namespace == AnyNamespace || f.Living == nil || slices.ContainsFunc(f.Living, func(n Namespace) bool { return n.has(t) }))
		})) &&
		among(f.States, t.To) && among(f.Owners, t.Owner) && among(f.Queues, t.Queue) && among(f.UIDs, t.UID) &&
		t.At >= f.Since && (f.Until == 0 || t.At < f.Until)
}

func (p Place) has(t *history.Transition) bool {
	return (p.Namespace == AnyNamespace || p.Namespace == t.Namespace) && (p.Name == "" || p.Name == t.Name)
}

func among[T comparable](values []T, value T) bool {
	return len(values) == 0 || slices.Contains(values, value)
}
