// Package balance spreads event streams over the replicas of a gateway. Streams last, so a replica that is added gets none
// of those that run, however little it has to do. A replica that has more streams than the mean therefore ends some of them
// before their time. Their clients come back with their positions, and to any replica.
//
// Replicas tell each other only how many streams they have, and believe each other once they have proved that they are
// replicas. What is not known counts as no reason to end a stream: a replica ends none while one of the others does not answer,
// or is not itself among those that do, or the replicas have not been the same for a while, as while one of them fails and
// begins again and again. A few streams are moved first. If their clients are sent back here, all is left as it is, each time
// for twice as long.
package balance

import (
	"context"
	"log/slog"
	"math"
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
	// Ask returns the loads of all replicas that are ready, and whether these are all that should be asked. It may find one of
	// them more than once.
	Ask func(context.Context) (all []Load, complete bool)
	// Move ends so many streams, chosen at random, at random moments within a time. It returns how many it found to end.
	Move func(streams int, within time.Duration) int
	// Returned is of how many streams that Move has ended the client has come back to this replica.
	Returned   func() int
	Registerer prometheus.Registerer
	Log        *slog.Logger
}

const (
	// every is how often replicas ask each other.
	every = 10 * time.Second
	// within is over how long the streams of one round end.
	within = 8 * time.Second
	// share is the part of the excess that is moved in each round, once a sample has helped. Some of it comes back here, and
	// clients should not come all at once: with a half, two replicas that become eight are level four minutes after they
	// began, of which two are spent waiting, and each client has moved once (TestScaleUpIsLevelInFiveMinutes).
	share = 2
	// The sample that is moved first is this part of the excess, and so many at least.
	sampleShare, sampleLeast = 10, 16
	// pause is how long after a sample nothing is moved, until it is known what has come of it.
	pause = 15 * time.Second
	// tolerance is how far above the mean a replica may be, as a part of it. It may be further by what is chance: streams
	// that are spread at random differ by the root of their mean, and hardly ever by three times that.
	tolerance = 0.03
	chance    = 3
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
	fleet   fleet
	attempt *attempt // the one that has not helped yet; nil: there is none
	rests   rests
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
	all, complete := b.opts.Ask(ctx)
	loads, now := each(all), time.Now()
	b.found.Set(float64(len(loads)))
	if b.attempt != nil { // replicas that have gone meanwhile make no difference to this
		if b.attempt.back = b.opts.Returned() - b.attempt.returned; b.attempt.cameBack(now) {
			b.giveUp(len(loads), now)
		}
	}
	if !complete {
		return
	}
	settled := b.fleet.see(loads, now)
	own := slices.IndexFunc(loads, func(l Load) bool { return l.Instance == b.opts.Self })
	if own < 0 || !settled || now.Before(b.rests.until) { // without itself: it is not ready, or draining, or no address is its own
		return
	}
	streams := loads[own].Streams
	b.level(streams, excessOf(streams, loads, b.attempt != nil && b.attempt.moving), len(loads), now)
}

// level moves some of the excess.
func (b *Balancer) level(streams, excess, replicas int, now time.Time) {
	switch a := b.attempt; {
	case excess == 0 && (a == nil || a.pending(now)):
		return
	case excess == 0:
		switch a.moving = false; {
		case a.helped(streams):
			b.attempt, b.rests = nil, rests{}
		case a.stayAway():
			b.attempt = nil // what is moved later is not to be judged by how it was before
		}
		return
	case a == nil:
		b.attempt = &attempt{streams: streams, excess: excess, returned: b.opts.Returned()}
	case a.pending(now):
		return
	case a.moved >= a.streams && excess > a.excess/2:
		b.giveUp(replicas, now)
		return
	case a.moved >= a.streams: // it helps, and goes on
		b.attempt = &attempt{streams: streams, excess: excess, returned: b.opts.Returned(), sampled: a.sampled}
	}
	n := b.opts.Move(b.attempt.size(excess), within)
	if b.attempt.add(n, now); b.attempt.moved == 0 { // all have only just begun: that is no sample
		b.attempt = nil
		return
	}
	b.moved.Add(float64(n))
	b.fleet.moved = true
}

// giveUp leaves the streams where they are for a while.
func (b *Balancer) giveUp(replicas int, now time.Time) {
	b.opts.Log.Warn("streams that are moved to other replicas come back to this one: what balances their connections does not spread them",
		"streams", b.attempt.streams, "replicas", replicas, "moved", b.attempt.moved, "back", b.attempt.back, "restFor", b.rests.begin(now))
	b.attempt = nil
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

// excessOf is how many streams a replica has above the mean; 0 if that is within the tolerance. One that has begun to move
// goes on for longer than one that has not would begin.
func excessOf(own int, all []Load, moving bool) int {
	sum := 0.0 // which cannot overflow, whatever they say
	for _, l := range all {
		sum += float64(l.Streams)
	}
	mean := sum / float64(len(all))
	most := chance * math.Sqrt(mean)
	if moving {
		most = math.Sqrt(mean)
	}
	if float64(own) <= mean+max(tolerance*mean, most) {
		return 0
	}
	return int(float64(own) - mean)
}
