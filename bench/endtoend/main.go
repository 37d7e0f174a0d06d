//go:build linux

// Command endtoend measures the way from a patch to the clients on a real control plane: through the gateway, and in
// the same minutes through as many watches of the API server itself. The API server sends whole objects; the gateway
// leaves managedFields out.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
)

func main() { process.Main("endtoend", children, process.Interruptible(run)) }

var children = process.Roles{
	"patcher": func() (any, error) { return newPatcher(), nil },
	"load":    load.Receiver,
}

// size is one workload.
type size struct {
	rate    float64 // patches per second
	clients int
	patches int
}

func (s size) String() string { return fmt.Sprintf("%dx%g", s.clients, s.rate) }

// bench is one run of the benchmark.
type bench struct {
	measure.Bench
	out     io.Writer
	gateway string // the binary
	rounds  int
	sizes   []size
	pods    int
	podSize int

	dir     string
	cluster *cluster
	patcher *process.Child
	token   string
	config  string
	lost    []string
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("endtoend", flag.ContinueOnError)
	b := &bench{out: out, pods: 2000, sizes: []size{{20, 1, 300}, {20, 50, 300}, {20, 200, 300}, {100, 200, 1500}}}
	flags.StringVar(&b.gateway, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	devcluster := flags.String("devcluster", "bin/devcluster", "devcluster's `binary`")
	flags.IntVar(&b.rounds, "rounds", 3, "how often each server is measured in turn; figures are medians")
	only := flags.String("only", "", "only the `workload` with so many clients and patches per second, as in 50x20")
	quick := flags.Bool("quick", false, "small and short, to see whether it works")
	profile := flags.String("profile", "", "`directory` for the gateway's profiles, taken in rounds of their own")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		b.pods, b.rounds, b.sizes = 50, 1, []size{{20, 10, 20}, {100, 20, 100}}
	}
	if b.dir, err = os.MkdirTemp("", "kubecast-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.gateway, err = gateway.Build(b.gateway, b.dir); err != nil {
		return err
	}
	if b.token, b.config, err = token(b.gateway, b.dir, os.Stderr); err != nil {
		return err
	}
	began := time.Now()
	if b.cluster, err = startCluster(ctx, *devcluster, b.dir+"/cluster"); err != nil {
		return err
	}
	defer b.cluster.Stop()
	if b.podSize, err = b.cluster.createPods(ctx, b.pods); err != nil {
		return err
	}
	if b.Load, err = process.StartChild("load"); err != nil {
		return err
	}
	defer b.Load.Kill()
	if b.patcher, err = process.StartChild("patcher"); err != nil {
		return err
	}
	defer b.patcher.Kill()
	if err := b.patcher.Call("Start", Cluster{Kubeconfig: b.cluster.Kubeconfig(), Pods: b.pods}, nil); err != nil {
		return err
	}
	for _, s := range b.sizes {
		if *only != "" && *only != s.String() {
			continue
		}
		if err := b.workload(ctx, s, *profile); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\nend to end: %s in all\n", time.Since(began).Round(time.Second))
	if len(b.lost) > 0 {
		return fmt.Errorf("the gateway broke its promise: %s", b.lost)
	}
	return nil
}
