//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/kubecast/kubecast/bench/internal/process"
)

// The test binary also serves as the benchmark's children.
func TestMain(m *testing.M) { process.TestMain(m, main) }

// Each viewer of a queue is told each change of it, and the tables are printed. The run is small.
func TestViewersOfAQueueAreToldEachChange(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	var out strings.Builder
	err := run([]string{"-quick", "-only", "viewers"}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
}
