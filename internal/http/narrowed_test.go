package http

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/auth"
)

// A caller who may see some namespaces is shown these, in whatever way they ask. What a second
// caller may see of the same snapshot is another list, with another ETag, other pages and other
// counts.
func TestListsAreNarrowed(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for _, key := range []string{"a/one", "a/two", "b/one", "b/two", "c/one", "c/two"} {
			g.api.Put("pods", key, "metadata.labels.app=web", "status.phase=Running")
		}
		g.access.permit("ann", auth.Scope{Namespaces: []string{"a"}, Names: map[string][]string{"c": {"two"}}})
		g.access.permit("bob", auth.Scope{Namespaces: []string{"b"}})
		g.access.permit("eve", auth.Scope{})
		as := func(user, path string) answer { return g.get(path, "Authorization: Bearer "+user) }
		read := func(user, path string) (names []string, next string) {
			t.Helper()
			a := as(user, path)
			var l list
			if err := json.Unmarshal([]byte(a.body), &l); err != nil || a.code != 200 {
				t.Fatalf("%s: %d %s", path, a.code, a.body)
			}
			return l.names(), l.Metadata.Continue
		}
		for path, want := range map[string][2][]string{
			"/api/v1/pods":                                       {{"a/one", "a/two", "c/two"}, {"b/one", "b/two"}},
			"/api/v1/pods?labelSelector=app%3Dweb":               {{"a/one", "a/two", "c/two"}, {"b/one", "b/two"}},
			"/api/v1/pods?fieldSelector=metadata.name%3Dtwo":     {{"a/two", "c/two"}, {"b/two"}},
			"/api/v1/pods?search=one":                            {{"a/one"}, {"b/one"}},
			"/api/v1/pods?sort=-metadata.name":                   {{"c/two", "a/two", "a/one"}, {"b/two", "b/one"}},
			"/api/v1/pods?fields=metadata.labels":                {{"a/one", "a/two", "c/two"}, {"b/one", "b/two"}},
			"/clusters/default/api/v1/pods?resourceVersion=0":    {{"a/one", "a/two", "c/two"}, {"b/one", "b/two"}},
			"/api/v1/pods?fieldSelector=metadata.namespace%3Dc":  {{"c/two"}, nil},
			"/api/v1/pods?sort=metadata.name&limit=2":            {{"a/one", "a/two"}, {"b/one", "b/two"}},
			"/api/v1/pods?labelSelector=app%3Dweb&limit=1&sort=": {{"a/one"}, {"b/one"}},
		} {
			for i, user := range []string{"ann", "bob"} {
				got, _ := read(user, path)
				slices.Sort(got)
				wanted := slices.Clone(want[i])
				slices.Sort(wanted)
				if !slices.Equal(got, wanted) {
					t.Errorf("%s sees %v of %s", user, got, path)
				}
			}
			if a := as("eve", path); a.code != 403 {
				t.Errorf("eve: %s: %d %s", path, a.code, a.body)
			}
		}
		if got, _ := read("ann", "/api/v1/namespaces/c/pods"); !slices.Equal(got, []string{"c/two"}) {
			t.Errorf("by name in a namespace: %v", got)
		}
		for path, code := range map[string]int{
			"/api/v1/namespaces/c/pods/two": 200, "/api/v1/namespaces/c/pods/one": 403, "/api/v1/namespaces/b/pods": 403, "/api/v1/namespaces/b/pods/one": 403,
			"/api/v1/nodes": 403,
		} {
			if a := as("ann", path); a.code != code {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
		if a := as("ann", "/api/v1/pods?countBy=metadata.namespace"); !strings.Contains(a.body, `"counts":[{"value":"a","count":2},{"value":"c","count":1}]`) {
			t.Errorf("counted: %s", a.body)
		}
		if a := g.get("/api/v1/pods", "Authorization: Bearer bob", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1"); strings.Contains(a.body, `"a"`) || strings.Count(a.body, `"cells"`) != 2 {
			t.Errorf("as a table: %s", a.body)
		}
		tag := func(user string) string { return as(user, "/api/v1/pods").header.Get("ETag") }
		tags := map[string]bool{tag("ann"): true, tag("bob"): true, tag("alice"): true}
		if len(tags) != 3 || tags[""] {
			t.Errorf("ETags: %v", tags)
		}
		if a := g.get("/api/v1/pods", "Authorization: Bearer bob", "If-None-Match: "+tag("ann")); a.code != 200 {
			t.Errorf("another one's ETag: %d", a.code)
		}
		if a := g.get("/api/v1/pods", "Authorization: Bearer bob", "If-None-Match: "+tag("bob")); a.code != 304 {
			t.Errorf("his ETag: %d", a.code)
		}
		before := tag("ann")
		g.access.permit("ann", auth.Scope{Namespaces: []string{"a", "c"}})
		if before == tag("ann") {
			t.Error("the ETag is the same with other permissions")
		}

		for _, query := range []string{"?limit=1", "?limit=1&sort=metadata.namespace"} {
			_, next := read("bob", "/api/v1/pods"+query)
			// Somebody else's token opens nothing.
			if a := as("eve", "/api/v1/pods"+query+"&continue="+next); a.code != 403 {
				t.Errorf("%d %s", a.code, a.body)
			}
		}
	})
}

