package http

import (
	"fmt"
	"strings"
	"testing"
)

// A turn of a stream ends after a slice of time, whatever there is to tell to how many watches; and in the end all is told.
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
