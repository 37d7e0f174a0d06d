package e2e

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

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/e2e/controlplane"
)

// stage is a control plane with the programs under test.
type stage struct {
	dir     string
	gateway string // the program, built with the race detector
	key     string // file of the key that signs tokens
	cluster *controlplane.ControlPlane
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	tokens  *tokens
	plain   shared // gateways for tests that need no gateway of their own
	secure  shared
}

// TestMain ends all of these. A stage is made by the first test that needs it.
var (
	calmStage  = sync.OnceValues(func() (*stage, error) { return newStage("calm", 4) })
	faultStage = sync.OnceValues(func() (*stage, error) { return newStage("fault", 2) })

	work      string // a directory for all files
	undo      []func()
	undoMu    sync.Mutex
	faultTurn sync.Mutex // held by the test that uses the fault stage
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests mostly wait, so more of them can run at once than there are cores.
	parallel := true
	flag.Visit(func(f *flag.Flag) { parallel = parallel && f.Name != "test.parallel" })
	if parallel {
		_ = flag.Set("test.parallel", "5") // cannot fail: it is a number
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if work, err = os.MkdirTemp("", "kubecast-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(work)
	_ = os.Setenv("XDG_STATE_HOME", work) // cannot fail: of gateways that are told nothing else
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

// onStage returns the stage of all tests that do not make the control plane fail.
func onStage(t *testing.T) *stage {
	t.Helper()
	return ready(t, calmStage)
}

// onFaultStage returns the stage whose control plane a test may make fail. The test has it for itself.
func onFaultStage(t *testing.T) *stage {
	t.Helper()
	faultTurn.Lock()
	t.Cleanup(faultTurn.Unlock)
	return ready(t, faultStage)
}

func ready(t *testing.T, make func() (*stage, error)) *stage {
	t.Helper()
	s, err := make()
	switch {
	case err == nil:
		return s
	case errors.Is(err, controlplane.ErrMissing) && os.Getenv("CI") == "":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
	return nil
}

// program builds the gateway once.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(work, "gateway")
	build := exec.Command("go", "build", "-race", "-o", path, "./cmd/gateway")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the gateway: %w\n%s", err, out)
	}
	return path, nil
})

func newStage(name string, nodes int) (*stage, error) {
	s := &stage{dir: filepath.Join(work, name), key: filepath.Join(work, "key.pem"), tokens: &tokens{signed: map[string]string{}}}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.Go(func() (err error) {
		s.gateway, err = program()
		return err
	})
	group.Go(func() (err error) {
		s.cluster, err = controlplane.Start(context.Background(), controlplane.Options{
			Program: "../bin/devcluster", Dir: filepath.Join(s.dir, "cluster"), Nodes: nodes,
		})
		if err == nil {
			atEnd(s.cluster.Stop)
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	config, err := s.cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // of deprecated fields, which must be served, too
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	s.dynamic, err = dynamic.NewForConfig(config)
	return s, err
}
