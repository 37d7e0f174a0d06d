//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// The test binary also serves as the benchmark's children.
func TestMain(m *testing.M) { process.TestMain(m, main) }

// Each workload runs in a small size, and the edges deliver each event once, whatever is killed.
func TestWorkloadsRunAndNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	var out strings.Builder
	err := run([]string{"-quick"}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
}

func TestObjectsAreOfOneSize(t *testing.T) {
	for _, version := range []uint64{1, 99999999} {
		if got := len(object(7, version, mark.Mark{Seq: version, At: 1754040000123456789})); got != objectSize {
			t.Errorf("version %d: %d bytes, want %d", version, got, objectSize)
		}
	}
}
