package http

import (
	"strings"
	"testing"
	"time"
)

// TestWhatADefinitionChangesIsNotTakenForTheSame: its objects have other defaults then, at the same versions.
func TestWhatADefinitionChangesIsNotTakenForTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("widgets", "a/1", "spec.size=small")
		const one, all = "/apis/example.org/v1/namespaces/a/widgets/1", "/apis/example.org/v1/widgets"
		before := map[string]answer{one: g.get(one), all: g.get(all)}
		pass(time.Second)
		g.api.Amend("widgets", "a/1", "spec.size=small", "spec.color=red")
		g.api.Compact()
		g.api.CutWatches("widgets")
		pass(2 * time.Minute)
		for path, had := range before {
			now := g.get(path, "If-None-Match: "+had.header.Get("ETag"))
			if now.code != 200 || !strings.Contains(now.body, "red") {
				t.Errorf("%s: %d %s", path, now.code, now.body)
			}
			if again := g.get(path, "If-None-Match: "+now.header.Get("ETag")); again.code != 304 {
				t.Errorf("%s: %d, unchanged", path, again.code)
			}
		}
	})
}
