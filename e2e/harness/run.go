package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

var (
	dir    string
	undo   []func()
	undoMu sync.Mutex
)

// Run runs the tests of a package whose TestMain calls it, and returns their exit code. Parallel is
// how many run at once, unless -test.parallel says otherwise. It may be more than there are cores,
// since such tests mostly wait.
func Run(m *testing.M, name string, parallel int) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(parallel)) // cannot fail: it is a number
	}
	var err error
	if dir, err = os.MkdirTemp("", "kubecast-"+name+"-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	_ = os.Setenv("XDG_STATE_HOME", dir) // cannot fail; it is for gateways whose configuration names no state directory
	defer func() {
		for _, f := range undo {
			f()
		}
	}()
	return m.Run()
}

// Dir is a directory for all files of the tests. It is removed after the last test.
func Dir() string { return dir }

// AtEnd registers a function that is called after the last test. The function that was registered last is called first.
func AtEnd(f func()) {
	undoMu.Lock()
	defer undoMu.Unlock()
	undo = append([]func(){f}, undo...)
}

// RaceFlags build with the race detector in everything but SQLite and what carries it, which is C that was made Go:
// its own accesses are not this project's to judge, and tests of the history would take five times the processor.
// scripts/test.sh says the same of the tests themselves.
var RaceFlags = []string{"-race", "-gcflags=modernc.org/...=-race=false"}

// Gateway builds the gateway once, and returns the program's path. It has the race detector, since
// unfamiliar clients may do unfamiliar things to it. The working directory must be a directory in
// the repository's root.
var Gateway = sync.OnceValues(func() (string, error) {
	path := filepath.Join(dir, "gateway")
	build := exec.Command("go", slices.Concat([]string{"build"}, RaceFlags, []string{"-o", path, "./cmd/gateway"})...)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the gateway: %w\n%s", err, out)
	}
	return path, nil
})

// Missing skips a test that lacks something that it needs. If CI is set, it fails the test instead.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Eventually waits until a check succeeds, and fails the test if that takes too long.
func Eventually(t testing.TB, what string, within time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Advancing waits until a check succeeds, for as long as what is counted grows: a machine that is
// busy takes longer for much, and not to begin with the next of it. It fails the test once nothing
// was counted for a while, and at an end, however much is.
func Advancing(t testing.TB, what string, still, most time.Duration, count func() (int, error), check func() error) {
	t.Helper()
	began, counted := time.Now(), -1
	for moved := began; ; {
		err := check()
		if err == nil {
			return
		}
		n, uncounted := count()
		now := time.Now()
		if uncounted == nil && n > counted {
			counted, moved = n, now
		}
		if now.Sub(moved) > still || now.Sub(began) > most {
			t.Fatalf("%s: not within %s, and nothing more than %d for %s: %v", what, now.Sub(began), counted, now.Sub(moved), errors.Join(err, uncounted))
		}
		time.Sleep(20 * time.Millisecond)
	}
}
