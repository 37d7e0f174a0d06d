//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/kubecast/kubecast/bench/internal/process"
)

// The test binary also serves as the benchmark's children.
func TestMain(m *testing.M) { process.TestMain(m, main) }

// Each workload runs in a small size, and the gateway delivers each change once.
func TestWorkloadsRunAndNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	var out strings.Builder
	err := run([]string{"-quick"}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
}
