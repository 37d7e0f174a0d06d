//go:build linux

// Command fanout measures what it costs the gateway to send events to many clients, beside two baselines in the same
// minutes: a floor (raw sockets, one shared buffer) and a server made of github.com/r3labs/sse/v2. Absolute figures
// depend on the machine; ratios within a run say something about the gateway.
//
// The load, each server, and the API server behind the gateway are processes of their own, on loopback.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
)

func main() { process.Main("fanout", children, run) }

var workloads = measure.Workloads[*bench]{
	{Name: "20x1000", Run: func(b *bench) error { return b.rate(b.sizes.steady, 1.3) }},
	{Name: "500x200", Run: func(b *bench) error { return b.rate(b.sizes.busy, 1) }},
	{Name: "burst", Run: func(b *bench) error { return b.rate(b.sizes.burst, 0) }},
	{Name: "idle", Run: (*bench).idle},
	{Name: "slow", Run: (*bench).slow},
	{Name: "stalled", Run: (*bench).stalled},
	{Name: "storm", Run: (*bench).storm},
	{Name: "logs", Run: (*bench).logs},
	{Name: "tls", Run: (*bench).secured},
}

// bench is one run of the benchmark.
type bench struct {
	measure.Bench
	measure.Promises
	gateway string   // the binary
	modes   []string // servers, in the order of the tables
	rounds  int
	sizes   sizes
	profile string // directory; "": no profiles
	dir     string // of this run, removed with it
	out     io.Writer
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fanout", flag.ContinueOnError)
	b := &bench{out: out}
	flags.StringVar(&b.gateway, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	modes := flags.String("modes", "floor,r3labs,gateway", "the `servers`; gateway:BINARY is another gateway beside it")
	flags.IntVar(&b.rounds, "rounds", 3, "how often each server is measured in turn; figures are medians")
	only := flags.String("only", "", "run these `workloads` only, separated by commas: "+workloads.Names())
	quick := flags.Bool("quick", false, "small and short, to see whether it works")
	flags.StringVar(&b.profile, "profile", "", "`directory` for the gateway's profiles, taken in a round of their own")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b.modes = strings.Split(*modes, ",")
	b.sizes = full
	if *quick {
		b.sizes, b.rounds = small, 1
	}
	chosen, err := workloads.Only(*only)
	if err != nil {
		return err
	}
	if b.profile != "" {
		if err := os.MkdirAll(b.profile, 0o755); err != nil {
			return err
		}
	}
	if b.dir, err = os.MkdirTemp("", "kubecast-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.gateway, err = gateway.Build(b.gateway, b.dir); err != nil {
		return err
	}
	if b.Load, err = process.StartChild("load"); err != nil {
		return err
	}
	defer b.Load.Kill()
	began := time.Now()
	if err := chosen.Run(b); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nfan-out: %s in all\n", time.Since(began).Round(time.Second))
	return b.Kept()
}
