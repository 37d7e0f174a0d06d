// Package balance spreads event streams over the replicas of a gateway. Streams last, so a replica that is added gets none
// of those that run, however little it has to do. A replica that has more streams than the mean therefore ends some of them
// before their time, those that have been open longest first. Their clients come back with their positions, and to any replica.
//
// Replicas tell each other only how many streams they have, and believe each other. What is not known counts as no reason to
// end a stream: a replica that gets no answer, or is not among those that answer, ends none. A balancer that sends the clients
// back to where they came from is noticed, and then left alone, each time for twice as long.
package balance

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Load is what a replica tells of itself.
type Load struct {
	Instance string `json:"instance"` // differs between replicas, and between two lives of one
	Streams  int    `json:"streams"`
}

// Options configure a Balancer; all are required.
type Options struct {
	Self string // the instance that this is
	// Ask returns the loads of all replicas that are ready. It may find one of them more than once.
	Ask func(context.Context) []Load
	// Move ends so many streams at random moments within a time, and returns how many it found to end.
	Move       func(streams int, within time.Duration) int
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

const (
	// every is how often replicas ask each other. In each round a share of the excess is moved. Some of it comes back here,
	// and clients should not come all at once: with a quarter in ten seconds, two replicas that become eight are level within
	// four minutes, and each client has moved once (TestScaleUpIsLevelInFiveMinutes).
	every = 10 * time.Second
	share = 4
	// tolerance is how far above the mean a replica may be: a part of it, and some streams, since with few of them differences
	// are chance.
	tolerance = 0.03
	few       = 2
	// rest is how long nothing is moved after moving has not helped, and longest the bound of its doubling. A replica that
	// none of the clients can reach, since it is another gateway's, would otherwise move all of them again and again.
	rest    = 10 * time.Minute
	longest = 8 * time.Hour
)

// Balancer ends streams of this replica that others have more room for.
type Balancer struct {
	opts    Options
	found   prometheus.Gauge
	moved   prometheus.Counter
	attempt attempt
}

// attempt is what has come of moving streams since this replica had too many.
type attempt struct {
	streams, excess int // when it began
	moved           int
	until           time.Time     // it was in vain, and nothing is moved until then; zero: it was not
	rest            time.Duration // how long that was
}

// New returns a Balancer.
func New(opts Options) *Balancer {
	b := &Balancer{
		opts: opts,
		found: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubecast_replicas", Help: "Replicas of the gateway that answered when they were asked for their load, this one included.",
		}),
		moved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kubecast_streams_moved_total", Help: "Streams that were ended before their time, since other replicas have fewer.",
		}),
	}
	opts.Registerer.MustRegister(b.found, b.moved)
	return b
}

// Run balances until the context ends.
func (b *Balancer) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every*9/10 + rand.N(every/5)): // replicas that were begun together do not act together
		}
		b.round(ctx)
	}
}

func (b *Balancer) round(ctx context.Context) {
	loads := each(b.opts.Ask(ctx))
	b.found.Set(float64(len(loads)))
	own := slices.IndexFunc(loads, func(l Load) bool { return l.Instance == b.opts.Self })
	if own < 0 { // it is not ready, or draining, or the replicas are not all known
		return
	}
	excess := excessOf(loads[own].Streams, loads)
	if !b.attempt.mayMove(loads[own].Streams, excess, time.Now()) {
		return
	}
	if b.attempt.isVain() {
		rest := b.attempt.stop(time.Now())
		b.opts.Log.Warn("streams that are moved to other replicas come back to this one: what balances their connections does not spread them",
			"streams", loads[own].Streams, "replicas", len(loads), "moved", b.attempt.moved, "restFor", rest)
		return
	}
	n := b.opts.Move((excess+share-1)/share, every)
	b.attempt.moved += n
	b.moved.Add(float64(n))
}

// each leaves out what was found twice, as by its IPv4 and its IPv6 address.
func each(loads []Load) []Load {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(loads), func(l Load) bool {
		again := seen[l.Instance]
		seen[l.Instance] = true
		return again
	})
}

// excessOf is how many streams a replica has above the mean; 0 if that is within the tolerance.
func excessOf(own int, all []Load) int {
	sum := 0.0 // which cannot overflow, whatever they say
	for _, l := range all {
		sum += float64(l.Streams)
	}
	mean := sum / float64(len(all))
	if float64(own) <= mean*(1+tolerance)+few {
		return 0
	}
	return int(float64(own) - mean)
}

// mayMove takes note of how much too many streams there are, and reports whether some may be moved.
func (a *attempt) mayMove(streams, excess int, now time.Time) bool {
	switch {
	case now.Before(a.until):
		return false
	case excess == 0:
		*a = attempt{}
		return false
	case a.streams == 0, a.moved >= a.streams && excess <= a.excess/2: // it helps, and goes on
		*a = attempt{streams: streams, excess: excess}
	case !a.until.IsZero():
		*a = attempt{streams: streams, excess: excess, rest: a.rest}
	}
	return true
}

// stop has nothing moved for a while, and returns for how long.
func (a *attempt) stop(now time.Time) time.Duration {
	a.rest = min(max(rest, 2*a.rest), longest)
	a.until = now.Add(a.rest)
	return a.rest
}

// isVain reports whether as many streams were moved as there were, and most of the excess is still here.
func (a *attempt) isVain() bool { return a.moved >= a.streams }
