//go:build linux

// Command history measures the history of jobs with each database: how fast transitions are
// recorded and how soon after their commit, how soon starts and ends of pods are, how soon webhooks
// are told of them, what updates cost that change no state, what a restart costs, and how long
// pages take among many millions of transitions, also while old ones are removed.
//
// SQLite, and the servers, wait for their disk at each commit. The API server is one of the
// benchmark's own, on the same processors.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
)

func main() { process.Main("history", children(), process.Interruptible(run)) }

// children are clients, and the API server of each sort of sources.
func children() process.Roles {
	roles := process.Roles{"load": load.Receiver}
	for name, kinds := range sources {
		roles[name] = func() (any, error) { return apiserver.New(kinds...), nil }
	}
	return roles
}

// bench is one run of the benchmark.
type bench struct {
	measure.Bench
	out    io.Writer
	binary string // the gateway's
	before string // another one with which that is compared; "": none
	dir    string
	kept   string // a file
	rounds int
	sizes  sizes
	broken []string // promises
}

// sizes say how much is measured.
type sizes struct {
	burst     int           // transitions at once
	pods      int           // that start and end
	updates   int           // that change no state, at 10,000 a second
	lag       int           // transitions at 200 a second
	ends      int           // of jobs at 100 a second; at most as many as there are jobs
	finished  string        // the API server with finished jobs
	rows      int           // transitions among which pages are looked for
	questions int           // about them
	remove    int           // transitions that are removed meanwhile
	asking    time.Duration // at most, for each of them
	removing  time.Duration // at most, with questions meanwhile and in turn
}

var (
	full  = sizes{burst: 20_000, pods: somePods, updates: 100_000, lag: 3000, ends: someJobs, finished: "finished", rows: 10_000_000, questions: 2000, remove: 1_000_000, asking: 2 * time.Minute, removing: 2 * time.Minute}
	small = sizes{burst: 300, pods: fewPods, updates: 2000, lag: 60, ends: 60, finished: "few", rows: 20_000, questions: 20, remove: 1000, asking: 10 * time.Second, removing: 10 * time.Second}
)

// part is one of the tables.
type part struct {
	name string
	run  func(*bench, context.Context, []string) error
}

var parts = []part{{"rates", (*bench).rates}, {"pods", (*bench).pods}, {"told", (*bench).told}, {"updates", (*bench).updates}, {"restarts", (*bench).restarts}, {"pages", (*bench).pages}}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &bench{out: out, sizes: full}
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	flags := flag.NewFlagSet("history", flag.ContinueOnError)
	flags.StringVar(&b.binary, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	flags.StringVar(&b.before, "before", "", "the `binary` of an earlier gateway, whose transitions a second are measured in turn with this one")
	with := flags.String("databases", strings.Join(databases, ","), "the `databases`; one that is not installed is left out")
	only := flags.String("only", strings.Join(names, ","), "the `parts`")
	quick := flags.Bool("quick", false, "small and short, to see whether everything works")
	rows := flags.Int("rows", 0, "among how many `transitions` pages are looked for; 0 is 10,000,000")
	flags.IntVar(&b.rounds, "rounds", 3, "how often what is compared is measured in turn; figures are medians")
	flags.StringVar(&b.kept, "kept", "", "a SQLite `file` in a directory of its own, to be made with transitions for the pages, or made by a run before")
	flags.IntVar(&b.sizes.questions, "questions", full.questions, "how many `pages` are asked for")
	flags.DurationVar(&b.sizes.removing, "removing", full.removing, "how long transitions are removed, at most, while pages are asked for; a million of them take longer than this")
	scratch := flags.String("dir", "", "`directory` for the databases, which take about 1 KB for each of rows; a temporary one, if none is named")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		b.sizes, b.rounds = small, 1
	} else if *rows > 0 {
		b.sizes.rows, b.sizes.remove = *rows, min(*rows/10, b.sizes.remove)
	}
	if b.kept != "" {
		if b.kept, err = filepath.Abs(b.kept); err != nil {
			return err
		}
	}
	if *scratch, err = filepath.Abs(cmp.Or(*scratch, os.TempDir())); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(*scratch, "kubecast-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.binary, err = gateway.Build(b.binary, b.dir); err != nil {
		return err
	}
	if b.Load, err = process.StartChild("load"); err != nil {
		return err
	}
	defer b.Load.Kill()
	began := time.Now()
	chosen, wanted := strings.Split(*only, ","), strings.Split(*with, ",")
	for _, p := range parts {
		if !slices.Contains(chosen, p.name) {
			continue
		}
		if err := p.run(b, ctx, wanted); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	fmt.Fprintf(out, "\nhistory: %s in all\n", time.Since(began).Round(time.Second))
	if len(b.broken) > 0 {
		return fmt.Errorf("the gateway broke its promise: %s", strings.Join(b.broken, "; "))
	}
	return nil
}

// expect notes a figure that no machine excuses.
func (b *bench) expect(what string, is, want float64) {
	if is != want {
		b.broken = append(b.broken, fmt.Sprintf("%s: %g, not %g", what, is, want))
	}
}
