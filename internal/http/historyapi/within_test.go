package historyapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// TestOfAHistoryIsAskedOnlyWhatMayBeSeen, and of one namespace only what may be seen there: else
// whoever may see very much could see the history of no namespace.
func TestOfAHistoryIsAskedOnlyWhatMayBeSeen(t *testing.T) {
	some := auth.Scope{Namespaces: []string{"a", "b"}, Names: map[string][]string{"c": {"x"}, "": {"y"}}}
	var many auth.Scope
	for n := range maxWithin + 1 {
		many.Namespaces = append(many.Namespaces, fmt.Sprintf("n%05d", n))
	}
	for _, c := range []struct {
		shows     auth.Scope
		namespace string
		want      []store.NamespacedName // nil: all
		refused   bool
	}{
		{shows: auth.Scope{All: true}},
		{shows: auth.Scope{All: true}, namespace: "a"},
		{shows: auth.Scope{}, want: []store.NamespacedName{}},
		{shows: some, want: []store.NamespacedName{{Namespace: "a"}, {Namespace: "b"}, {Namespace: "c", Name: "x"}, {Namespace: store.AnyNamespace, Name: "y"}}},
		{shows: some, namespace: "a", want: []store.NamespacedName{{Namespace: "a"}}},
		{shows: some, namespace: "c", want: []store.NamespacedName{{Namespace: "c", Name: "x"}, {Namespace: "c", Name: "y"}}},
		{shows: some, namespace: "d", want: []store.NamespacedName{{Namespace: "d", Name: "y"}}},
		{shows: many, refused: true},
		{shows: many, namespace: "n00007", want: []store.NamespacedName{{Namespace: "n00007"}}},
		{shows: auth.Scope{Namespaces: many.Namespaces[:maxWithin]}, namespace: "other", want: []store.NamespacedName{}},
	} {
		got, err := within(c.shows, c.namespace)
		if refused := err != nil && reply.To(err).Code == http.StatusBadRequest; refused != c.refused || err != nil && !refused {
			t.Errorf("%d namespaces, of %q: %v", len(c.shows.Namespaces), c.namespace, err)
		}
		order := func(a, b store.NamespacedName) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		}
		slices.SortFunc(got, order)
		slices.SortFunc(c.want, order)
		if (got == nil) != (c.want == nil) || !slices.Equal(got, c.want) {
			t.Errorf("of %q: %v, not %v", c.namespace, got, c.want)
		}
	}
}
