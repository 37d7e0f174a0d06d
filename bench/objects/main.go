//go:build linux

// Command objects measures a gateway with ten thousand, a hundred thousand and a million pods, which change five thousand
// times a second: how long it takes to read them, what they take in memory, how late changes, pages and answers are
// beside it, and while the API server has forgotten its history, so that everything is listed anew.
//
// The gateway, the API server and the clients are processes of their own, on loopback, and share the machine's
// processors.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/pods"
	"github.com/kubecast/kubecast/bench/internal/process"
)

func main() { process.Main("objects", children, run) }

const (
	templates  = 512
	namespaces = 1000
	// history is how many changes the API server remembers: so many that nobody who is 20 s late begins anew.
	history = 100_000
)

// cluster is an API server of many pods.
type cluster struct{ *apiserver.Server }

// Start makes so many pods, and listens.
func (c *cluster) Start(count int, address *string) error {
	*c = cluster{apiserver.New(apiserver.Kind{
		Version: "v1", Resource: "pods", Kind: "Pod", Objects: count, Render: pods.Many(templates, namespaces), Lazy: true, History: history,
	})}
	return c.Server.Start(false, address)
}

var children = process.Roles{
	"apiserver": func() (any, error) { return &cluster{}, nil },
	"load":      load.Receiver,
}

// bench is one run of the benchmark.
type bench struct {
	measure.Bench
	measure.Promises
	binary  string
	dir     string
	profile string
	sizes   []int
	rate    float64
	during  time.Duration // of each measurement
	out     io.Writer
}

func run(args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("objects", flag.ContinueOnError)
	b := &bench{out: out, during: 20 * time.Second}
	flags.StringVar(&b.binary, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	flags.StringVar(&b.profile, "profile", "", "`directory` for the gateway's profiles, taken while it is measured, which costs something")
	flags.Float64Var(&b.rate, "rate", 5000, "changes per second")
	sizes := flags.String("objects", "10000,100000,1000000", "how many pods, separated by commas")
	quick := flags.Bool("quick", false, "small and short, to see whether it works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		*sizes, b.rate, b.during = "1000,3000", 200, 2*time.Second
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 {
			return fmt.Errorf("-objects: %q given; allowed: numbers of at least 1, separated by commas", text)
		}
		b.sizes = append(b.sizes, size)
	}
	if b.dir, err = os.MkdirTemp("", "kubecast-bench-"); err != nil {
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
	reading := figures.Table{
		Title:  "pods that are read when the gateway starts",
		Header: []any{"pods", "MB of JSON", "ready s", "CPU s", "MB/s of CPU", "MiB", "peak", "KiB/pod", "× JSON"},
	}
	changing := figures.Table{
		Title: fmt.Sprintf("%g changes/s of them, told to one stream and %d live pages; and the same while all is listed anew", b.rate, questions),
		Header: []any{"pods", "", "CPU µs/change", "p50 ms", "p99 ms", "longest", "pages' p99 ms", "one object's p99 ms", "longest", "a list of 50's p99 ms", "longest",
			"back at a position ms", "missed", "resets", "MiB", "peak"},
	}
	for _, size := range b.sizes {
		if err := b.measure(size, &reading, &changing); err != nil {
			return fmt.Errorf("%d pods: %w", size, err)
		}
	}
	reading.Print(out)
	changing.Print(out)
	return b.Kept()
}
