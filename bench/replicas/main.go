//go:build linux

// Command replicas measures what clients notice of replicas that come and go: real gateways behind a real proxy, of which two are
// restarted one after the other, become many and few again, are killed, stopped for a while, and have their files changed. It
// fails if a client lost an event, was told one twice, or was reset.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kubecast/kubecast/bench/internal/apiserver"
	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

func main() { process.Main("replicas", children, run) }

var children = process.Roles{
	"apiserver": func() (any, error) {
		kind := apiserver.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Objects: 20, Render: object}
		return apiserver.New(kind), nil
	},
	"clients": func() (any, error) { return &Clients{}, nil },
}

func object(number int, version uint64, m mark.Mark) []byte {
	return fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings-%05d","namespace":"team-a",`+
		`"uid":"6f1a3c52-0000-4000-8000-%012d","resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z",`+
		`"annotations":{"kubecast.io/bench":"%s"}},"data":{}}`, number, number, version, m.Append(nil))
}

// bench is one run behind one proxy.
type bench struct {
	out     io.Writer
	clients int
	most    int // replicas
	rate    float64
	drain   time.Duration
	level   time.Duration // how long it may take until the replicas are level; 0: that is not waited for
	stopped time.Duration
	binary  string

	dir    string
	fleet  *fleet
	source *process.Child
	load   *process.Child
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("replicas", flag.ContinueOnError)
	b := bench{out: out}
	flags.StringVar(&b.binary, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	flags.IntVar(&b.clients, "clients", 5000, "how many streams")
	flags.IntVar(&b.most, "replicas", 8, "how many replicas two become")
	flags.Float64Var(&b.rate, "rate", 2, "changes per second, each of which goes to each client")
	flags.DurationVar(&b.drain, "drain", 20*time.Second, "the configuration's drain")
	flags.DurationVar(&b.level, "level", 6*time.Minute, "how long it is waited for that replicas are within a tenth of the mean; 0: it is not")
	only := flags.String("proxy", "nginx,haproxy", "the `proxies`")
	quick := flags.Bool("quick", false, "small and short, to see whether it works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b.stopped = 30 * time.Second
	if *quick {
		b.clients, b.most, b.rate, b.drain, b.level, b.stopped = 300, 4, 20, 2*time.Second, 0, 2*time.Second
	}
	dir, err := os.MkdirTemp("", "kubecast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if b.binary, err = gateway.Build(b.binary, dir); err != nil {
		return err
	}
	names := strings.Split(*only, ",")
	for _, proxy := range names {
		if proxies[proxy] == nil {
			return fmt.Errorf("there is no proxy %q", proxy)
		}
	}
	if *quick {
		return b.together(dir, names)
	}
	var failed error
	for _, proxy := range names {
		failed = errors.Join(failed, b.runBehind(dir, proxy, out))
	}
	return failed
}

// together runs everything behind all proxies at the same time: most of it is waiting, and nobody looks at the figures.
func (b *bench) together(dir string, names []string) error {
	var running sync.WaitGroup
	texts, failed := make([]bytes.Buffer, len(names)), make([]error, len(names))
	for i, proxy := range names {
		running.Go(func() { failed[i] = b.runBehind(dir, proxy, &texts[i]) })
	}
	running.Wait()
	for i := range texts {
		_, _ = texts[i].WriteTo(b.out)
	}
	return errors.Join(failed...)
}

// runBehind runs everything behind one proxy, in a directory of its own.
func (b *bench) runBehind(dir, proxy string, out io.Writer) error {
	one := *b
	one.out, one.dir = out, filepath.Join(dir, "behind-"+proxy)
	err := os.Mkdir(one.dir, 0o755)
	if err == nil {
		err = one.behind(proxy)
	}
	if err != nil {
		return fmt.Errorf("behind %s: %w", proxy, err)
	}
	return nil
}

// behind runs everything behind one proxy.
func (b *bench) behind(proxy string) (err error) {
	if b.source, err = process.StartChild("apiserver"); err != nil {
		return err
	}
	defer b.source.Kill()
	var address string
	if err := b.source.Call("Start", nil, &address); err != nil {
		return err
	}
	if b.fleet, err = newFleet(b.binary, b.dir, "http://"+address, b.most, b.drain); err != nil {
		return err
	}
	defer b.fleet.kill()
	if err := b.fleet.configure("info"); err != nil {
		return err
	}
	if err := b.startReplicas(0, 2); err != nil {
		return err
	}
	front, err := freeAddress()
	if err != nil {
		return err
	}
	p, err := startProxy(proxy, b.dir, front, b.fleet.all)
	if err != nil {
		return err
	}
	defer p.Kill()
	if b.load, err = process.StartChild("clients"); err != nil {
		return err
	}
	defer b.load.Kill()
	go func() { _ = b.source.Call("Emit", source.Emit{Rate: b.rate}, nil) }() // until Stop
	fmt.Fprintf(b.out, "\n%d clients behind %s, %g changes a second\n%-34s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", b.clients, proxy, b.rate,
		"", "took", "away", "p50", "p99", "longest", "late p50", "p99", "p99.9", "longest")
	if err := b.load.Call("Open", Open{Address: front, Path: "/api/v1/configmaps", Clients: b.clients, PerSecond: 500}, nil); err != nil {
		return err
	}
	if err := b.all(time.Minute); err != nil {
		return fmt.Errorf("the clients do not come: %w", err)
	}
	for _, phase := range b.phases() {
		if err := b.measure(phase); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	return b.conclude()
}

// phase is one thing that happens to the replicas.
type phase struct {
	name string
	do   func() error
}

func (b *bench) phases() []phase {
	f := b.fleet
	return []phase{
		{fmt.Sprintf("nothing for %s", b.stopped), func() error {
			time.Sleep(b.stopped)
			return nil
		}},
		{"rolling restart", func() error {
			for i := range 2 {
				if err := f.signal(i, syscall.SIGTERM); err != nil {
					return err
				}
				if err := f.start(i); err != nil {
					return err
				}
			}
			return nil
		}},
		{fmt.Sprintf("2 → %d", b.most), func() error {
			if err := b.startReplicas(2, b.most); err != nil {
				return err
			}
			if b.level == 0 { // the others get streams all the same
				return errors.Join(f.signal(0, syscall.SIGTERM), f.start(0))
			}
			return b.awaitLevel()
		}},
		{fmt.Sprintf("%d → 2", b.most), func() error {
			ends := make(chan error)
			for i := 2; i < b.most; i++ {
				go func() { ends <- f.signal(i, syscall.SIGTERM) }()
			}
			var err error
			for i := 2; i < b.most; i++ {
				err = errors.Join(err, <-ends)
			}
			return err
		}},
		{"kill -9 of one", func() error {
			return errors.Join(f.signal(0, syscall.SIGKILL), f.start(0))
		}},
		{fmt.Sprintf("SIGSTOP of one for %s, SIGCONT", b.stopped), func() error {
			err := f.signal(1, syscall.SIGSTOP)
			time.Sleep(b.stopped)
			return errors.Join(err, f.signal(1, syscall.SIGCONT))
		}},
		{"each file is rotated", b.rotate},
	}
}

// rotate rotates all files of the replicas, and waits until each that runs uses the new ones. Then the log's level is
// changed, too.
func (b *bench) rotate() error {
	since := map[*replica]int64{}
	for _, r := range b.fleet.all {
		if !r.runs() {
			continue
		}
		logged, err := r.logged()
		if err != nil {
			return err
		}
		since[r] = logged
	}
	if err := b.fleet.rotate(); err != nil {
		return err
	}
	for i, r := range b.fleet.all {
		if _, runs := since[r]; !runs {
			continue
		}
		if err := eventually(func() error { return b.fleet.applied(r, since[r]) }); err != nil {
			return fmt.Errorf("replica %d does not use the rotated files: %w", i, err)
		}
	}
	return b.fleet.configure("warn")
}

// eventually tries until there is no error, for a minute at most.
func eventually(try func() error) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if err := try(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func (b *bench) startReplicas(from, to int) error {
	for i := from; i < to; i++ {
		if err := b.fleet.start(i); err != nil {
			return err
		}
	}
	return nil
}

// measure runs a phase, and prints for how long clients were away in it.
func (b *bench) measure(p phase) error {
	var away []time.Duration
	var late figures.Histogram
	if err := errors.Join(b.load.Call("Away", nil, &away), b.load.Call("Late", nil, &late)); err != nil {
		return err
	}
	began := time.Now()
	if err := p.do(); err != nil {
		return err
	}
	took := time.Since(began)
	if err := b.all(time.Minute); err != nil {
		return err
	}
	var next uint64
	if err := b.source.Call("Next", nil, &next); err != nil {
		return err
	}
	// What a client has not been told yet would not count as late.
	if err := b.until(time.Minute, func(c Counts) bool { return c.Least >= next-1 }); err != nil {
		return err
	}
	away, late = nil, figures.Histogram{} // what is decoded is added to what there is
	if err := errors.Join(b.load.Call("Away", nil, &away), b.load.Call("Late", nil, &late)); err != nil {
		return err
	}
	at := func(part float64) string {
		if len(away) == 0 {
			return "-"
		}
		return away[int(part*float64(len(away)-1))].Round(10 * time.Millisecond).String()
	}
	ms := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
	fmt.Fprintf(b.out, "%-34s %8s %8d %8s %8s %8s %8s %8s %8s %8s\n", p.name, took.Round(100*time.Millisecond), len(away), at(0.5), at(0.99), at(1),
		ms(late.Quantile(0.5)), ms(late.Quantile(0.99)), ms(late.Quantile(0.999)), ms(late.Max))
	return nil
}

// all waits until all clients have a stream.
func (b *bench) all(within time.Duration) error {
	return b.until(within, func(c Counts) bool { return c.Live == b.clients })
}

func (b *bench) until(within time.Duration, is func(Counts) bool) error {
	for deadline := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		var c Counts
		if err := b.load.Call("Counts", nil, &c); err != nil {
			return err
		}
		if is(c) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %+v", within, c)
		}
	}
}

// awaitLevel waits until no replica is farther than a tenth from the mean.
func (b *bench) awaitLevel() error {
	for began := time.Now(); b.level > 0; time.Sleep(time.Second) {
		counts, deviation, err := b.fleet.streams()
		if err != nil {
			return err
		}
		if deviation <= 0.1 {
			fmt.Fprintf(b.out, "level after %s: %d\n", time.Since(began).Round(time.Second), counts)
			return nil
		}
		if time.Since(began) > b.level {
			return fmt.Errorf("after %s one is %.0f %% from the mean: %d", b.level, 100*deviation, counts)
		}
	}
	return nil
}

// conclude makes sure that each client was told each change once.
func (b *bench) conclude() error {
	if err := b.source.Call("Stop", nil, nil); err != nil {
		return err
	}
	var next uint64
	if err := b.source.Call("Next", nil, &next); err != nil {
		return err
	}
	if err := b.until(time.Minute, func(c Counts) bool { return c.Least == next-1 }); err != nil {
		return fmt.Errorf("not all have the last change, %d: %w", next-1, err)
	}
	var c Counts
	if err := b.load.Call("Counts", nil, &c); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "%d changes: lost %d, repeated %d, reset %d; attempts that brought no stream: %d\n", next-1, c.Lost, c.Repeated, c.Reset, c.Failed)
	if c.Lost+c.Repeated+c.Reset > 0 {
		return errors.New("the gateway broke its promise")
	}
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
