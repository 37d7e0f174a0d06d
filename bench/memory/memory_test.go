package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/e2e/controlplane"
)

// The cache stays within its targets of memory. There are fewer pods than in the benchmark, so fixed costs weigh
// more. Times are not checked. Nor does a full ring cost much more than it counts, which is what ring.bytes limits.
func TestCacheCostsLittleMoreThanItsJSON(t *testing.T) {
	// The children must run without the race detector, which this test may have.
	self := filepath.Join(t.TempDir(), "memory")
	if out, err := exec.Command("go", "build", "-o", self, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the benchmark: %v\n%s", err, out)
	}
	ring, err := runChild[ringFigures](context.Background(), self, []string{ringsCommand, "1"})
	if err != nil {
		t.Fatal(err)
	}
	if ring.Held < 60<<20 || float64(ring.Heap) > 1.2*float64(ring.Held) {
		t.Errorf("a ring that counts %d MiB takes %d", ring.Held>>20, ring.Heap>>20)
	}
	var progress strings.Builder
	r, err := measure(context.Background(), options{pods: 2000, devcluster: "../../bin/devcluster", self: self, progress: &progress})
	if errors.Is(err, controlplane.ErrMissing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	var table strings.Builder
	if err := r.print(&table); err != nil {
		t.Fatal(err)
	}
	t.Log(table.String())
	if r.ofJSON() > mostOfJSON {
		t.Errorf("a pod costs %.2f × its JSON", r.ofJSON())
	}
	if r.ofInformer() > mostOfInformer {
		t.Errorf("a pod costs %.2f of what the dynamicinformer needs", r.ofInformer())
	}
}
