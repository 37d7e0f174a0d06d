package store

import (
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/jobs"
)

// row is what a filter asks of a row, whatever table it is in.
type row struct {
	namespace, namespaceUID, name, owner, queue, uid string
	at, created                                      jobs.Time
}

// Matches reports whether the database would find a transition with this filter.
func (f Filter) Matches(t *jobs.Transition) bool {
	return among(f.States, t.To) && (len(f.Causes) == 0 || t.Cause != nil && among(f.Causes, t.Cause.Reason)) && f.matches(row{t.Namespace, t.NamespaceUID, t.Name, t.Owner, t.Queue, t.UID, t.At, t.Created})
}

// MatchesRun reports whether the database would find a run with this filter.
func (f Filter) MatchesRun(r *Run) bool {
	return f.matches(row{r.Namespace, r.NamespaceUID, r.Job.Name, r.Owner, r.Queue, r.Job.UID, r.Created, r.Created})
}

func (f Filter) matches(r row) bool {
	return (f.Namespace == "" || r.namespace == f.Namespace) &&
		(f.Name == "" || r.name == f.Name) &&
		strings.Contains(r.name, f.Search) &&
		(f.Within == nil || f.Own != "" && r.owner == f.Own || slices.ContainsFunc(f.Within, func(p NamespacedName) bool {
			return p.has(r) && (p.Namespace == AnyNamespace || f.Living == nil || slices.ContainsFunc(f.Living, func(n Namespace) bool { return n.has(r) }))
		})) &&
		among(f.Owners, r.owner) && among(f.Queues, r.queue) && among(f.UIDs, r.uid) &&
		r.at >= f.Since && (f.Until == 0 || r.at < f.Until)
}

func (p NamespacedName) has(r row) bool {
	return (p.Namespace == AnyNamespace || p.Namespace == r.namespace) && (p.Name == "" || p.Name == r.name)
}

func among[T comparable](values []T, value T) bool {
	return len(values) == 0 || slices.Contains(values, value)
}
