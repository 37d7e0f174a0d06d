// Command devcluster runs a real Kubernetes control plane on loopback, without a container engine: etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler, with kwok standing in for the kubelets. It is the
// cluster of Kubecast's demo, tests and benchmarks, and can be made to fail on purpose (see the fault command).
//
// One running devcluster owns one directory: kubeconfig, keys, logs, etcd's data and the socket over which the other
// commands talk to it. Nothing outlives it: its processes die with it, even when it is killed, and the next one
// throws the data away. It runs only on Linux, because that promise needs Linux's parent death signal.
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
)

const usage = `devcluster runs a real Kubernetes control plane on loopback, with simulated nodes.

  devcluster up --dir DIR [--nodes 10] [--jobs 0.5]   start one, and run it until SIGTERM or SIGINT
  devcluster fault --dir DIR FAULT                    hurt the one that runs in DIR
  devcluster kubectl --dir DIR ARGUMENTS...           kubectl, as cluster-admin of the one that runs in DIR

"devcluster COMMAND --help" says more.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command given\n\n%s", usage)
	}
	switch command, args := args[0], args[1:]; command {
	case "up":
		return upCommand(ctx, args, stdout, stderr)
	case "fault":
		return faultCommand(ctx, args, stdout, stderr)
	case "kubectl":
		return kubectlCommand(args)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return nil
	default:
		return fmt.Errorf("unknown command %q\n\n%s", command, usage)
	}
}

// parse reads a command's flags. It prints nothing about faults, which are in the error that it returns.
func parse(flags *flag.FlagSet, args []string, stderr io.Writer, help string) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(stderr, "%s\nflags:\n", help)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return err
	}
	if err != nil {
		return fmt.Errorf("%s: %w (see devcluster %s --help)", flags.Name(), err, flags.Name())
	}
	return nil
}
