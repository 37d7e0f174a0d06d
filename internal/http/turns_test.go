package http

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
)

// TestWhoReadsCountsSlowlyHoldsNoTurn: nobody waits for a processor while somebody else's client takes an answer.
func TestWhoReadsCountsSlowlyHoldsNoTurn(t *testing.T) {
	const pods = 5000
	g := newGateway(t, before(func(api *apitest.API) {
		for i := range pods {
			api.Put("pods", fmt.Sprintf("team-a/pod-%05d", i), fmt.Sprintf("spec.pad=%d%s", i, strings.Repeat("x", 2<<10)))
		}
	}), cached(streamOptions(), "pods"), options(func(o *Options) { o.Stream.WriteTimeout = time.Minute }))
	g.eventually("pods are there", func() bool { // 503 while they are read
		return strings.Count(g.get("/api/v1/pods?fields=metadata.name").body, `"name":"pod-`) == pods
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range runtime.GOMAXPROCS(0) {
		response, err := g.client.Do(g.newRequest(ctx, http.MethodGet, "/api/v1/pods?countBy=spec.pad", []string{"Authorization: Bearer mallory"}))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close() // of some 10 MB nothing is read
	}
	waiting, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	release, err := g.server.processors.Take(waiting, "alice")
	if err != nil {
		t.Fatalf("while %d answers are not read, nobody else's turn comes: %v", runtime.GOMAXPROCS(0), err)
	}
	release()
}

// A turn of a stream ends after a slice of time, whatever there is to tell to how many watches; and
// in the end all is told.
func TestTurnsOfAStreamAreShort(t *testing.T) {
	g := newGateway(t, cached(streamOptions(), "pods"))
	terms := make([]string, 64)
	for i := range terms {
		terms[i] = fmt.Sprintf("zz.n%d!=x", i)
	}
	query := escape("?sendInitialEvents=false&deltas=merge-patch&fieldSelector=" + escape(strings.Join(terms, ",")))
	var watches []string
	for i := range 8 {
		watches = append(watches, fmt.Sprintf("w%d=/api/v1/pods%s", i, query))
	}
	s := g.stream("/stream?" + strings.Join(watches, "&"))
	g.eventually("it waits", func() bool { return g.readers("pods") == 8 })
	const changes = 40
	pad := "spec.pad=" + strings.Repeat("x", 20<<10)
	for n := range changes {
		g.api.Put("pods", "team-a/big", pad, fmt.Sprintf("spec.n:=%d", n))
	}
	told := map[string]int{}
	for range 8 * changes {
		f := s.next()
		watch, kind, _ := strings.Cut(f.event, ".")
		n := f.field("spec", "n")
		if kind == "patched" {
			n = f.field("patch", "spec", "n")
		}
		if n != fmt.Sprint(told[watch]) {
			t.Fatalf("%s is told change %s, not %d", watch, n, told[watch])
		}
		told[watch]++
	}
}
