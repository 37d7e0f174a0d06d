package clients

import (
	"testing"
	"time"
)

// TestQuietStreamOutlivesIdleTimeouts keeps quiet streams for longer than any of the ingresses would keep a silent
// connection. The first event must come on the connection that was opened. The gateway's own time-outs are longer;
// TestQuietStreamsOverTLSLast is about them.
func TestQuietStreamOutlivesIdleTimeouts(t *testing.T) {
	t.Parallel()
	const quiet = 75 * time.Second // nginx and HAProxy would cut after 60 s and 50 s
	s := onStage(t)
	c := newCertificate(t, t.TempDir())
	g, n := s.newGateway(t), s.newNamespace(t, "quiet")
	g.start(t, "")
	routes := []route{g.direct()}
	routes = append(routes, startNginx(t, g, c, nginxOptions{}).routesThrough("nginx", c)...)
	routes = append(routes, startHAProxy(t, g, c, "").routesThrough("HAProxy", c)...)
	var all []*arrivals
	for _, r := range routes {
		all = append(all, r.follow(t, n.path()))
	}
	time.Sleep(quiet)
	if err := n.create(t.Context(), "first", ""); err != nil {
		t.Fatal(err)
	}
	awaitAll(t, all, "first")
}
