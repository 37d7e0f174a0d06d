//go:build linux

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/bench/internal/process"
)

// The test binary also serves as the program's children.
func TestMain(m *testing.M) { process.TestMain(m, main) }

// TestClientsBehindProxiesLoseNothing while replicas are restarted, become four and two again, are killed and stopped.
func TestClientsBehindProxiesLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	for proxy := range proxies {
		if _, err := binaryOf(proxy); err != nil && os.Getenv("CI") == "" {
			t.Skipf("%s is not installed", proxy)
		}
	}
	var out strings.Builder
	err := run([]string{"-quick"}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
}
