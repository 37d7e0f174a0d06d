package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// All pages of a list are of one version, however much changes between them.
func TestPagesAreOfOneVersion(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	token := s.viewer(t)
	s.namespaces(t, "pages", "pages-b")
	finish := s.startChurn(t, &churn{namespaces: []string{"pages", "pages-b"}, test: "pages", random: seed(t)})
	for _, scope := range []scope{
		{kind: podsKind, labelSelector: "test=pages"},
		{kind: podsKind, namespace: "pages"},
		{kind: podsKind, namespace: "pages-b", labelSelector: "app=a"},
	} {
		eventually(t, "there are pods enough", func() error {
			if n := len(g.list(t, token, scope.path()).Items); n < 6 {
				return fmt.Errorf("%d pods", n)
			}
			return nil
		})
		eventually(t, "there are pages enough", func() error { // pods may be gone by then
			if n := s.walkPages(t, g, token, scope); n < 3 {
				return fmt.Errorf("%s: only %d pages", scope.path(), n)
			}
			return nil
		})
	}
	finish()
}

// walkPages reads a list in pages, and returns how many there were.
func (s *stage) walkPages(t *testing.T, g *gateway, token string, scope scope) (pages int) {
	t.Helper()
	path := scope.path() + "&limit=2"
	if !strings.Contains(path, "?") {
		path = scope.path() + "?limit=2"
	}
	page := g.list(t, token, path)
	version, items, pages := page.Metadata.ResourceVersion, page.Items, 1
	for page.Metadata.Continue != "" {
		if len(page.Items) != 2 {
			t.Fatalf("%s: page %d has %d items", path, pages, len(page.Items))
		}
		s.waitChanged(t, g, token, scope, version)
		page = g.list(t, token, path+"&continue="+page.Metadata.Continue)
		if page.Metadata.ResourceVersion != version {
			t.Fatalf("%s: page %d has version %s, not %s", path, pages, page.Metadata.ResourceVersion, version)
		}
		items = append(items, page.Items...)
		pages++
	}
	exact := strings.Replace(path, "limit=2", "resourceVersionMatch=Exact&resourceVersion="+version, 1)
	want := parseList(t, s.kubectl(t, "", "get", "--raw", exact))
	if err := difference(items, want.Items); err != nil {
		t.Errorf("%s, %d pages: %v", path, pages, err)
	}
	return pages
}

// waitChanged waits until a newer list has another version.
func (s *stage) waitChanged(t *testing.T, g *gateway, token string, scope scope, version string) {
	t.Helper()
	began := time.Now()
	eventually(t, "the list changes", func() error {
		// The selected objects may not change for a while, but the list's version does.
		if now := g.list(t, token, scope.path()).Metadata.ResourceVersion; now == version {
			return fmt.Errorf("it is still of version %s after %s", version, time.Since(began))
		}
		return nil
	})
}
