// Command memory measures what it costs to cache a cluster's pods: in Kubecast's cache with its default indexes, and
// in the same run, on the same pods, in client-go's plain dynamic informer. Each cache is measured in its own
// process. With -rings it measures full rings of events.
//
// It starts a control plane (make build controlplane) and fills it with pods that run on simulated nodes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kubecast/kubecast/e2e/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "memory:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, progress io.Writer) error {
	if len(args) > 0 && args[0] == childCommand {
		return child(ctx, args[1:], stdout)
	}
	if len(args) > 1 && args[0] == ringsCommand {
		return rings(args[1:], stdout)
	}
	flags := flag.NewFlagSet("memory", flag.ContinueOnError)
	pods := flags.Int("pods", 20000, "how many pods")
	quick := flags.Bool("quick", false, "a tenth of the pods")
	devcluster := flags.String("devcluster", "bin/devcluster", "the devcluster `program`")
	onlyRings := flags.Bool("rings", false, "measure full rings instead, without a control plane")
	profile := flags.String("profile", "", "`file` for a heap profile of Kubecast's cache")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		*pods /= 10
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if *onlyRings {
		return measureRings(ctx, self, stdout)
	}
	r, err := measure(ctx, options{pods: *pods, devcluster: *devcluster, self: self, profile: *profile, progress: progress})
	if err != nil {
		return err
	}
	return r.print(stdout)
}

// options say what to measure.
type options struct {
	pods       int
	devcluster string // the program
	self       string // this program, which is run again for each cache
	profile    string // file; empty: none
	progress   io.Writer
}

// measure fills a new cluster, and measures both caches on it.
func measure(ctx context.Context, opts options) (report, error) {
	dir, err := os.MkdirTemp("", "kubecast-memory-")
	if err != nil {
		return report{}, err
	}
	defer os.RemoveAll(dir)
	nodes := 1 + opts.pods/podsPerNode
	fmt.Fprintf(opts.progress, "starting a control plane with %d simulated nodes …\n", nodes)
	cluster, err := controlplane.Start(ctx, controlplane.Options{Program: opts.devcluster, Dir: dir, Nodes: nodes})
	if err != nil {
		return report{}, err
	}
	defer cluster.Stop()
	config, err := cluster.RESTConfig()
	if err != nil {
		return report{}, err
	}
	began := time.Now()
	if err := fill(ctx, config, opts.pods, nodes, opts.progress); err != nil {
		return report{}, err
	}
	fmt.Fprintf(opts.progress, "%d pods run after %s\n", opts.pods, time.Since(began).Round(time.Second))

	r := report{pods: opts.pods}
	for _, cache := range []struct {
		name string
		into *figures
	}{{dynamicInformer, &r.informer}, {kubecastCache, &r.kubecast}} {
		fmt.Fprintf(opts.progress, "measuring %s …\n", cache.name)
		args := []string{childCommand, "--kubeconfig", cluster.Kubeconfig(), "--cache", cache.name}
		if cache.name == kubecastCache && opts.profile != "" {
			args = append(args, "--profile", opts.profile)
		}
		if *cache.into, err = runChild[figures](ctx, opts.self, args); err != nil {
			return r, fmt.Errorf("%s: %w", cache.name, err)
		}
		if cache.into.Objects != opts.pods {
			return r, fmt.Errorf("%s cached %d pods, not %d", cache.name, cache.into.Objects, opts.pods)
		}
	}
	return r, nil
}
