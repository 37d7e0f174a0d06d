package eventstream

import (
	"context"
	"time"

	"github.com/kubecast/kubecast/internal/stream"
)

// begin begins the sources, each where the client's position says. It returns when all have begun,
// or some have, and the others take long: those begin when they can (see tryToBegin), and keep the
// client's position in the ids until then. So no id leaves out a source of which the client holds a
// position, whichever of them can be read first.
func (ss *session) begin(ctx context.Context) Outcome {
	ss.times = newSchedule(ss)
	patience := ss.takePlaces()
	ss.sharePermission()
	ss.greet()
	if outcome := ss.flush(); outcome != GoOn {
		return outcome
	}
	if ss.hub.draining.Err() != nil {
		return endDrain
	}
	if ss.shared.IsLeft() && !ss.finite {
		return endAge // with the head of this answer, the client has been told to leave the connection
	}
	ss.comesBack()
	for _, s := range ss.sources {
		ss.pursue(s.(*beginning))
	}
	outcome := ss.await(ctx, patience)
	if outcome == Unavailable {
		ss.logger().Warn("stream refused: its sources cannot be served", "path", ss.path, "error", ss.unready())
	}
	return outcome
}

// takePlaces puts something in the place of each source that keeps the client's position until the
// source begins. It returns until when all of them are waited for.
func (ss *session) takePlaces() (patience time.Time) {
	ss.names = make([]string, len(ss.sources))
	ss.claims = make([]stream.Claim, len(ss.sources))
	ss.dues = make([]time.Time, len(ss.sources))
	patience = time.Now().Add(beginWithin)
	for i, s := range ss.sources {
		b, is := s.(*beginning)
		if !is {
			b = newBeginning(ss.openings[i], s, cameFrom(ss.position, s.Name(), ss.several))
			ss.sources[i] = b
		}
		ss.names[i], b.tellAt = b.Name(), patience
		ss.claims[i], ss.dues[i] = b.from.Claim, b.due()
	}
	return patience
}

// pursue has a goroutine try to begin a source, unless it does already.
func (ss *session) pursue(b *beginning) {
	ctx, stop := context.WithCancel(ss.hub.serving)
	if !b.start(stop) {
		stop()
		return
	}
	ss.hub.spawn(func() {
		defer stop()
		b.run(ctx, ss.id, ss.hub.opts.SyncTimeout, ss.Wake)
	})
}

// await keeps the connection alive until the stream can go on, or has to end.
func (ss *session) await(ctx context.Context, patience time.Time) Outcome {
	ss.times.in(dueBegin, ss.hub.opts.SyncTimeout)
	defer ss.times.at(dueBegin, time.Time{})
	late := false
	for {
		waits := ss.count((*beginning).waits)
		if waits == 0 || !time.Now().Before(patience) { // in order, so that a client's resets come together
			for i, s := range ss.sources {
				if b, is := s.(*beginning); is {
					if outcome := ss.tryToBegin(i, b); outcome != GoOn {
						return outcome
					}
					ss.reading = i
					b.tellWhy(ss) // nothing, if it has begun
				}
				if b, is := ss.sources[i].(*beginning); is { // it may be another one
					ss.dues[i] = b.due()
				}
			}
		}
		late = late || ss.times.take(dueBegin, time.Now())
		switch {
		case ctx.Err() != nil:
			return ClientGone
		case ss.reads() > 0:
			return GoOn
		case waits == 0, late && ss.count((*beginning).isReady) == 0:
			return ss.endOfAll()
		}
		if outcome := ss.flush(); outcome != GoOn {
			return outcome
		}
		ss.sleep()
		if outcome := ss.due(); outcome != GoOn {
			return outcome
		}
	}
}

// count is of how many sources that have not begun something is so.
func (ss *session) count(is func(*beginning) bool) (n int) {
	for _, s := range ss.sources {
		if b, opening := s.(*beginning); opening && is(b) {
			n++
		}
	}
	return n
}

// endOfAll is how a stream ends of which nothing can be read: whether it helps to come back.
func (ss *session) endOfAll() Outcome {
	if ss.count((*beginning).isGone) == len(ss.sources) {
		return Gone
	}
	return Unavailable
}

// unready is why the first source that has not begun has not.
func (ss *session) unready() error {
	for _, s := range ss.sources {
		if b, is := s.(*beginning); is {
			return b.upstream().Err
		}
	}
	return nil
}

// tryToBegin takes what has come of trying to begin a source. If it can be read, it takes its place on the stream.
func (ss *session) tryToBegin(i int, b *beginning) Outcome {
	opened, asked, found := b.look()
	if b.source == nil && opened != nil {
		b.source = opened
		ss.audit.Joined(b.AuditRead())
		ss.permitAlso(asked)
	}
	switch {
	case !found.made:
		return GoOn
	case found.end == Gone:
		ss.giveUp(i, found.err, true)
		return GoOn
	case found.end.ends():
		return found.end
	case found.err != nil:
		b.failed, b.gone = found.err, false
		return GoOn
	}
	ss.sources[i], ss.position = b.source, ""
	claim, reset := b.source.Begin(b.told())
	claim.Epoch = found.epoch
	ss.claims[i], ss.dues[i] = claim, time.Time{}
	if reset != "" {
		return ss.reset(b.source, reset)
	}
	if b.from.Known {
		if ss.behind == nil {
			ss.behind = make([]bool, len(ss.sources))
		}
		// The one that is furthest behind is read first. Else a client whose connections are short would be told of the
		// first one only, as long as that has news.
		if at := ss.at; ss.behind[at] && ss.claims[at].Epoch == found.epoch && b.from.Claim.All < ss.claims[at].All {
			ss.at = i
		}
		ss.behind[i] = true
	}
	return GoOn
}

// giveUp puts a source that cannot be read any more back among those that have not begun, with the
// client's position. It is opened anew: what it needs may be another now. If it is not served, that
// may be so for long.
func (ss *session) giveUp(i int, why error, gone bool) {
	left := ss.sources[i]
	var b *beginning
	if before, is := left.(*beginning); is {
		b = newBeginning(before.opening, nil, before.from)
		b.since, b.tellAt, b.reason, b.wait, b.among = before.since, before.tellAt, before.reason, later(before.wait), before.among
	} else {
		claim := ss.claims[i]
		b = newBeginning(ss.openings[i], nil, From{Known: true, Named: claim.IsPlaced(), Claim: claim})
	}
	if b.failed, b.gone = why, gone; gone {
		b.wait = max(b.wait, tryAgain)
	}
	left.Close()
	ss.sources[i], ss.dues[i] = b, time.Time{}
	if ss.behind != nil {
		ss.behind[i] = false
	}
	ss.permitAlso(time.Now())
	ss.pursue(b)
}
