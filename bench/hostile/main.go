//go:build linux

// Command hostile measures what one hostile user can do to others. Two hundred good users have a stream each; the
// hostile user makes the gateway work by each means that its default limits allow. The good users' delays and the
// gateway's memory are measured without the attack and with it, on one gateway within seconds; and once more while the
// hostile user's traffic goes to a bare HTTP server beside the gateway (Sink), which shows what it costs merely because
// everything shares one machine. That is repeated in rounds, on a new gateway each time; figures are medians.
//
// The gateway, the API server behind it, the good users and the hostile user are processes of their own, on loopback.
// In truth they are machines of their own: so the API server and the good users, which measure, run before the gateway
// does, and the hostile user only when nobody else wants to.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/internal/devtoken"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
)

func main() { process.Main("hostile", children, run) }

var children = process.Roles{
	"apiserver": func() (any, error) {
		process.RunFirst() // the parent says if it is not permitted
		return newAPIServer(), nil
	},
	"attacker": func() (any, error) { return &Attacker{}, nil },
	"sink":     func() (any, error) { return &Sink{}, nil },
	"load": func() (any, error) {
		process.RunFirst()
		client, err := load.Start()
		return &Good{Client: client}, err
	},
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
	rounds   int
	retries  int    // of a round in which others took processors
	profile  string // directory; "": no profiles
	trace    bool   // execution traces, in place of profiles
	out      io.Writer
	dir      string

	good  []load.User
	bad   string // the hostile user's token
	limit limits

	history  string         // where the gateway keeps it
	database *dbtest.Server // its server; nil: it has none
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
	flags.DurationVar(&b.duration, "duration", 4*time.Second, "how long is measured: without each attack, with it, and its control")
	flags.IntVar(&b.rounds, "rounds", 3, "how often each means is measured, in turn with the others; figures are medians")
	flags.IntVar(&b.retries, "retries", 2, "how often a round is measured again if other programs took processors meanwhile")
	flags.Float64Var(&b.rate, "rate", 400, "changes of the good users' objects per second, of all of them together")
	only := flags.String("only", "", "these `means` only, separated by commas: "+strings.Join(names(), ", "))
	flags.StringVar(&b.history, "history", "none", "where the gateway keeps its history: "+strings.Join(histories, ", ")+"; without one, the means that need it are left out, with one, good users' lists are in turn of objects and of their jobs' history")
	quick := flags.Bool("quick", false, "short, to see whether it works")
	flags.StringVar(&b.profile, "profile", "", "`directory` for the gateway's profiles under each attack")
	flags.BoolVar(&b.trace, "trace", false, "execution traces in place of profiles")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		process.LeavePriorities()
		b.retries = 0
		b.duration, b.rounds = 2*time.Second, 1
	}
	chosen, err := b.choose(*only)
	if err != nil {
		return err
	}
	if err := b.openHistory(); err != nil {
		return err
	}
	defer b.closeHistory()
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
	results := map[string][]result{}
	for range b.rounds {
		for _, m := range chosen {
			r, err := b.measure(m)
			for again := 0; err == nil && r.disturbed() && again < b.retries; again++ {
				r, err = b.measure(m)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			results[m.name] = append(results[m.name], r)
		}
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

func (b *bench) config(dir string) (string, error) {
	history, err := b.historyConfig(dir)
	return fmt.Sprintf(`auth:
  jwt:
  - {issuer: %q, audiences: [%s], publicKeyFile: %s.pub}
authorizer: {mode: sar}
cache: {preload: [configmaps, pods, jobs.batch]}
trustedProxies: [] # everybody comes from an address of their own, the hostile one from another than the good ones
`, issuer, audience, b.key()) + history, err
}

func names() (names []string) {
	for _, m := range allMeans {
		names = append(names, m.name)
	}
	return names
}
