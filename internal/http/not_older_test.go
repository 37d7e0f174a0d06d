package http

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestListNotOlderThanAVersionThatTheClusterHas: an API server's own lists bear versions of other
// kinds' changes, and so does what other replicas tell. A list of any form that asks for such a
// version is answered.
func TestListNotOlderThanAVersionThatTheClusterHas(t *testing.T) {
	const table, metadata = "Accept: application/json;as=Table;g=meta.k8s.io;v=v1", "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	inBubbleOf(t, 2, func(t *testing.T, replicas []*gateway) {
		for _, g := range replicas {
			g.list("/api/v1/pods")
		}
		replicas[0].watches("pods", 2)
		api := replicas[0].api
		api.Put("pods", "team-a/a")
		api.Put("pods", "team-a/b")
		pass(5 * time.Second)
		for i, form := range []struct {
			query  string
			header string
			exact  bool
		}{
			{query: "?"},
			{query: "?resourceVersionMatch=NotOlderThan&"},
			{query: "?resourceVersionMatch=Exact&", exact: true},
			{query: "?limit=1&"},
			{query: "?limit=1&resourceVersionMatch=NotOlderThan&"},
			{query: "?", header: table},
			{query: "?limit=1&", header: table},
			{query: "?", header: metadata},
			{query: "?sort=metadata.name&limit=1&"},
			{query: "?countBy=metadata.namespace&"},
			{query: "?fieldSelector=metadata.name%3Da&"},
			{query: "/a?"},
		} {
			g := replicas[i%2]
			version := api.Put("jobs", "team-a/j") // the newest version is now one of another kind
			began := time.Now()
			a := g.get(fmt.Sprintf("/api/v1/namespaces/team-a/pods%sresourceVersion=%d", form.query, version), form.header)
			if a.code != 200 || time.Since(began) > 8*time.Second {
				t.Errorf("%s %s: %d after %s: %s", form.query, form.header, a.code, time.Since(began), a.body)
			}
			if form.query != "/a?" && !strings.Contains(a.body, fmt.Sprintf(`"resourceVersion":"%d"`, version)) {
				t.Errorf("%s %s: the list is not of version %d: %s", form.query, form.header, version, a.body)
			}
		}
		// A list's next page comes from either replica, at the same version.
		version := api.Put("jobs", "team-a/j")
		first := replicas[0].list(fmt.Sprintf("/api/v1/namespaces/team-a/pods?limit=1&resourceVersion=%d", version))
		replicas[1].list(fmt.Sprintf("/api/v1/namespaces/team-a/pods?resourceVersion=%d", version))
		for _, g := range replicas {
			next := g.list("/api/v1/namespaces/team-a/pods?limit=1&continue=" + first.Metadata.Continue)
			if len(next.Items) != 1 || next.Metadata.ResourceVersion != first.Metadata.ResourceVersion {
				t.Errorf("%+v after %+v", next, first)
			}
		}
	})
}

// A live page, and a watch whose state is of a version, come back with what another replica has told.
func TestLivePageAndStateOfAVersionThatTheClusterHas(t *testing.T) {
	inBubbleOf(t, 2, func(t *testing.T, replicas []*gateway) {
		for _, g := range replicas {
			g.list("/api/v1/pods")
		}
		replicas[0].watches("pods", 2)
		api := replicas[0].api
		api.Put("pods", "team-a/a")
		pass(5 * time.Second)
		version := api.Put("jobs", "team-a/j")
		if a := replicas[0].get(fmt.Sprintf("/api/v1/pods?resourceVersion=%d", version)); a.code != 200 {
			t.Fatalf("%d %s", a.code, a.body)
		}
		s := replicas[0].stream("/api/v1/pods?sort=metadata.name&limit=1")
		s.expect("added a", "page")
		began := time.Now()
		back := replicas[1].stream("/api/v1/pods?sort=metadata.name&limit=1&lastEventId=" + s.lastID)
		api.Put("pods", "team-a/Z")
		back.expect("added Z", "page") // and not the page as it was once more
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("it took %s", took)
		}
		version = api.Put("jobs", "team-a/j")
		began = time.Now()
		w := replicas[1].watch(fmt.Sprintf("/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=%d", version))
		for {
			e := w.next()
			if at := e.Get("object.metadata.resourceVersion").Str; e.Get("type").Str == "BOOKMARK" {
				if at != fmt.Sprint(version) || time.Since(began) > 8*time.Second {
					t.Errorf("%s after %s", e, time.Since(began))
				}
				break
			}
		}
	})
}

// A version that nobody has is refused in the API server's words, and whoever names such versions
// makes the gateway ask once a second.
func TestListNotOlderThanAVersionThatNobodyHas(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.list("/api/v1/pods")
		g.watches("pods", 1)
		pass(5 * time.Second)
		g.api.Requests()
		began := time.Now()
		for i := range uint64(10) {
			version := g.api.Version() + 1 + i*i*i*1_000_000_007
			a := g.get(fmt.Sprintf("/api/v1/pods?resourceVersion=%d", version))
			s := a.status(t)
			if a.code != 504 || !strings.HasPrefix(s.Message, fmt.Sprintf("Timeout: Too large resource version: %d, current: ", version)) ||
				len(s.Details.Causes) != 1 || s.Details.Causes[0].Type != "ResourceVersionTooLarge" {
				t.Errorf("%d %s", a.code, a.body)
			}
		}
		asked, seconds := g.api.Requests(), int(time.Since(began)/time.Second)
		asked = slices.DeleteFunc(asked, func(request string) bool { return !strings.HasPrefix(request, "GET /api/v1/pods") })
		if len(asked) > seconds+1 {
			t.Errorf("%d questions in %d seconds: %q", len(asked), seconds, asked)
		}
	})
}
