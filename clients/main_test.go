package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/e2e/controlplane"
	"github.com/kubecast/kubecast/e2e/harness"
)

// One of the tests waits for more than a minute.
func TestMain(m *testing.M) { os.Exit(harness.Run(m, "clients", 3)) }

// stage is the control plane that all tests share; none of them makes it fail.
type stage struct {
	cluster *controlplane.ControlPlane
	config  *rest.Config
}

func onStage(t *testing.T) *stage {
	t.Helper()
	s, err := theStage()
	if errors.Is(err, controlplane.ErrMissing) {
		harness.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var theStage = sync.OnceValues(func() (*stage, error) {
	cluster, err := controlplane.Start(context.Background(), controlplane.Options{
		Program: "../bin/devcluster", Dir: filepath.Join(harness.Dir(), "cluster"), Nodes: 1,
	})
	if err != nil {
		return nil, err
	}
	harness.AtEnd(cluster.Stop)
	config, err := cluster.RESTConfig()
	return &stage{cluster, config}, err
})

// program finds a program that the test needs. Debian keeps servers in directories that only root has in its path.
func program(t *testing.T, name string) string {
	t.Helper()
	for _, candidate := range []string{name, filepath.Join("/usr/sbin", name)} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	harness.Missing(t, name+" is not installed")
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
	harness.Eventually(t, what, patience, check)
}
