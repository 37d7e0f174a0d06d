//go:build linux

package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/e2e/controlplane"
)

// While bindings change, no stream ends, and all are told of the changes. In the end each has what its user may see.
// The run is small, on the real control plane.
func TestStreamsHoldWhileBindingsChange(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
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
	if !strings.Contains(out.String(), "told after seconds") {
		t.Error("nothing was told")
	}
}
