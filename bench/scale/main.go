//go:build linux

// Command scale measures a hundred thousand browsers on one machine: edges, whose API server is one core, whose API
// server is a fake one. It says what streams cost that are told nothing, little and much, with and without users who may
// see only their own namespace, and what clients notice when the core or an edge is killed, or the API server restarts.
//
// Each gateway, the API server, and the clients of each edge are processes of their own, on loopback, and share the
// machine's processors. Beside the edges stand servers of raw sockets (bench/internal/floor) with as many clients, which
// are the least that such a fan-out costs there.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kubecast/kubecast/bench/internal/floor"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
)

func main() { process.Main("scale", children, run) }

var children = process.Roles{
	"apiserver": func() (any, error) { return newAPIServer(), nil },
	"floor": func() (any, error) {
		return floor.New(func(version uint64, m mark.Mark) []byte { return object(int(m.Seq)%objects, version, m) }), nil
	},
	"load": load.Receiver,
}

var workloads = measure.Workloads[*bench]{
	{Name: "floor", Run: (*bench).floor},
	{Name: "everything", Run: func(b *bench) error { return b.edges(true) }},
	{Name: "narrowed", Run: func(b *bench) error { return b.edges(false) }},
}

// sizes are the sizes of a run.
type sizes struct {
	streams, edges int
	opening        time.Duration // streams open at random moments of this time
	settle         time.Duration // idle streams are measured for so long, after as long a rest; longer than two heartbeats
	slow, fast     int           // how many events each client gets, at one in ten seconds and one a second
	returning      time.Duration // clients of a killed edge come back at random moments of this time
	away           time.Duration // for which the API server does not answer
}

var (
	// A process may open 20,000 files where this was measured. With seven edges, the clients of one that is killed have room at
	// the others.
	full  = sizes{100_000, 7, 30 * time.Second, 40 * time.Second, 3, 20, 5 * time.Second, 3 * time.Second}
	small = sizes{300, 3, time.Second, time.Second, 1, 3, time.Second, time.Second}
)

// bench is one run of the benchmark.
type bench struct {
	measure.Promises
	sizes
	binary  string // the gateway's
	dir     string
	profile string // directory for profiles of the first edge; "": none
	out     io.Writer
}

func run(args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	b := &bench{out: out}
	flags.StringVar(&b.binary, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	only := flags.String("only", "", "run these `workloads` only, separated by commas: "+workloads.Names())
	streams := flags.Int("streams", full.streams, "how many streams all edges have together")
	edges := flags.Int("edges", full.edges, "how many edges there are, at least 2")
	flags.StringVar(&b.profile, "profile", "", "`directory` for profiles of the first edge, taken while it is measured, which costs something")
	quick := flags.Bool("quick", false, "small and short, to see whether it works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b.sizes = full
	b.streams, b.sizes.edges = *streams, *edges
	if *quick {
		b.sizes = small
	}
	if b.sizes.edges < 2 || b.streams < b.sizes.edges {
		return fmt.Errorf("%d streams at %d edges given; allowed: at least 2 edges, with a stream each", b.streams, b.sizes.edges)
	}
	chosen, err := workloads.Only(*only)
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "kubecast-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.binary, err = gateway.Build(b.binary, b.dir); err != nil {
		return err
	}
	began := time.Now()
	if err := chosen.Run(b); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nscale: %s in all\n", time.Since(began).Round(time.Second))
	return b.Kept()
}
