package http

import (
	"encoding/json"
	"testing"
)

func TestClustersTellTheirState(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		read := func() (states struct {
			Clusters []struct {
				Name    string
				Default bool
				State   string
				Kinds   []struct{ Group, Version, Resource, State string }
			}
		}) {
			t.Helper()
			a := g.get("/clusters")
			if err := json.Unmarshal([]byte(a.body), &states); err != nil || a.code != 200 || a.header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %v %s", a.code, a.header, a.body)
			}
			return states
		}
		g.watches("pods", 1)
		g.eventually("it is live", func() bool { return read().Clusters[0].State == "live" })
		c := read().Clusters[0]
		if c.Name != "default" || !c.Default || len(c.Kinds) != 1 || c.Kinds[0].Resource != "pods" || c.Kinds[0].State != "live" {
			t.Errorf("%+v", c)
		}
		g.api.Fail("pods", 500)
		g.api.CutWatches("pods")
		g.eventually("it is stale", func() bool { return read().Clusters[0].State == "stale" })
		if a := g.get("/clusters", "Authorization: "); a.code != 401 || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%d %s", a.code, a.body)
		}
	}, cached(streamOptions(), "pods"))
}
