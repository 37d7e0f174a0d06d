//go:build linux

// Command queues prints how sure the intervals are in which jobs are said to start, and measures what it costs that many look at a queue.
//
// Calibration replays simulated days, and a log that was recorded, if one is named. Viewers look at one queue of a fake Kueue: its objects,
// and a visibility API that answers their order at once. The load, the gateway, and the API server are processes of their own, on loopback.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/internal/forecast/days"
)

func main() { process.Main("queues", children, run) }

var workloads = measure.Workloads[*bench]{
	{Name: "calibration", Run: (*bench).calibration},
	{Name: "viewers", Run: (*bench).viewers},
}

// bench is one run of the benchmark.
type bench struct {
	measure.Bench
	measure.Promises
	out     io.Writer
	gateway string // the binary
	log     string // of recorded days; "": none
	room    float64
	profile string // directory; "": no profiles
	jobs    int    // that wait
	clients int
	rate    float64 // changes per second
	changes int     // of one measurement
	rounds  int
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("queues", flag.ContinueOnError)
	b := &bench{out: out}
	flags.StringVar(&b.gateway, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	only := flags.String("only", "", "run these `workloads` only, separated by commas: "+workloads.Names())
	flags.StringVar(&b.log, "log", "", "`file` of recorded days, in the Standard Workload Format")
	flags.Float64Var(&b.room, "room", 128, "how many processors the queue of -log has")
	flags.IntVar(&b.jobs, "jobs", 1000, "how many jobs wait")
	flags.IntVar(&b.clients, "viewers", 1000, "how many look at the queue")
	flags.Float64Var(&b.rate, "rate", 10, "changes of the queue per second")
	flags.IntVar(&b.changes, "changes", 200, "how many changes are measured at a time")
	flags.IntVar(&b.rounds, "rounds", 3, "how often each is measured, in turn")
	quick := flags.Bool("quick", false, "small and short, to see whether it works")
	flags.StringVar(&b.profile, "profile", "", "`directory` for the gateway's profiles, taken while it is measured, which costs something")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		b.jobs, b.clients, b.changes, b.rounds = 100, 20, 20, 1
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
	fmt.Fprintf(out, "\nqueues: %s in all\n", time.Since(began).Round(time.Second))
	return b.Kept()
}

var children = process.Roles{
	"apiserver": func() (any, error) { return &kueue{}, nil },
	"load":      load.Receiver,
}

// calibration prints how often starts come within their intervals.
func (b *bench) calibration() error {
	t := figures.Table{
		Title:  "starts of jobs, and the 80 % intervals in which they were said to come",
		Header: []any{"days", "starts", "% within", "sooner", "later", "waits min p50", "p90", "width min p50", "by waits alone: % within", "width min p50"},
	}
	add := func(name string, c *days.Tally) {
		t.Add(name, c.Said(), c.Percent(c.Within), c.Percent(c.Sooner), c.Percent(c.Later), c.Waits(0.5).Minutes(), c.Waits(0.9).Minutes(), c.Widths(0.5).Minutes(),
			c.Percent(c.Plainly), c.PlainWidths(0.5).Minutes())
	}
	for _, c := range days.Calibrations() {
		tally := c.Run()
		add(c.Name, tally)
		if tally.Wrong() != nil {
			b.Expect(c.Name, "kind of days on which intervals are wrong", 1)
		}
	}
	if b.log != "" {
		file, err := os.Open(b.log)
		if err != nil {
			return err
		}
		defer file.Close()
		jobs, err := days.Read(file)
		if err != nil {
			return err
		}
		var tally days.Tally
		days.Replay(jobs, days.Queue{Room: b.room}, 1, &tally)
		add("recorded", &tally)
	}
	t.Note("by waits alone: the interval in which 80 %% of the queue's last %d waits were", days.KeptWaits)
	t.Print(b.out)
	return nil
}
