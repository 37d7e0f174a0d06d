package http

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// discarding is a connection that takes everything.
type discarding struct {
	header http.Header
	bytes  int
}

func (n *discarding) Header() http.Header               { return n.header }
func (n *discarding) WriteHeader(int)                   {}
func (n *discarding) Write(p []byte) (int, error)       { n.bytes += len(p); return len(p), nil }
func (n *discarding) WriteString(s string) (int, error) { n.bytes += len(s); return len(s), nil }
func (n *discarding) SetWriteDeadline(time.Time) error  { return nil }

// BenchmarkRequests is what a request costs beside net/http and the connection: routing, sign-in (of a fake
// authenticator), permission, and the answer itself, of 10,000 pods of 3 KB.
func BenchmarkRequests(b *testing.B) {
	g := newGateway(b, cached(streamOptions(), "pods"))
	pad := "spec.pad=" + strings.Repeat("x", 3000)
	const pods = 10_000
	for i := range pods {
		g.api.Put("pods", fmt.Sprintf("team-%d/pod-%05d", i%10, i), fmt.Sprintf("metadata.labels.group=g-%d", i%100), fmt.Sprintf("spec.priority:=%d", i*7919%pods), pad)
	}
	g.eventually("all are cached", func() bool { return strings.Count(g.get("/api/v1/pods?fields=kind").body, `"kind":"Pod"`) == pods })
	handler := g.server.Handler()
	for name, path := range map[string]string{
		"get":            "/api/v1/namespaces/team-3/pods/pod-00003?resourceVersion=0",
		"list/all":       "/api/v1/pods",
		"list/label":     "/api/v1/pods?labelSelector=group%3Dg-17",
		"list/search":    "/api/v1/pods?search=pod-0001",
		"list/sorted":    "/api/v1/pods?sort=-spec.priority&limit=100",
		"list/fields":    "/api/v1/namespaces/team-3/pods?fields=metadata.labels",
		"list/namespace": "/api/v1/namespaces/team-3/pods",
		"count":          "/api/v1/pods?countBy=metadata.labels.group",
	} {
		b.Run(name, func(b *testing.B) {
			r, err := http.NewRequest(http.MethodGet, path, nil)
			if err != nil {
				b.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer alice")
			r.RemoteAddr = "127.0.0.1:1"
			b.ReportAllocs()
			for b.Loop() {
				w := &discarding{header: http.Header{}}
				handler.ServeHTTP(w, r)
				if w.bytes < 100 {
					b.Fatal("no answer")
				}
			}
		})
	}
}