// Whose permissions change in the middle of a walk is told that it does not go on, since the pages
// together would be the list of no version: they would lack what is before the place and seen by
// now, or have what is not seen any more.
func TestPagesOfTwoPermissionsAreNoList(t *testing.T) {
	some := func(namespaces ...string) auth.Scope { return auth.Scope{Namespaces: namespaces} }
	for name, c := range map[string]struct {
		before, after auth.Scope
		rest          []string // that the fresh token leads to
	}{
		"grow":        {some("b"), some("a", "b"), []string{"b/two"}},
		"grow to all": {some("b"), auth.Scope{All: true}, []string{"b/two", "c/one"}},
		"shrink":      {auth.Scope{All: true}, some("a", "c"), []string{"a/two", "c/one"}},
		"swap":        {some("a"), some("b"), []string{"b/one", "b/two"}},
	} {
		for _, sorted := range []string{"", "&sort=metadata.namespace"} {
			t.Run(name+sorted, func(t *testing.T) {
				inBubble(t, func(t *testing.T, g *gateway) {
					for _, key := range []string{"a/one", "a/two", "b/one", "b/two", "c/one"} {
						g.api.Put("pods", key)
					}
					g.access.permit("ann", c.before)
					page := func(limit, next string) (code int, l list) {
						a := g.get("/api/v1/pods?limit="+limit+sorted+"&continue="+next, "Authorization: Bearer ann")
						if err := json.Unmarshal([]byte(a.body), &l); err != nil {
							t.Fatal(err, a.body)
						}
						return a.code, l
					}
					_, first := page("1", "")
					if code, _ := page("1", first.Metadata.Continue); code != 200 {
						t.Fatalf("before: %d", code)
					}
					g.access.permit("ann", c.after)
					code, refused := page("500", first.Metadata.Continue)
					if code != 410 || refused.Metadata.Continue == "" {
						t.Fatalf("%d %+v", code, refused)
					}
					code, rest := page("500", refused.Metadata.Continue)
					if code != 200 || !slices.Equal(rest.names(), c.rest) {
						t.Errorf("who goes on all the same: %d %v", code, rest.names())
					}
				})
			})
		}
	}
}

// Two namespaces whose visibilities begin with the same 40 bits (see
// access.TestShortNamesOfVisibilitiesTellNobodyApart): names that are short enough for event ids
// can be searched for. Whoever may see the one is shown nothing of the other, and not told that
// nothing has changed when they are given the other.
func TestShortNamesOfSightsTellNobodyApart(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		ann, bob := auth.Scope{Namespaces: []string{"team-1458946"}}, auth.Scope{Namespaces: []string{"team-1840343"}}
		g.api.Put("pods", "team-1458946/hers")
		g.api.Put("pods", "team-1840343/his")
		g.access.permit("ann", ann)
		g.access.permit("bob", bob)
		for _, query := range []string{"", "?sort=metadata.name", "?limit=1", "?limit=1&sort=metadata.name"} {
			path := "/api/v1/pods" + query
			tag := ""
			for user, not := range map[string]string{"ann": "his", "bob": "hers"} {
				a := g.get(path, "Authorization: Bearer "+user, "If-None-Match: "+tag)
				if a.code != 200 || strings.Contains(a.body, `"name":"`+not+`"`) {
					t.Errorf("%s asks %s: %d %s", user, path, a.code, a.body)
				}
				tag = a.header.Get("ETag")
			}
		}
		s := g.stream("/api/v1/pods", "Authorization: Bearer ann")
		s.until("synced")
		g.access.permit("ann", bob)
		if e := s.until("widened"); !strings.Contains(e.data, "team-1840343") {
			t.Errorf("%+v", e)
		}
	})
}
