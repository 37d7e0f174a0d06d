package logstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/logs"
	"github.com/kubecast/kubecast/internal/stream"
)

const (
	// settleWithin is how long synced waits for a container of whose log nothing comes.
	settleWithin = 5 * time.Second
	// endWithin is how long ended waits for the pod to say how the run ended.
	endWithin = 5 * time.Second
	// goneWithin is how long the log of a pod that is gone may go on.
	goneWithin = 30 * time.Second
	// inOneTurn is how many lines are told in one Read.
	inOneTurn = 256
)

func (s *source) Read(ctx context.Context, to eventstream.Sink) eventstream.ReadResult {
	isFirst := s.to == nil
	s.to = to
	p := s.read(ctx, isFirst)
	p.Claim, p.Due = s.claim(), s.due()
	return p
}

func (s *source) read(ctx context.Context, isFirst bool) eventstream.ReadResult {
	if isFirst {
		if s.Visible != nil {
			s.EmitVisible(s.to, s.prefix, "narrowed", s.claim())
		}
	}
	if s.Outdated() {
		s.adopt()
	}
	if s.cursor == nil && s.to.NonBlocking() { // there may be many pods
		return eventstream.ReadResult{More: true, Outcome: eventstream.WouldBlock}
	}
	if s.cursor == nil {
		s.list(ctx)
	} else if outcome, ok := s.changes(ctx); !ok || outcome != eventstream.GoOn {
		return eventstream.ReadResult{More: true, Outcome: outcome}
	}
	if len(s.containers) > s.most() {
		return eventstream.ReadResult{Outcome: eventstream.Limit}
	}
	if s.began.IsZero() {
		s.began = time.Now()
	}
	return s.tell()
}

// adopt tells the client that its caller may see something else from here on.
func (s *source) adopt() {
	event := s.Adopt()
	s.EmitVisible(s.to, s.prefix, event, s.claim())
	s.relist()
	// Nothing of what was read is told any more that may not be seen.
	for key, c := range s.containers {
		if !s.Visible.Shows().Sees(c.namespace, c.pod) {
			c.close()
			delete(s.containers, key)
		}
	}
	s.order = sorted(s.containers)
}

// relist has the pods be listed next.
func (s *source) relist() {
	if s.cursor != nil {
		s.cursor.Disarm()
		s.cursor = nil
	}
}

// list finds the pods that are there, and puts the source behind them.
func (s *source) list(ctx context.Context) {
	snapshot := s.in.Store.Snapshot()
	found := map[string]bool{}
	clear(s.unsure)
	for o := range s.visibleTarget().List(snapshot, s.selector.Stepping(s.to.Step), "", "") {
		for _, key := range s.pod(ctx, o) {
			found[key] = true
		}
		if len(s.containers) > s.most() {
			return
		}
	}
	if !s.to.Step(0) { // the stream is over, and not all was looked at
		return
	}
	for key, c := range s.containers {
		if !found[key] {
			c.lost()
		}
	}
	s.lookAgain()
	s.order = sorted(s.containers)
	s.cursor = s.in.Store.Topic().From(snapshot.Head, s.visibleTarget().Namespaces())
}

// changes reads what has become of the pods; ok is false if they have to be listed again.
func (s *source) changes(ctx context.Context) (outcome eventstream.Outcome, ok bool) {
	var space [eventstream.BatchSize]*cache.Event
	changed := false
	for {
		events, _, err := s.cursor.Next(space[:0], s.to)
		if err != nil {
			s.relist()
			return eventstream.GoOn, false
		}
		if len(events) > 0 && s.owners != nil && s.to.NonBlocking() { // other kinds may have to be looked for
			s.cursor.Back(events)
			return eventstream.WouldBlock, true
		}
		for _, e := range events {
			changed = true
			if e.Type != stream.Deleted {
				s.pod(ctx, e.Object)
				continue
			}
			delete(s.unsure, e.Object.GetName())
			for _, c := range s.containers {
				if c.uid == e.Object.UID() {
					c.lost()
				}
			}
		}
		if len(events) < len(space) {
			break
		}
	}
	if !s.sureAgain.IsZero() && !time.Now().Before(s.sureAgain) {
		if s.to.NonBlocking() {
			return eventstream.WouldBlock, true
		}
		changed = true
		s.lookAtUnsure(ctx)
	}
	if changed {
		s.lookAgain()
		s.order = sorted(s.containers)
	}
	return eventstream.GoOn, true
}

