// Command devcontrollers runs Kueue's own controllers and scheduler on a development control plane,
// from its module, so that tests see what a real controller writes and when, and not what its types
// might say.
//
// It is a module of its own because Kueue needs many others that the gateway does not, and of older versions.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

const usage = `devcontrollers --kubeconfig FILE installs Kueue's kinds in a cluster, runs its controllers until SIGTERM, and prints
"ready" when they do. It serves Kueue's visibility API through the cluster. It manages Jobs with the label kueue.x-k8s.io/queue-name. Kueue's webhooks are not served: who submits
a Job suspends it, as they would.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "devcontrollers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("devcontrollers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	kubeconfig := flags.String("kubeconfig", "", "the `FILE` that says which cluster, as cluster-admin (required)")
	verbose := flags.Bool("verbose", false, "log what controllers do")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *kubeconfig == "" || flags.NArg() > 0 {
		return errors.New("--kubeconfig is required, and nothing else")
	}
	level := slog.LevelWarn
	if *verbose {
		level = slog.LevelInfo
	}
	logger := logr.FromSlogHandler(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // not throttled: tests wait for it
	if err := installKinds(ctx, config); err != nil {
		return fmt.Errorf("installing the kinds: %w", err)
	}
	return runKueue(ctx, config, logger, func() { fmt.Fprintln(stdout, "ready") })
}
