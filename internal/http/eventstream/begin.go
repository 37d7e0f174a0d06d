package eventstream

import (
	"context"
	"errors"
	"sync"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/stream"
)

// begin waits for the sources, and puts each where the client's position says. Where all of them go on is
// decided before the first event is sent, so that no id leaves out a source of which the client holds a position.
func (ss *session) begin(ctx context.Context) Outcome {
	ss.times = newSchedule(ss)
	ss.sharePermission()
	ss.greet()
	if outcome := ss.flush(); outcome != GoOn {
		return outcome
	}
	if ss.hub.draining.Err() != nil {
		return endDrain
	}
	finding, cancel := context.WithTimeout(ctx, ss.hub.opts.SyncTimeout)
	found := make(chan resumePoints, 1)
	go func() {
		found <- ss.findResumePoints(finding)
		ss.Wake()
	}()
	// The other goroutine reads only what the session does not change meanwhile. It ends before the session goes on.
	result, outcome := ss.await(found)
	cancel()
	if result == nil {
		<-found
	}
	switch {
	case outcome != GoOn:
		return outcome
	case ctx.Err() != nil:
		return endLeft
	case errors.Is(result.err, cache.ErrNotServed):
		return Gone
	case result.err != nil:
		ss.logger().Warn("stream refused: its sources cannot be served", "path", ss.path, "error", result.err)
		return Unavailable
	}
	ss.epochs = result.epochs
	ss.names = make([]string, len(ss.sources))
	ss.claims = make([]stream.Claim, len(ss.sources))
	resets := make([]string, len(ss.sources))
	for i, s := range ss.sources {
		ss.names[i], resets[i] = s.Name(), s.Begin()
	}
	// All resets come before the first state, since the ids from here on leave these sources out: a client that is
	// cut off and comes back with one would not be told.
	for i, s := range ss.sources {
		if resets[i] != "" {
			if outcome := ss.reset(s, resets[i]); outcome != GoOn {
				return outcome
			}
		}
	}
	if ss.position != "" {
		ss.behind = make([]bool, len(ss.sources))
		for i, reset := range resets {
			ss.behind[i] = reset == ""
		}
	}
	ss.position = ""
	return GoOn
}

// resumePoints is what findResumePoints has found. The rest of it is kept by each source.
type resumePoints struct {
	epochs []string
	err    error // a source cannot be read
}

// await keeps the connection alive until the resume points are found, or the stream has to end before.
func (ss *session) await(found <-chan resumePoints) (*resumePoints, Outcome) {
	for {
		select {
		case points := <-found:
			return &points, GoOn
		default:
		}
		ss.sleep()
		if outcome := ss.due(); outcome != GoOn {
			return nil, outcome
		}
		if outcome := ss.flush(); outcome != GoOn {
			return nil, outcome
		}
	}
}

// findResumePoints waits until the sources can be read, and has each find where to go on.
//
// That may take long. If another history begins meanwhile, the client's position means something else, and the sources
// look again.
func (ss *session) findResumePoints(ctx context.Context) resumePoints {
	for _, s := range ss.sources { // their first lists are read side by side
		if err := s.Ready(ctx); err != nil {
			return resumePoints{err: err}
		}
	}
	points := resumePoints{epochs: make([]string, len(ss.sources))}
	errs := make([]error, len(ss.sources))
	var finding sync.WaitGroup
	for i, s := range ss.sources {
		finding.Go(func() { points.epochs[i], errs[i] = ss.find(ctx, s) })
	}
	finding.Wait()
	points.err = errors.Join(errs...)
	return points
}

// find has a source find where to go on, and returns the epoch in which it found that.
func (ss *session) find(ctx context.Context, s Source) (epoch string, err error) {
	now, err := s.Epoch(ctx)
	for err == nil && epoch != now {
		epoch = now
		s.Find(ctx, fromPosition(ss.position, epoch, s.Name(), ss.several))
		now, err = s.Epoch(ctx)
	}
	return epoch, err
}

// fromPosition is what a client's event id says of a source, in an epoch. On a stream of several, an id that does not name the
// source says nothing of its epoch, either.
func fromPosition(text, epoch, name string, several bool) (from From) {
	if text == "" {
		return from
	}
	position, err := stream.ParsePosition(text)
	from.Known = true
	from.Claim, from.Named = position.Claims[name]
	counts := from.Claim.Epoch
	if !from.Named && !several {
		counts = position.Epoch
	}
	switch {
	case err != nil:
		from.Reset = ResetUnreadable
	case counts != "" && counts != epoch:
		from.Reset = ResetEpoch
	}
	return from
}
