//go:build linux

// Command rest measures what lists and gets cost at the gateway, and in the same minutes at the API server behind it:
// a real control plane with some thousand pods. Both are asked for what they can answer from memory
// (resourceVersion=0). That is the API server's cheapest answer; the gateway always answers so.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/process"
)

func main() { process.Main("rest", children, process.Interruptible(run)) }

var children = process.Roles{ceiling: func() (any, error) { return &Ceiling{}, nil }}

// bench is one run of the benchmark.
type bench struct {
	out      io.Writer
	binary   string // the gateway's
	pods     int
	more     int // pods with which the start is measured
	rounds   int
	duration time.Duration // of one measurement
	only     string        // part of the names of what is run; "" for all
	profile  string        // directory, or ""
	dir      string
	token    string
	config   string
	cluster  *cluster
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &bench{out: out}
	flags := flag.NewFlagSet("rest", flag.ContinueOnError)
	flags.StringVar(&b.binary, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	devcluster := flags.String("devcluster", "bin/devcluster", "devcluster's `binary`")
	flags.IntVar(&b.pods, "pods", 10_000, "how many pods the lists are of")
	flags.IntVar(&b.more, "start-pods", 20_000, "how many pods the start is measured with")
	flags.IntVar(&b.rounds, "rounds", 3, "how often each server is measured in turn; figures are medians")
	flags.DurationVar(&b.duration, "duration", 4*time.Second, "how long each measurement takes")
	flags.StringVar(&b.only, "only", "", "only the workloads, or the start, whose name contains this `text`")
	flags.StringVar(&b.profile, "profile", "", "`directory` for the gateway's profiles, one for each workload")
	quick := flags.Bool("quick", false, "small and short, to see whether it works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		b.pods, b.more, b.rounds, b.duration = 200, 300, 1, 300*time.Millisecond
	}
	if b.dir, err = os.MkdirTemp("", "kubecast-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.binary, err = gateway.Build(b.binary, b.dir); err != nil {
		return err
	}
	if err := b.signIn(); err != nil {
		return err
	}
	began := time.Now()
	if b.cluster, err = startCluster(ctx, *devcluster, filepath.Join(b.dir, "cluster")); err != nil {
		return err
	}
	defer b.cluster.Stop()
	if err := b.cluster.createPods(ctx, 0, b.pods); err != nil {
		return err
	}
	if err := b.requests(ctx); err != nil {
		return err
	}
	if strings.Contains("start", b.only) {
		if err := b.cluster.createPods(ctx, b.pods, b.more); err != nil {
			return err
		}
		if err := b.starts(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\nlists and objects: %s in all\n", time.Since(began).Round(time.Second))
	return nil
}

// signIn makes a token for a user who may read the cluster, and the configuration with which the gateway accepts it.
func (b *bench) signIn() error {
	key := filepath.Join(b.dir, "key.pem")
	cmd := exec.Command(b.binary, "token", "--key", key, "--user", "bench", "--group", "platform", "--ttl", "12h")
	cmd.Stderr = os.Stderr
	said, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("sign a token: %w", err)
	}
	b.token = strings.TrimSpace(string(said))
	b.config = fmt.Sprintf(`auth:
  jwt:
  - {issuer: "https://kubecast.local", audiences: [kubecast], publicKeyFile: %s.pub}
requests: {perUser: 0, perSecond: 0}
`, key)
	return nil
}

func (b *bench) startGateway() (*gateway.Gateway, error) {
	return gateway.Start(gateway.Options{Binary: b.binary, Dir: b.dir, Config: b.config, Kubeconfig: b.cluster.Kubeconfig()})
}
