package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/e2e/controlplane"
	"github.com/kubecast/kubecast/e2e/harness"
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

// A stage is made by the first test that needs it, and ends after the last test.
var (
	calmStage  = sync.OnceValues(func() (*stage, error) { return newStage("calm", 4) })
	faultStage = sync.OnceValues(func() (*stage, error) { return newStage("fault", 2) })

	// The stage of tests of what is alpha in Kubernetes.
	alphaStage = sync.OnceValues(func() (*stage, error) { return newStage("alpha", 1, "ShardedListAndWatch=true") })

	faultTurn sync.Mutex // held by the test that uses the fault stage
)

// Four tests run at once: beside as many control planes, a fifth one would have all of them wait for two processors.
func TestMain(m *testing.M) { os.Exit(harness.Run(m, "e2e", 4)) }

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

func newStage(name string, nodes int, gates ...string) (*stage, error) {
	s := &stage{dir: filepath.Join(harness.Dir(), name), key: filepath.Join(harness.Dir(), "key.pem"), tokens: &tokens{signed: map[string]string{}}}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.Go(func() (err error) {
		s.gateway, err = harness.Gateway()
		return err
	})
	group.Go(func() (err error) {
		s.cluster, err = controlplane.Start(context.Background(), controlplane.Options{
			Program: "../bin/devcluster", Dir: filepath.Join(s.dir, "cluster"), Nodes: nodes, Gates: strings.Join(gates, ","),
		})
		if err == nil {
			harness.AtEnd(s.cluster.Stop)
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
