//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/kubecast/kubecast/bench/internal/process"
)

// The test binary also serves as the benchmark's children.
func TestMain(m *testing.M) { process.TestMain(m, main) }

// Each part runs in a small size, and no transition is lost or told twice.
func TestPartsRunAndNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	var out strings.Builder
	err := run(t.Context(), []string{"-quick", "-databases", "sqlite"}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
}
