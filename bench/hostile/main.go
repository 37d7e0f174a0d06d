//go:build linux

// Command hostile measures what one hostile user can do to others. Two hundred good users have a stream each; the
// hostile user makes the gateway work by each means that its default limits allow. The good users' delays and the
// gateway's memory are measured without the attack and with it, in the same minute. Each means gets its own gateway.
//
// The gateway, the API server behind it, the good users and the hostile user are processes of their own, on loopback.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/internal/devtoken"
)

func main() {
	if role := process.Role(); role != "" {
		if err := children(role); err != nil {
			fmt.Fprintf(os.Stderr, "hostile %s: %v\n", role, err)
			os.Exit(1)
		}
		return
	}
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

// children runs the roles that this program has beside the parent's.
func children(role string) error {
	switch role {
	case "apiserver":
		return process.Serve(newAPIServer())
	case "attacker":
		return process.Serve(&Attacker{})
	case "load":
		client, err := load.New()
		if err != nil {
			return err
		}
		go func() { // lasts as long as the process
			if err := client.Run(); err != nil {
				fmt.Fprintln(os.Stderr, "load:", err)
				os.Exit(1)
			}
		}()
		return process.Serve(client)
	}
	return fmt.Errorf("there is no role %q", role)
}

const (
	users  = 200 // good ones
	hidden = "mallory"
	// The development tokens' issuer and audience.
	issuer   = "https://kubecast.local"
	audience = "kubecast"
)

// bench is one run of the benchmark.
type bench struct {
	gateway  string        // the binary
	duration time.Duration // of each measurement
	rate     float64       // of the good users' events, per second
	profile  string        // directory; "": no profiles
	out      io.Writer
	dir      string

	good  []load.User
	bad   string // the hostile user's token
	limit limits
}

// limits are the targets.
type limits struct {
	times  float64       // delays may grow by this factor …
	floor  time.Duration // … or up to this, which is within this machine's noise
	memory int64         // how much more memory the gateway may use
}

func run(args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	b := &bench{out: out, limit: limits{times: 2, floor: 10 * time.Millisecond, memory: 100 << 20}}
	flags.StringVar(&b.gateway, "gateway", "", "the gateway's `binary`; if none is named, it is built")
	flags.DurationVar(&b.duration, "duration", 8*time.Second, "how long is measured, without each attack and with it")
	flags.Float64Var(&b.rate, "rate", 400, "changes of the good users' objects per second, of all of them together")
	only := flags.String("only", "", "these `means` only, separated by commas: "+strings.Join(names(), ", "))
	quick := flags.Bool("quick", false, "short, to see whether it works")
	flags.StringVar(&b.profile, "profile", "", "`directory` for the gateway's profiles under each attack")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		b.duration = 2 * time.Second
	}
	chosen := names()
	if *only != "" {
		chosen = strings.Split(*only, ",")
	}
	for _, name := range chosen {
		if findMeans(name) < 0 {
			return fmt.Errorf("there is no means %q", name)
		}
	}
	if b.dir, err = os.MkdirTemp("", "kubecast-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.gateway, err = gateway.Build(b.gateway, b.dir); err != nil {
		return err
	}
	if err := b.signIn(); err != nil {
		return err
	}
	began := time.Now()
	var results []result
	for _, m := range allMeans {
		if !slices.Contains(chosen, m.name) {
			continue
		}
		r, err := b.measure(m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		results = append(results, r)
	}
	err = b.report(results)
	fmt.Fprintf(out, "\nhostile: %s in all\n", time.Since(began).Round(time.Second))
	return err
}

func (b *bench) key() string { return filepath.Join(b.dir, "key.pem") }

// signIn makes all users' tokens, and the key with which the gateway accepts them.
func (b *bench) signIn() (err error) {
	sign := func(user string) (token string, err error) {
		return devtoken.Sign(devtoken.Token{
			KeyFile: b.key(), User: user, Issuer: issuer, Audience: audience, TTL: 12 * time.Hour,
		})
	}
	for number := range users {
		name := namespaceOf(number)
		token, err := sign(name)
		if err != nil {
			return err
		}
		b.good = append(b.good, load.User{
			Path: "/api/v1/namespaces/" + name + "/configmaps?watch=true&sendInitialEvents=false", Token: token,
		})
	}
	b.bad, err = sign(hidden)
	return err
}

func (b *bench) config() string {
	return fmt.Sprintf(`auth:
  jwt:
  - {issuer: %q, audiences: [%s], publicKeyFile: %s.pub}
authorizer: {mode: sar}
cache: {preload: [configmaps, pods]}
trustedProxies: [] # everybody comes from an address of their own, the hostile one from another than the good ones
`, issuer, audience, b.key())
}

func names() (names []string) {
	for _, m := range allMeans {
		names = append(names, m.name)
	}
	return names
}

// report prints the table. Only lost events are an error.
func (b *bench) report(results []result) error {
	t := figures.Table{
		Title: fmt.Sprintf("One hostile user beside %d good ones, who are told of %v events/s: what the good ones notice, and the gateway's peak memory, without → with",
			users, b.rate),
		Header: []any{"means", "event p50 ms", "p99 ms", "list p99 ms", "MiB", "CPU %", "API requests/s", "hostile: answered", "refused", "cut", "target"},
	}
	var missed uint64
	unreached := 0
	for _, r := range results {
		verdict := "reached"
		if why := b.judge(r); len(why) > 0 {
			unreached++
			verdict = "NOT reached: " + strings.Join(why, ", ")
		}
		missed += r.with.missed
		pair := func(read func(phase) float64) string {
			return fmt.Sprintf("%.1f → %.1f", read(r.without), read(r.with))
		}
		t.Add(r.means.name,
			pair(func(p phase) float64 { return figures.Milliseconds(p.events.Quantile(0.5)) }),
			pair(func(p phase) float64 { return figures.Milliseconds(p.events.Quantile(0.99)) }),
			pair(func(p phase) float64 { return figures.Milliseconds(p.lists.Quantile(0.99)) }),
			fmt.Sprintf("%d → %d", r.without.memory>>20, r.with.memory>>20),
			fmt.Sprintf("%.0f → %.0f", r.without.cpu, r.with.cpu),
			fmt.Sprintf("%.0f → %.0f", r.without.asked, r.with.asked),
			r.hostile.Answered, r.hostile.Refused, r.hostile.Failed, verdict)
	}
	t.Note("target: good users' p99, of events and of lists of their own, at most %v × as without, or %s; memory at most + %d MiB: %d of %d means reach it",
		b.limit.times, b.limit.floor, b.limit.memory>>20, len(results)-unreached, len(results))
	for _, r := range results {
		t.Note("%s: %s", r.means.name, r.means.what)
	}
	t.Print(b.out)
	if missed > 0 {
		return fmt.Errorf("the gateway broke its promise: good users missed %d events", missed)
	}
	return nil
}

// judge says which targets are missed.
func (b *bench) judge(r result) (why []string) {
	late := func(what string, without, with figures.Histogram) {
		if with.Quantile(0.99) > max(time.Duration(b.limit.times*float64(without.Quantile(0.99))), b.limit.floor) {
			why = append(why, what)
		}
	}
	late("events", r.without.events, r.with.events)
	late("lists", r.without.lists, r.with.lists)
	if r.with.memory > r.without.memory+b.limit.memory {
		why = append(why, "memory")
	}
	return why
}
