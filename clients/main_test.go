package clients

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/e2e/controlplane"
)

var (
	work   string // a directory for all files
	undo   []func()
	undoMu sync.Mutex
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait most of the time, one of them for minutes. So more of them can run at once than there are cores.
	parallel := true
	flag.Visit(func(f *flag.Flag) { parallel = parallel && f.Name != "test.parallel" })
	if parallel {
		_ = flag.Set("test.parallel", "3") // cannot fail: it is a number
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if work, err = os.MkdirTemp("", "kubecast-clients-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(work)
	_ = os.Setenv("XDG_STATE_HOME", work) // cannot fail: the name is one
	defer func() {
		for _, f := range undo {
			f()
		}
	}()
	return m.Run()
}

// atEnd registers a function that is called after the last test.
func atEnd(f func()) {
	undoMu.Lock()
	defer undoMu.Unlock()
	undo = append([]func(){f}, undo...)
}

// stage is the control plane that all tests share; none of them makes it fail.
type stage struct {
	cluster *controlplane.ControlPlane
	config  *rest.Config
}

func onStage(t *testing.T) *stage {
	t.Helper()
	s, err := theStage()
	if errors.Is(err, controlplane.ErrMissing) {
		missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var theStage = sync.OnceValues(func() (*stage, error) {
	cluster, err := controlplane.Start(context.Background(), controlplane.Options{
		Program: "../bin/devcluster", Dir: filepath.Join(work, "cluster"), Nodes: 1,
	})
	if err != nil {
		return nil, err
	}
	atEnd(cluster.Stop)
	config, err := cluster.RESTConfig()
	return &stage{cluster, config}, err
})

// missing skips a test that lacks something that it needs. If CI is set, it fails the test instead.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// program finds a program that the test needs. Debian keeps servers in directories that only root has in its path.
func program(t *testing.T, name string) string {
	t.Helper()
	for _, candidate := range []string{name, filepath.Join("/usr/sbin", name)} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	missing(t, name+" is not installed")
	return ""
}

// run runs a command to its end.
func run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w\n%s", name, args, err, out)
	}
	return nil
}

// patience is how long a step may take that takes a second on an idle machine.
const patience = 60 * time.Second

// eventually waits until the check succeeds.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
