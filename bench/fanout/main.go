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
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
)

func main() { process.Main("fanout", children, run) }

// workload is one table.
type workload struct {
	name string
	run  func(*bench) error
}

var workloads = []workload{
	{"20x1000", func(b *bench) error { return b.rate(b.sizes.steady, 1.3) }},
	{"500x200", func(b *bench) error { return b.rate(b.sizes.busy, 1) }},
	{"burst", func(b *bench) error { return b.rate(b.sizes.burst, 0) }},
	{"idle", (*bench).idle},
	{"slow", (*bench).slow},
	{"stalled", (*bench).stalled},
	{"storm", (*bench).storm},
	{"logs", (*bench).logs},
}

// bench is one run of the benchmark.
type bench struct {
	measure.Bench
	gateway string   // the binary
	modes   []string // servers, in the order of the tables
	rounds  int
	sizes   sizes
	profile string // directory; "": no profiles
	out     io.Writer
	lost    []string // faults in what the gateway delivered
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fanout", flag.ContinueOnError)
	b := &bench{out: out}
	flags.StringVar(&b.gateway, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	modes := flags.String("modes", "floor,r3labs,gateway", "the `servers`; gateway:BINARY is another gateway beside it")
	flags.IntVar(&b.rounds, "rounds", 3, "how often each server is measured in turn; figures are medians")
	only := flags.String("only", "", "run these `workloads` only, separated by commas: "+strings.Join(names(), ", "))
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
	chosen := names()
	if *only != "" {
		chosen = strings.Split(*only, ",")
	}
	for _, name := range chosen {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("there is no workload %q", name)
		}
	}
	dir, err := os.MkdirTemp("", "kubecast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if b.gateway, err = gateway.Build(b.gateway, dir); err != nil {
		return err
	}
	if b.Load, err = process.StartChild("load"); err != nil {
		return err
	}
	defer b.Load.Kill()
	began := time.Now()
	for _, w := range workloads {
		if slices.Contains(chosen, w.name) {
			if err := w.run(b); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	fmt.Fprintf(out, "\nfan-out: %s in all\n", time.Since(began).Round(time.Second))
	if len(b.lost) > 0 {
		return fmt.Errorf("the gateway broke its promise: %s", strings.Join(b.lost, "; "))
	}
	return nil
}

// expect notes a count that must be 0: no machine is so slow that an event may be lost or sent twice.
func (b *bench) expect(workload, what string, count uint64) {
	if count > 0 {
		b.lost = append(b.lost, fmt.Sprintf("%s: %d %s", workload, count, what))
	}
}

func names() (names []string) {
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return names
}
