//go:build linux

// Command thin measures what a cluster of 20,000 pods costs on thin lines, and what that costs the
// gateway: lists and streams in each form and coding, many clients that open at once, changes to
// many clients plain, compressed and as patches, idle streams, and live pages.
//
// The load, the gateway, and the API server behind it are processes of their own, on loopback. The
// pods are as varied as real ones (pods.go).
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
)

func main() { process.Main("thin", children, run) }

var workloads = measure.Workloads[*bench]{
	{Name: "open", Run: (*bench).open},
	{Name: "crowd", Run: (*bench).crowd},
	{Name: "changes", Run: func(b *bench) error { return b.told(b.sizes.changes, sorts, 1) }},
	{Name: "patches", Run: func(b *bench) error { return b.told(b.sizes.patches, patches, b.rounds) }},
	{Name: "idle", Run: (*bench).idle},
	{Name: "pages", Run: (*bench).pages},
}

// sizes are the sizes of the workloads.
type sizes struct {
	pods    int
	opens   int // how often each form is opened again
	crowd   int // clients
	changes rates
	patches rates
	rounds  int // of patches
	idle    int
	settle  time.Duration
	pages   rates
}

// rates is a workload of changes at a rate.
type rates struct {
	clients int
	rate    float64 // changes per second
	changes int
}

var (
	full  = sizes{20000, 3, 1000, rates{200, 100, 1000}, rates{50, 20, 120}, 3, 10000, 20 * time.Second, rates{1000, 100, 2000}}
	small = sizes{400, 1, 20, rates{20, 100, 50}, rates{10, 50, 20}, 1, 100, time.Second, rates{50, 100, 100}}
)

// bench is one run of the benchmark.
type bench struct {
	measure.Bench
	measure.Promises
	sizes
	gateway string // the binary
	profile string // directory; "": no profiles
	out     io.Writer
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("thin", flag.ContinueOnError)
	b := &bench{out: out, sizes: full}
	flags.StringVar(&b.gateway, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	only := flags.String("only", "", "run these `workloads` only, separated by commas: "+workloads.Names())
	quick := flags.Bool("quick", false, "small and short, to see whether it works")
	flags.StringVar(&b.profile, "profile", "", "`directory` for the gateway's profiles, taken while it is measured, which costs something")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		b.sizes = small
	}
	chosen, err := workloads.Only(*only)
	if err != nil {
		return err
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
	if err := chosen.Run(b); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nthin lines: %s in all\n", time.Since(began).Round(time.Second))
	return b.Kept()
}
