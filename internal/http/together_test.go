package http

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// collected is a client that reads all the time, and keeps what it is told.
type collected struct {
	user string

	mu   sync.Mutex
	told []string
}

// take returns what was told since the last time.
func (c *collected) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.told
	c.told = nil
	return told
}

// Streams of several users are told together as long as they show the same. What becomes of the
// permissions of one of them takes effect for that user alone, and within a second.
func TestPermissionsOfOneChangeAmongStreamsThatAreToldTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "a/a1")
		g.api.Put("pods", "b/b1")
		var clients []*collected
		var reading sync.WaitGroup
		for _, user := range []string{"ann", "bob", "cat"} {
			g.access.permit(user, in("a", "b"))
			for range 2 {
				s, c := g.stream("/api/v1/pods", "Authorization: Bearer "+user, "Accept-Encoding: identity"), &collected{user: user}
				clients = append(clients, c)
				reading.Go(func() {
					for f, err := s.read(); err == nil; f, err = s.read() {
						if f.event != "" && f.event != "bookmark" {
							c.mu.Lock()
							c.told = append(c.told, f.String())
							c.mu.Unlock()
						}
					}
				})
			}
		}
		synctest.Wait()
		g.api.Put("pods", "a/a1", "spec.n:=1") // those who were the first of their kind join the others
		synctest.Wait()
		step := func(together int, what string, want map[string][]string) {
			t.Helper()
			synctest.Wait()
			for _, c := range clients {
				if told := c.take(); !slices.Equal(told, want[c.user]) {
					t.Errorf("%s: %s is told %q, not %q", what, c.user, told, want[c.user])
				}
			}
			if n := g.server.streams.Stats().Together; n != together {
				t.Errorf("%s: %d streams are told together, not %d", what, n, together)
			}
		}
		begin := strings.Split("narrowed, added a1, added b1, synced, modified a1", ", ")
		step(6, "all see the same", map[string][]string{"ann": begin, "bob": begin, "cat": begin})

		g.access.permit("ann", in("a"))
		pass(time.Second)
		g.api.Put("pods", "b/b1", "spec.n:=1")
		g.api.Put("pods", "b/b2")
		g.api.Put("pods", "a/a1", "spec.n:=2")
		rest := strings.Split("modified b1, added b2, modified a1", ", ")
		step(6, "ann sees less", map[string][]string{"ann": {"narrowed", "deleted b1", "modified a1"}, "bob": rest, "cat": rest})

		g.access.permit("cat", auth.Scope{})
		g.access.permit("bob", auth.Scope{All: true})
		g.access.permit("ann", auth.Scope{Namespaces: []string{"a"}, Names: map[string][]string{"b": {"b2"}}})
		pass(time.Second)
		g.api.Put("pods", "c/c1")
		g.api.Put("pods", "b/b1", "spec.n:=2")
		g.api.Put("pods", "b/b2", "spec.n:=2")
		step(4, "each sees something else", map[string][]string{
			"ann": {"widened", "added b2", "modified b2"}, "bob": {"widened", "added c1", "modified b1", "modified b2"}, "cat": {"goodbye revoked"},
		})

		g.access.permit("ann", auth.Scope{All: true})
		pass(time.Second)
		g.api.Put("pods", "c/c1", "spec.n:=3")
		step(4, "both see the same again", map[string][]string{"ann": {"widened", "added b1", "added c1", "modified c1"}, "bob": {"modified c1"}})
		g.stop()
		reading.Wait()
	})
}