// pod takes what a pod says of its containers, and returns their keys.
func (s *source) pod(ctx context.Context, o *cluster.Object) (keys []string) {
	if !s.selects(s.match, o) || !s.Visible.Sees(o) {
		return nil
	}
	if s.owners != nil && !s.follows(o) {
		yes, known, unread := s.owners.belongs(ctx, o)
		if !known {
			s.unsure[strings.Clone(o.GetName())] = doubt{time.Now(), unread}
		}
		if !yes {
			return nil
		}
	}
	for _, status := range statuses(o) {
		if !s.wants(status.container) {
			continue
		}
		key := keyOf(o.UID(), status.container)
		keys = append(keys, key)
		if c := s.containers[key]; c != nil {
			c.status, c.gone = status, time.Time{} // it may have been out of sight for a moment
			continue
		}
		if len(status.runs) == 0 || s.once && s.synced || len(s.containers) > s.most() {
			continue // it has not begun, or nobody asked for those to come
		}
		s.containers[key] = newContainer(o, status)
	}
	s.several = s.several || len(s.containers) > 1
	return keys
}

// follows reports whether a container of a pod is followed already: then it belongs to the owner,
// whatever has become of that.
func (s *source) follows(o *cluster.Object) bool {
	return slices.ContainsFunc(s.order, func(c *container) bool { return c.uid == o.UID() })
}

// wants reports whether a container's log is asked for.
func (s *source) wants(container string) bool {
	return len(s.only) == 0 || slices.Contains(s.only, container)
}

// tell tells lines of all containers, by their times as far as these are there.
func (s *source) tell() (p eventstream.ReadResult) {
	told := 0
	for empty := true; ; {
		if empty {
			if p.Outcome = s.advance(); p.Outcome != eventstream.GoOn {
				return p
			}
		}
		c := s.earliest()
		if c == nil {
			break
		}
		if told == inOneTurn {
			p.More = true
			return p
		}
		told++
		next := c.ready[0]
		c.ready = c.ready[1:]
		empty = len(c.ready) == 0
		size := s.line(c, next)
		if p.Outcome = s.to.Relay(); p.Outcome != eventstream.GoOn || s.Outdated() || !s.to.Step(size) {
			p.More = true
			return p
		}
	}
	return s.settle()
}

// missing tells that lines of a container are missing, and what its node says of that.
func (s *source) missing(c *container, reason, message string) {
	if !s.plain {
		s.emit("reset", c.missingData(reason, message))
		return
	}
	if message != "" {
		reason += ": " + message
	}
	s.emit("line", fmt.Sprintf("[kubecast: lines of %s/%s are missing here: %s]", c.pod, c.name, reason))
}

// unavailable tells that none come for now.
func (s *source) unavailable(c *container, why error) {
	message := ""
	var said *logs.NodeError
	if errors.As(why, &said) {
		message = said.Words
	}
	c.troubled, s.lacks = true, true
	s.missing(c, eventstream.Unavailable.String(), message)
}

// fail notes whether the node says that it cannot tell more of a container's log, and is true if
// that is to be told: what was there has not come within a while, or was told, and for a while
// nothing more can be.
func (c *container) fail(trouble error) bool {
	var said *logs.NodeError
	switch {
	case !errors.As(trouble, &said):
		c.fails = time.Time{}
	case c.fails.IsZero():
		c.fails = time.Now()
	}
	if c.settled {
		return !c.fails.IsZero() && time.Since(c.fails) >= settleWithin
	}
	return time.Since(c.begins) >= settleWithin
}

// settle tells that what was there has been told, and of which containers that cannot be had.
func (s *source) settle() (p eventstream.ReadResult) {
	for _, c := range s.order {
		if c.reader == nil || c.troubled {
			continue
		}
		trouble := c.reader.Trouble()
		if !c.fail(trouble) {
			continue
		}
		if trouble == nil && !s.once { // it is quiet as far as is known; if more becomes known, that is told
			c.late = true
			continue
		}
		s.unavailable(c, trouble)
	}
	p.Behind = !s.isSettled()
	if how, since := s.unread(); how != nil {
		s.freshness.Tell(s.to, s.prefix, *how, s.claim)
		if s.once && time.Since(since) >= sureWithin {
			p.Outcome = eventstream.Unavailable
			return p
		}
	}
	if s.once && s.lacks && !s.synced && !p.Behind && s.prefix == "" { // what was told must not look complete
		p.Outcome = eventstream.Unavailable
		return p
	}
	if !s.synced && !p.Behind {
		s.synced = true
		s.emit("synced", fmt.Sprintf(`{"lines":%d}`, s.lines))
	}
	if !p.Behind {
		s.freshness.Live(s.to, s.prefix, s.claim)
	}
	if s.once && s.synced {
		s.over = true
		for _, c := range s.order {
			c.close()
		}
		if s.prefix == "" {
			p.Outcome = eventstream.Gone
		}
	}
	return p
}

func (s *source) isSettled() bool {
	if len(s.unsure) > 0 { // there may be more, once it is known whose they are
		return false
	}
	for _, c := range s.order {
		if c.reader != nil && !c.settled && !c.late && !c.troubled {
			return false
		}
	}
	return true
}

