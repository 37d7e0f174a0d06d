//go:build linux

// Command permissions measures what happens when permissions change all the time. Two hundred users have a thousand
// streams; each user may see a few of many namespaces. RoleBindings come and go while pods change. It runs on a real
// control plane. The baseline is the same without changes of bindings, in the same minutes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/process"
)

func main() { process.Main("permissions", nil, process.Interruptible(run)) }

// bench is one run of the benchmark.
type bench struct {
	out        io.Writer
	binary     string // the gateway's
	users      int
	streams    int // of each user
	namespaces int
	pods       int
	changes    float64 // of bindings, per second
	patches    float64 // of pods, per second
	rounds     int
	duration   time.Duration // of one measurement
	mode       string        // of the authorizer
	profile    string        // a file, or ""

	dir     string
	key     string // file of the key that signs tokens
	cluster *cluster
	gateway *gateway.Gateway
	people  []*user
	clients []*client
	ledger  *ledger
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &bench{out: out}
	flags := flag.NewFlagSet("permissions", flag.ContinueOnError)
	flags.StringVar(&b.binary, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	devcluster := flags.String("devcluster", "bin/devcluster", "devcluster's `binary`")
	flags.IntVar(&b.users, "users", 200, "how many users there are")
	flags.IntVar(&b.streams, "streams", 5, "how many streams each user has; one of them has two watches")
	flags.IntVar(&b.namespaces, "namespaces", 50, "how many namespaces there are, at most 64")
	flags.IntVar(&b.pods, "pods", 2000, "how many pods there are")
	flags.Float64Var(&b.changes, "changes", 50, "bindings made or deleted per second")
	flags.Float64Var(&b.patches, "patches", 20, "pods changed per second")
	flags.IntVar(&b.rounds, "rounds", 3, "how often is measured with and without changes of bindings, in turn")
	flags.DurationVar(&b.duration, "duration", 20*time.Second, "how long each measurement takes")
	flags.StringVar(&b.mode, "mode", "rbac", "the authorizer's `mode`: rbac or sar")
	flags.StringVar(&b.profile, "profile", "", "`file` for the gateway's processor profile while bindings change")
	quick := flags.Bool("quick", false, "small and short, to see whether it works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		b.users, b.streams, b.namespaces, b.pods, b.changes, b.rounds, b.duration = 20, 2, 10, 100, 20, 1, 2*time.Second
	}
	if b.namespaces < 4 || b.namespaces > 64 {
		return fmt.Errorf("-namespaces: %d given; allowed: 4 to 64", b.namespaces)
	}
	if b.dir, err = os.MkdirTemp("", "kubecast-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.binary, err = gateway.Build(b.binary, b.dir); err != nil {
		return err
	}
	b.key = filepath.Join(b.dir, "key.pem")
	began := time.Now()
	if b.cluster, err = startCluster(ctx, *devcluster, filepath.Join(b.dir, "cluster")); err != nil {
		return err
	}
	defer b.cluster.Stop()
	b.ledger = newLedger(b.pods)
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if err := b.signIn(); err != nil {
		return err
	}
	if b.gateway, err = b.startGateway(); err != nil {
		return err
	}
	defer b.gateway.Stop()
	if err := b.open(ctx); err != nil {
		return err
	}
	defer b.close()
	if err := b.measure(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "\npermissions: %s in all\n", time.Since(began).Round(time.Second))
	return nil
}

func (b *bench) startGateway() (*gateway.Gateway, error) {
	return gateway.Start(gateway.Options{
		Binary: b.binary, Dir: b.dir, Kubeconfig: b.cluster.Kubeconfig(),
		Config: fmt.Sprintf(`auth:
  jwt:
  - {issuer: %q, audiences: [%s], publicKeyFile: %s.pub}
authorizer: {mode: %s}
cache: {preload: [pods, configmaps]}
requests: {perUser: 0, perSecond: 0}
stream: {perUser: 0, perAddress: 0, watchesPerUser: 0}
`, issuer, audience, b.key, b.mode),
	})
}
