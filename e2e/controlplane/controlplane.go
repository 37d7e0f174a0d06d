// Package controlplane runs a devcluster for tests and benchmarks: a real Kubernetes control plane on loopback, as a
// process of its own.
package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubecast/kubecast/e2e/process"
)

// ErrMissing means that the control plane's programs were not built.
var ErrMissing = errors.New("the development control plane is not built: run \"make build controlplane\"")

// ProgramVariable names the environment variable with the devcluster program's path.
const ProgramVariable = "KUBECAST_DEVCLUSTER_BIN"

// Options configure a control plane.
type Options struct {
	Program string // the devcluster program, unless ProgramVariable names it
	Dir     string // for its data; made if it does not exist
	Nodes   int    // how many simulated nodes
	Gates   string // feature gates of the API server, such as ShardedListAndWatch=true
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	opts    Options
	process *process.Process
}

// readyWithin is how long a start may take; on two idle cores it takes 5 s.
const readyWithin = 2 * time.Minute

// Start starts a control plane, and returns when it is ready. The error is ErrMissing if its programs were not built.
func Start(ctx context.Context, opts Options) (*ControlPlane, error) {
	if program := os.Getenv(ProgramVariable); program != "" {
		opts.Program = program
	}
	if err := check(opts.Program); err != nil {
		return nil, err
	}
	args := []string{"up", "--dir", opts.Dir, "--nodes", strconv.Itoa(opts.Nodes), "--jobs", "0"}
	if opts.Gates != "" {
		args = append(args, "--feature-gates", opts.Gates)
	}
	p, err := process.Start(process.Options{Path: opts.Program, Args: args})
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{opts: opts, process: p}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if _, err := p.Stdout.WaitFor(ctx, regexp.MustCompile(`(?m)^ready$`)); err != nil {
		c.Stop()
		return nil, fmt.Errorf("the development control plane did not start: %w\n%s", err, p.Stderr)
	}
	return c, nil
}

// check looks for the programs: devcluster, and beside it those of the control plane.
func check(program string) error {
	resolved, err := filepath.EvalSymlinks(program)
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrMissing, err)
	}
	for _, name := range []string{"kube-controller-manager", "kwok"} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(resolved), "controlplane", name)); err != nil {
			return fmt.Errorf("%w (%w)", ErrMissing, err)
		}
	}
	return nil
}

// Stop ends the control plane with all its processes.
func (c *ControlPlane) Stop() { c.process.Terminate(20 * time.Second) }

// Kubeconfig is the path of the cluster-admin's kubeconfig.
func (c *ControlPlane) Kubeconfig() string { return filepath.Join(c.opts.Dir, "kubeconfig") }

// KubeconfigTo writes a copy of that file which leads to another server, with the token as its credentials if one is given.
func (c *ControlPlane) KubeconfigTo(file, server string, caPEM []byte, token string) error {
	config, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = server, caPEM
	}
	for _, user := range config.AuthInfos {
		if token != "" {
			user.Token = token
		}
	}
	return clientcmd.WriteToFile(*config, file)
}

// RESTConfig is the cluster-admin's configuration for client-go, without a limit of requests.
func (c *ControlPlane) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Fault makes the control plane fail by one of the faults of devcluster.
func (c *ControlPlane) Fault(ctx context.Context, name string) error {
	_, err := c.run(ctx, nil, "fault", "--dir", c.opts.Dir, name)
	return err
}

// Kubectl runs kubectl as cluster-admin, and returns its output.
func (c *ControlPlane) Kubectl(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	return c.run(ctx, stdin, append(c.KubectlCommand()[1:], args...)...)
}

// KubectlCommand is the program and the first arguments that Kubectl runs.
func (c *ControlPlane) KubectlCommand() []string {
	return []string{c.opts.Program, "kubectl", "--dir", c.opts.Dir}
}

func (c *ControlPlane) run(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.opts.Program, args...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = stdin, &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("devcluster %q: %w: %s", args, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