// advance reads on in all containers that have nothing ready, and goes from their runs to the next ones.
func (s *source) advance() eventstream.Outcome {
	if s.over {
		return eventstream.GoOn
	}
	left := false
	for _, c := range s.order {
		for again := true; again; {
			if again = false; c.reader == nil && c.finished.IsZero() {
				if outcome := s.begin(c); outcome != eventstream.GoOn {
					return outcome
				}
			}
			err := c.fill(s.to)
			switch {
			case errors.Is(err, logs.ErrSlow):
				s.missing(c, eventstream.ResetSlow, "")
				again = true
			case err != nil && over(err):
				c.close()
				c.finished, c.unreadable = time.Now(), errors.Is(err, logs.ErrUnreadable)
			case err != nil:
				return failed(err)
			case c.reader != nil && !c.gone.IsZero() && time.Since(c.gone) >= goneWithin && len(c.ready) == 0:
				c.close()
				c.finished = time.Now()
			}
			if !c.finished.IsZero() && len(c.ready) == 0 {
				again = s.end(c)
			}
		}
		left = left || c.isLeft()
	}
	if left {
		for key, c := range s.containers {
			if c.isLeft() {
				delete(s.containers, key)
			}
		}
		s.order = sorted(s.containers)
	}
	return eventstream.GoOn
}

// begin opens the run of a container that comes next, if there is one.
func (s *source) begin(c *container) eventstream.Outcome {
	start, at, ok := s.nextRun(c)
	if !ok {
		return eventstream.GoOn
	}
	if c.run >= 0 && (at > c.run+1 || at > c.run && !c.ended) {
		s.missing(c, eventstream.ResetExpired, "")
	}
	again := start.After != nil || c.run == at && !c.ended
	c.run, c.ended, c.told = at, false, start.After
	reader, err := s.feeds.Open(upstream{s.in.Kinds.Cluster()}, c.of(s.in.Kinds.Cluster().Name()), s.quotaOwner, start)
	if err != nil {
		return failed(err)
	}
	c.reader, c.begins, c.settled, c.late, c.troubled = reader, time.Now(), false, false, false
	c.fails, c.unreadable = time.Time{}, false
	c.changed()
	if !again {
		s.emit("started", c.startedData())
	}
	return eventstream.GoOn
}

// nextRun is which run of a container is read next, and from where.
func (s *source) nextRun(c *container) (start logs.Start, restart int, ok bool) {
	if known, has := s.known.containers[c.key]; has { // the client comes back
		c.run, c.ended, c.told = known.restart, known.ended, known.told
		c.changed()
		if newest, _ := c.status.newest(); newest.restart < known.restart {
			return start, 0, false // another replica has heard of that run, and this one will
		}
		delete(s.known.containers, c.key)
		if r, there := c.status.find(known.restart); there && !known.ended {
			return logs.Start{After: known.told, Whole: known.told == nil}, r.restart, true
		}
	}
	if c.run >= 0 || s.synced { // a run that came meanwhile, or a container
		r, there := c.status.after(c.run)
		return logs.Start{Whole: true}, r.restart, there
	}
	r, there := c.status.newest()
	return s.start, r.restart, there
}

// end tells that a run has ended, once its pod says how. It is false if that has to be waited for.
// Of a run that could not be read to its end it says nothing, since that was told as missing.
func (s *source) end(c *container) bool {
	data, known := c.endedData()
	if !known && !c.unreadable && time.Since(c.finished) < endWithin {
		return false
	}
	c.finished, c.ended = time.Time{}, true
	c.changed()
	if !c.unreadable {
		s.emit("ended", data)
	}
	_, more := c.status.after(c.run)
	return more
}

// earliest is the container whose next line is the oldest of those that are ready; nil if none is.
func (s *source) earliest() (first *container) {
	for _, c := range s.order {
		if len(c.ready) > 0 && (first == nil || c.ready[0].Time.Before(first.ready[0].Time)) {
			first = c
		}
	}
	return first
}

// line tells one line, and returns about how many bytes that took.
func (s *source) line(c *container, l *logs.Line) int {
	told := l.After // and not the line with it
	c.told = &told
	c.changed()
	switch {
	case l.Reset == logs.ResetUnreadable:
		if !c.troubled {
			s.missing(c, l.Reset, l.Text)
		}
		c.troubled, s.lacks = true, true
		return 0
	case l.Reset != "":
		s.missing(c, l.Reset, "")
		return 0
	case s.search != "" && !strings.Contains(l.Text, s.search):
		return len(l.Text)
	}
	s.lines++
	if c.settled {
		c.troubled, c.fails = false, time.Time{}
	}
	if s.plain {
		text := l.Text
		if s.several {
			text = c.pod + "/" + c.name + " " + text
		}
		s.emit("line", text)
		return len(text)
	}
	data := c.lineData(l)
	s.emit("line", data)
	return len(data)
}
