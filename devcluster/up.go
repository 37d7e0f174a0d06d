package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"sync"
)

const upHelp = `devcluster up --dir DIR [--nodes 10] [--jobs 0.5] [--examples] [--feature-gates GATE=true]

starts a control plane on free ports of 127.0.0.1, with simulated nodes, writes DIR/kubeconfig (cluster-admin),
prints "ready" on a line of its own when a job would run, and goes on until SIGTERM or SIGINT. Nothing it started
outlives it, also when it is killed itself. The components' logs are in DIR/logs.

DIR is made if it is not there. One that a running devcluster uses is refused; one that an earlier devcluster left
is taken over, and its cluster's data thrown away: each "up" begins with an empty cluster.

With --jobs, training jobs of five teams are submitted, so many per second on average. The more jobs for as many
nodes, the shorter they are; from about five per second on ten nodes they queue all the same. With --examples, there are
among them, every four minutes, a job that runs out of memory, one that is preempted, one of many completions, and an elastic one.

Nodes and pods are simulated by kwok. A pod's annotations say what becomes of it; without them it runs at once,
and if it is a job's, succeeds half a second later; one whose command is "sleep N" takes three seconds to start, and runs for N:

  devcluster.kubecast.io/start-seconds   how long it is Pending, as if pulling its image
  devcluster.kubecast.io/run-seconds     how long it runs
  devcluster.kubecast.io/fail-percent    how probable it is that it fails then
  devcluster.kubecast.io/fail-reason     Error or OOMKilled
  devcluster.kubecast.io/log-lines-per-second   how much its containers write, usually 2; see "kubectl logs"

Groups for demos: "platform" may read the whole cluster, "team-vision" (and so on) the namespace of that name;
nobody but the cluster-admin may read Secrets.
`

func upCommand(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	dirFlag := flags.String("dir", "", "directory of this devcluster (required)")
	nodes := flags.Int("nodes", 10, "how many simulated nodes")
	jobs := flags.Float64("jobs", 0.5, "jobs submitted per second on average; 0: none")
	gates := flags.String("feature-gates", "", "of the API server, such as ShardedListAndWatch=true")
	examples := flags.Bool("examples", false, "submit jobs whose lives are worth a look, too")
	if err := parse(flags, args, stderr, upHelp); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("up: unexpected argument %q", flags.Arg(0))
	}
	if *nodes < 1 {
		return fmt.Errorf("up: --nodes %d: at least one is needed", *nodes)
	}
	if *jobs < 0 || math.IsNaN(*jobs) || *jobs > 1000 {
		return fmt.Errorf("up: --jobs %v: must be between 0 and 1000", *jobs)
	}
	dir, err := openDirectory("up", *dirFlag)
	if err != nil {
		return err
	}
	if err := up(ctx, dir, *gates, *nodes, *jobs, *examples, stdout, stderr); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	return nil
}

// up runs a cluster until ctx ends, and then returns nil, or until a component dies.
func up(parent context.Context, dir directory, gates string, nodes int, jobs float64, examples bool, stdout, stderr io.Writer) error {
	unlock, err := dir.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := dir.clear(); err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(parent)
	defer fail(nil)
	c, stop, err := newCluster(dir, gates, stderr, fail)
	if err != nil {
		return err
	}
	defer stop()
	err = c.bringUp(ctx, nodes)
	if parent.Err() != nil {
		return nil // asked to end before it was ready
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // the component that died is the reason; err is only the consequence
	}
	if err != nil {
		return err
	}
	control, err := listenControl(dir)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { fail(serveControl(ctx, control, c)) })
	if jobs > 0 {
		running.Go(func() { newSubmitter(c.client, jobs, nodes, examples, stderr).run(ctx) })
	}
	fmt.Fprintf(stdout, "kubeconfig: %s\nready\n", dir.kubeconfig())
	<-ctx.Done()
	if parent.Err() != nil {
		return nil
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}
