package app

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
)

func TestAnEstimateBeyondTheMemoryIsToldOnce(t *testing.T) {
	var log bytes.Buffer
	estimate, limit := int64(100), int64(math.MaxInt64)
	m := &memory{estimate: func() int64 { return estimate }, limit: func() int64 { return limit }, log: slog.New(slog.NewTextHandler(&log, nil))}
	expect := func(when, want string) {
		t.Helper()
		m.compare()
		if got := log.String(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q", when, got)
		}
		log.Reset()
	}
	estimate = math.MaxInt64 - 1
	expect("without a limit", "")
	estimate, limit = 100, 100
	expect("as much as there is", "")
	estimate = 101
	expect("more than there is", `level=WARN msg="memory may not suffice once the rings are full: raise the limit, or lower ring.bytes, ring.events or kinds.atMost" estimate=101 limit=100`)
	expect("still", "")
	limit = 200
	expect("a higher limit", "memory suffices again")
	expect("still", "")
}
