package clients

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kubecast/kubecast/e2e/harness"
)

// chromiumDriver drives clients in a page of Chromium.
func chromiumDriver(t *testing.T, page string) *driver {
	t.Helper()
	chromium, node := program(t, "chromium"), nodeWithPackages(t)
	return startDriver(t, node, []string{"node/chromium.mjs"}, chromium, page)
}

// npmDriver drives the npm clients that are made for Node.
func npmDriver(t *testing.T) *driver {
	t.Helper()
	return startDriver(t, nodeWithPackages(t), []string{"node/npm.mjs"})
}

// goDriver drives clients in Go.
func goDriver(t *testing.T) *driver {
	t.Helper()
	program, err := goProgram()
	if err != nil {
		t.Fatal(err)
	}
	return startDriver(t, program, nil)
}

var goProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(harness.Dir(), "golang")
	return path, run("golang", "go", "build", "-o", path, ".")
})

func nodeWithPackages(t *testing.T) string {
	t.Helper()
	node := program(t, "node")
	if err := packages(); err != nil {
		t.Fatal(err)
	}
	return node
}

// packages installs the npm clients, unless they are installed as the lock file says.
var packages = sync.OnceValue(func() error {
	lock, err := os.Stat("package-lock.json")
	if err != nil {
		return err
	}
	if installed, err := os.Stat("node_modules/.package-lock.json"); err == nil && !installed.ModTime().Before(lock.ModTime()) {
		return nil
	}
	return run(".", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
})
