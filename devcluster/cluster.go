package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// stages say how kwok plays the kubelets.
//
//go:embed stages
var stages embed.FS

// clientConfig is the configuration of devcluster's own client of the API server at port.
func (c *credentials) clientConfig(port int) *rest.Config {
	return &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", port),
		BearerToken:     c.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.caPEM},
		QPS:             -1,
		Timeout:         20 * time.Second,
	}
}

// cluster is a running control plane.
type cluster struct {
	dir      directory
	gates    string // of the API server, as its flag --feature-gates
	progress io.Writer
	programs map[string]string
	forker   forker
	client   kubernetes.Interface
	kubelet  *kubelet

	etcdPort, peerPort, apiPort int

	// fail ends the whole devcluster. It is called when a component has died by itself.
	fail context.CancelCauseFunc

	mu        sync.Mutex // held for as long as a fault takes
	processes map[string]*process
}

// newCluster prepares the directory and reserves the ports. It starts nothing; stop undoes it.
func newCluster(dir directory, gates string, progress io.Writer, fail context.CancelCauseFunc) (c *cluster, stop func(), err error) {
	c = &cluster{dir: dir, gates: gates, progress: progress, fail: fail, forker: newForker(), processes: map[string]*process{}}
	c.programs, err = findBinaries(controlPlane...)
	if err != nil {
		return nil, nil, err
	}
	var releases []func()
	stop = func() {
		c.stop()
		for _, release := range releases {
			release()
		}
	}
	for _, port := range []*int{&c.etcdPort, &c.peerPort, &c.apiPort} {
		reserved, release, err := reservePort()
		if err != nil {
			stop()
			return nil, nil, err
		}
		releases = append(releases, release)
		*port = reserved
	}
	if err := c.writeFiles(); err != nil {
		stop()
		return nil, nil, err
	}
	c.kubelet, err = startKubelet(dir, c.client)
	if err != nil {
		stop()
		return nil, nil, err
	}
	releases = append(releases, c.kubelet.stop)
	return c, stop, nil
}

// writeFiles writes the files that the components read, and the kubeconfig.
func (c *cluster) writeFiles() error {
	credentials, err := writeCredentials(c.dir)
	if err != nil {
		return err
	}
	c.client, err = kubernetes.NewForConfig(credentials.clientConfig(c.apiPort))
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	kwok := []string{kwokConfig}
	err = fs.WalkDir(stages, "stages", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		stage, err := stages.ReadFile(path)
		kwok = append(kwok, string(stage))
		return err
	})
	if err != nil {
		return fmt.Errorf("reading kwok's stages: %w", err)
	}
	for path, content := range map[string][]byte{
		c.dir.path("config", "scheduler.yaml"): schedulerConfig(c.dir),
		c.dir.path("config", "kwok.yaml"):      []byte(strings.Join(kwok, "\n---\n")),
		c.dir.kubeconfig():                     credentials.kubeconfig(c.apiPort),
	} {
		if err := writeFile(path, content); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}

// start runs components, in the order given.
func (c *cluster) start(names ...string) error {
	for _, name := range names {
		var args []string
		switch name {
		case "etcd":
			args = etcdArgs(c.dir, c.etcdPort, c.peerPort)
		case "kube-apiserver":
			args = apiServerArgs(c.dir, c.etcdPort, c.apiPort, c.gates)
		case "kube-controller-manager":
			args = controllerManagerArgs(c.dir)
		case "kube-scheduler":
			args = schedulerArgs(c.dir)
		case "kwok":
			args = kwokArgs(c.dir)
		}
		p, err := startProcess(c.forker, name, c.programs[name], c.dir.log(name), args, func(p *process) { c.fail(p.failure()) })
		if err != nil {
			return err
		}
		c.processes[name] = p
	}
	return nil
}

func (c *cluster) running(name string) bool {
	p := c.processes[name]
	return p != nil && p.running()
}

func (c *cluster) kill(names ...string) {
	for _, name := range names {
		if p := c.processes[name]; p != nil {
			p.kill()
		}
	}
}

// clients are the components that talk to the API server.
var clients = []string{"kube-controller-manager", "kube-scheduler", "kwok"}

// bringUp starts everything, and returns when a job has run.
func (c *cluster) bringUp(ctx context.Context, nodes int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("the control plane was not ready within two minutes; see the logs in %s", c.dir.logs()))
	defer cancel()
	started := time.Now()
	step := func(what string) {
		fmt.Fprintf(c.progress, "%5.1f s  %s\n", time.Since(started).Seconds(), what)
	}
	if err := c.start("etcd"); err != nil {
		return err
	}
	if err := c.waitForEtcd(ctx); err != nil {
		return err
	}
	step("etcd serves")
	if err := c.start("kube-apiserver"); err != nil {
		return err
	}
	if err := c.waitForAPIServer(ctx); err != nil {
		return err
	}
	step("kube-apiserver is ready")
	if err := c.start(clients...); err != nil {
		return err
	}
	if err := c.seed(ctx, nodes); err != nil {
		return err
	}
	step("namespaces, roles and nodes are made")
	if err := c.waitForNodes(ctx, nodes); err != nil {
		return err
	}
	step("nodes are Ready")
	if err := c.tryJob(ctx); err != nil {
		return err
	}
	step("a job has run")
	return c.snapshotEtcd()
}

// stop kills all processes. They get no time to finish, since their data is thrown away anyway.
func (c *cluster) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kill(clients...)
	c.kill(slices.Sorted(maps.Keys(c.processes))...)
}
