package main

import (
	"os"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/licenses"
)

// What is inside has its license in what `gateway licenses` prints: a dependency that is added, updated or removed changes that, too.
func TestNoticesAreThoseOfWhatIsInside(t *testing.T) {
	t.Chdir("../..")
	if _, err := os.Stat("web/node_modules"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the portal's packages are not installed: run \"npm --prefix web ci\"")
		}
		t.Skip(err)
	}
	want, err := notices()
	if err != nil {
		t.Fatal(err)
	}
	if licenses.Notices != want {
		t.Error("internal/licenses/notices.txt is another: run `make docs`")
	}
	for _, part := range []string{"k8s.io/client-go v", "preact ", "Apache License", "Go\n"} {
		if !strings.Contains(want, part) {
			t.Errorf("%q is missing", part)
		}
	}
}
