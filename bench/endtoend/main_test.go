//go:build linux

package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/e2e/controlplane"
)

// The test binary also serves as the benchmark's children.
func TestMain(m *testing.M) { process.TestMain(m, main) }

// Each workload runs in a small size on the real control plane, and the gateway delivers each change once.
func TestWorkloadsRunAndNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	var out strings.Builder
	err := run(t.Context(), []string{"-quick", "-devcluster", "../../bin/devcluster"}, &out)
	t.Log(out.String())
	if errors.Is(err, controlplane.ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
