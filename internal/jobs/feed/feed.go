// Package feed asks a database again and again what is new, once for all who follow it.
//
// What it promises: however many follow, there is one question at a time. What this replica wrote is
// asked for at once, and what other replicas wrote within a quarter of a second. Followers are told
// that the database is away only if that lasts.
//
// What it refuses: to know what is asked, or who is woken by the answer.
package feed

import (
	"context"
	"time"

	"github.com/kubecast/kubecast/internal/stream"
)

const (
	// pollEach is how often the database is asked what other replicas have written. This one nudges.
	pollEach = 250 * time.Millisecond
	// AwayAfter is for how long the database may fail before followers are told, and how long a question may take.
	AwayAfter = 3 * time.Second
)

// Poller decides when the database is asked. Its methods may be called concurrently.
type Poller struct{ nudged *stream.WakeChannel }

// NewPoller returns a poller that nobody has nudged.
func NewPoller() Poller { return Poller{stream.NewWakeChannel()} }

// Nudge has the database asked at once. It does not wait.
func (p Poller) Nudge() { p.nudged.Wake() }

// Run asks until the context ends, and soon again after an answer. No question should take longer
// than AwayAfter. While isWanted says no, nothing is asked until the next nudge.
func (p Poller) Run(ctx context.Context, isWanted func() bool, ask func(ctx context.Context) error) {
	poll := time.NewTimer(0)
	defer poll.Stop()
	for {
		if !isWanted() {
			poll.Stop()
		} else if ask(ctx) == nil {
			poll.Reset(pollEach)
		} else {
			poll.Reset(AwayAfter / 3)
		}
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		case <-p.nudged.C:
		}
	}
}

// Outage is what followers are told of questions that fail. Its owner's lock guards it.
type Outage struct {
	since time.Time // since when questions have failed; zero: they do not fail
	told  error
}

// Take takes the outcome of a question that began at a time. A failure that is shorter than AwayAfter
// is nothing that followers need to know, unless there is nothing yet that they could be told. It
// reports whether followers can be told something now and could not before, or the other way round.
func (o *Outage) Take(began time.Time, failure error, isKnown bool) (changed bool) {
	could := o.told == nil
	if failure == nil {
		*o = Outage{}
		return !could
	}
	if o.since.IsZero() {
		o.since = began
	}
	if !isKnown || time.Since(o.since) >= AwayAfter {
		o.told = failure
	}
	return could != (o.told == nil)
}

// Err is why followers cannot be told what there is; nil: they can.
func (o *Outage) Err() error { return o.told }
