package logs

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/backoff"
)

const (
	// What broke is resumed after a time from the first to the last.
	firstPause = 100 * time.Millisecond
	lastPause  = 3 * time.Second
	// clockMargin is how far back of what is counted a log is asked for, so that nothing is lost if
	// the node's clock jumps back by no more. Older lines would be left out of the answer, and
	// nothing would tell.
	clockMargin = 10 * time.Minute
	// mismatchedWithin is for how long an answer that does not begin with what was told may be that of another run.
	mismatchedWithin = 3 * time.Second
	// batchLines is how many lines are told in one step at most.
	batchLines = 256
	// settledAfter is after how long without a line all that was there counts as read. Its last line
	// need not come, since files are rotated.
	settledAfter = 2 * time.Second
	// gaveUp is after how long the log of a run that has ended is taken for lost, if it cannot be read.
	gaveUp = 30 * time.Second
)

// sink is where a follower tells what it reads.
type sink interface {
	// tell takes lines. It may wait, until the context ends.
	tell(ctx context.Context, lines []*Line)
	// start says that some of what was there has been told, and the rest comes slowly.
	start()
	// settle says that what was there at the beginning has been told. It may be said again.
	settle()
	// trouble says why the log cannot be read for now; nil: it can.
	trouble(err error)
	// finish says that no more will come: io.EOF after all of it, or ErrGone or ErrUnreadable.
	finish(err error)
}

// follower reads one run, from where it begins to its end, however often the connection breaks.
type follower struct {
	run    ContainerRun
	source Backend
	to     sink

	// Where it begins: behind a position, else with so many lines of those since a time that are there.
	after *LinePosition
	since time.Time // the zero time: any
	tail  int       // negative: all

	found  bool  // it is known where to begin
	whole  bool  // it begins where the log does
	skip   *mark // of the first line that is told; nil: the next one is
	newest *mark // of the last line that was there at the beginning; nil: it was told

	counts     perSecondCounts
	counted    bool      // there is something in counts: what is read begins behind it
	imported   bool      // and it was counted elsewhere, so that only its sum is known
	last       time.Time // of the last line
	latest     time.Time // the latest of all lines
	fresh      bool      // the next answer has only what is written from then on
	lines      int       // that were read and are new
	mismatched time.Time // since when the answers do not begin with what was told; zero: they do
	ended      bool      // the last answer that began came to its end
}

// mark is how a line is known again.
type mark struct {
	at  time.Time
	sum uint64
}

// never is later than any line.
var never = time.Unix(1<<40, 0)

func (m *mark) is(line rawLine) bool { return m.sum == line.sum && m.at.Equal(line.at) }

// follow returns when all was told, or the context has ended.
func (f *follower) follow(ctx context.Context) {
	f.begin()
	retry := backoff.New(firstPause, lastPause)
	var failing time.Time // since when a run that has ended could not be read
	for ctx.Err() == nil {
		ended, err := f.source.Ended(ctx, f.run) // before it is read, so that nothing is written behind what is read
		before := f.lines
		if err == nil && !f.found {
			err = f.find(ctx)
		}
		if err == nil {
			f.tell(ctx, nil)
			err = f.read(ctx, ended)
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrGone):
			if !f.ended { // nobody knows what else there was
				f.tell(ctx, []*Line{f.missing(ResetRotated)})
			}
			f.to.finish(ErrGone)
			return
		case ended && err == nil:
			f.to.finish(io.EOF)
			return
		}
		switch {
		case f.lines > before:
			retry.Reset()
		case errors.Is(err, errOther): // it is known soon
			retry.AtMost(4 * firstPause)
		}
		switch {
		case !ended || f.lines > before:
			failing = time.Time{}
		case failing.IsZero():
			failing = time.Now()
		case time.Since(failing) >= gaveUp:
			f.tell(ctx, []*Line{f.unreadable(err)})
			f.to.finish(ErrUnreadable)
			return
		}
		f.to.trouble(err)
		retry.Wait(ctx)
	}
}

// begin prepares what is known without having read anything.
func (f *follower) begin() {
	f.last = time.Unix(0, 0)
	if f.after != nil { // it is not known what is there: until nothing comes
		f.newest = &mark{at: never}
	}
	switch {
	case f.after == nil:
	case f.after.Count == 0: // lines were missing there
		f.restart()
	default:
		f.found, f.counted, f.imported = true, true, true
		f.counts = perSecondCounts{seconds: []second{{f.after.Since, f.after.Count, f.after.Sum}}, horizon: f.after.Since - 1, hasHorizon: true}
		f.last = time.Unix(f.after.Since, 0)
		f.latest = never // it is not known
	}
}

// missing says that lines are missing. A client that comes back with its position is told what is
// later than the last line before it.
func (f *follower) missing(reason string) *Line {
	return &Line{Time: f.last, Reset: reason, After: LinePosition{Since: f.last.Unix()}}
}

// unreadable says that lines are missing, and why, if the node does.
func (f *follower) unreadable(err error) *Line {
	line := f.missing(ResetUnreadable)
	var said *NodeError
	if errors.As(err, &said) {
		line.Text = said.Words
	}
	return line
}

// restart has a follower that began behind a position begin behind its second instead: what was told cannot be found.
func (f *follower) restart() {
	f.since, f.tail, f.after = time.Unix(f.after.Since+1, 0), -1, nil
	f.found = true
	f.counted, f.imported, f.latest = false, false, time.Time{}
	f.counts = perSecondCounts{}
	f.counts.uncountedTo(f.since.Unix() - 1)
}

// find looks for the first of the lines that are to be told, and for the last that is there.
// Telling begins with the whole second of the first, since positions count by seconds.
func (f *follower) find(ctx context.Context) error {
	body, err := f.source.Read(ctx, f.run, ReadOptions{Since: f.since.Truncate(time.Second), Tail: f.tail})
	if err != nil {
		return err
	}
	defer body.Close()
	in := newLineReader(body)
	var said error
	var first, last mark
	var earliest time.Time
	lines := 0
	for {
		line, any, err := in.next()
		if any && !line.own && said == nil {
			said = notOwn(line, err)
		}
		if any && line.own && err == nil {
			last = mark{line.at, line.sum}
			if lines++; lines == 1 {
				first = last
			}
			if lines == 1 || line.at.Before(earliest) {
				earliest = line.at
			}
		}
		switch {
		// Behind so many lines are those that are written meanwhile, perhaps faster than they are read.
		case errors.Is(err, io.EOF) && said != nil && lines == 0:
			return said
		case errors.Is(err, io.EOF), err == nil && f.tail > 0 && lines == f.tail:
			f.found = true
			if lines > 0 {
				f.newest = &last
			}
			if said != nil { // that is not all that there was
				f.newest = &mark{at: never}
			}
			if all := f.tail < 0 || lines < f.tail; all && f.since.IsZero() {
				f.whole = true
				return nil
			} else if !all {
				f.skip, f.since = &first, earliest
			}
			f.counts.uncountedTo(f.since.Unix() - 1)
			return nil
		case err != nil:
			return err
		}
	}
}

// errAnew means that it cannot be told what of an answer is new.
var errAnew = errors.New("what was told is not in the log")

// query is what is to be asked for now, and what of the answer is known already.
func (f *follower) query() (q ReadOptions, known LinePosition, ok bool) {
	q = ReadOptions{Tail: -1, Follow: true}
	switch {
	case f.fresh:
		q.Tail = 0
	case f.counted:
		if known, ok = f.counts.all(f.last.Unix()); !ok {
			return q, known, false
		}
		if known.Since > everything {
			q.Since = time.Unix(known.Since, 0).Add(-clockMargin)
		}
	case !f.whole && !f.since.IsZero():
		q.Since = f.since.Truncate(time.Second)
		if f.skip != nil { // there may be later ones of an earlier time
			q.Since = q.Since.Add(-clockMargin)
		}
	}
	return q, known, true
}

// read reads one answer to its end, and tells what is new in it. It returns nil if the answer is complete.
func (f *follower) read(ctx context.Context, ended bool) error {
	q, known, ok := f.query()
	if !ok {
		return f.resync(ctx, ResetClock)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	settling := time.AfterFunc(settledAfter, f.to.settle)
	defer settling.Stop()
	defer time.AfterFunc(settledAfter, f.to.start).Stop()
	body, err := f.source.Read(ctx, f.run, q)
	if err != nil {
		return err
	}
	defer body.Close()
	f.ended = false
	// An answer is well once it says something new, or nothing for a while: a node that cannot tell
	// the log says so at once.
	well := sync.OnceFunc(func() { f.to.trouble(nil) })
	quiet, before := time.AfterFunc(settledAfter, well), f.lines
	defer quiet.Stop()
	in := newLineReader(body)
	var said error
	a := answer{known: known, passed: LinePosition{Since: known.Since}, ended: ended}
	var batch []*Line
	for {
		line, any, err := in.next()
		switch {
		case any && !line.own:
			if said == nil {
				if said = notOwn(line, err); said != nil {
					f.newest = &mark{at: never} // that is not all that there was
					settling.Stop()
					quiet.Stop()
				}
			}
		// A line without an end is one only if nothing can follow.
		case err == nil || any && ended && errors.Is(err, io.EOF):
			var other error
			if batch, other = f.take(&a, line, batch); errors.Is(other, errRotated) {
				return f.resync(ctx, ResetRotated)
			} else if other != nil {
				return other
			}
		}
		if f.lines > before && said == nil {
			well()
		}
		if err != nil || !in.more() || len(batch) >= batchLines {
			settling.Stop() // while a reader is waited for, nothing is late
			f.tell(ctx, batch)
			if said == nil {
				settling.Reset(settledAfter)
			}
			batch = nil
		}
		switch {
		case errors.Is(err, io.EOF) && said != nil:
			f.to.start() // what was told before it is there to be read
			return said
		case errors.Is(err, io.EOF):
			well()
			f.ended = true
			if ended && a.passing() {
				f.tell(ctx, []*Line{f.missing(ResetRotated)})
			}
			f.to.settle()
			return nil
		case err != nil:
			return err
		}
	}
}

// errCut means that an answer ends within a line's time.
var errCut = errors.New("the answer was cut")

// notOwn is what is wrong with an answer that has a line which is not the container's own; nil:
// nothing, or what err says.
func notOwn(line rawLine, err error) error {
	switch words := line.words(); {
	case err != nil && !errors.Is(err, io.EOF), words == "":
		return nil
	case err != nil && isStampStart([]byte(words)):
		return errCut
	default:
		return &NodeError{words}
	}
}

// answer is an answer that is being read. It begins with lines that were told before, which are passed over.
type answer struct {
	known   LinePosition    // what was told before
	passed  LinePosition    // what of it has been passed over
	counted perSecondCounts // the same, line by line
	ended   bool            // the run has ended, so that nothing is written meanwhile
}

func (a *answer) passing() bool { return a.passed.Count < a.known.Count }

// take passes over a line that was told before, or counts one that is new and appends it to the
// batch. An error means that the answer does not begin with what was told before, and is read no
// further: errOther, or errRotated.
func (f *follower) take(a *answer, line rawLine, batch []*Line) ([]*Line, error) {
	passing := a.passing()
	switch {
	case passing && line.at.Unix() < a.known.Since: // told, or older, since the last that was told is counted
	case passing && !a.ended && f.mistrusts(line, a.passed, a.known):
		return nil, errOther
	case passing && a.known.Since > everything && line.at.After(f.latest):
		return nil, errRotated // or it is from before the clock jumped back, and from before what was told
	case passing && !line.at.After(f.latest):
		a.passed.Count++
		a.counted.add(line.at.Unix(), line.sum)
		if a.passed.Sum += line.sum; a.passed != a.known && !a.passing() {
			return nil, errRotated
		}
		if a.passed == a.known {
			f.mismatched = time.Time{}
			if f.imported {
				f.adopt(a.counted)
			}
		}
	case !f.skips(line):
		if passing { // a line that is new stands where those should be that were told
			f.counts = a.counted
			batch = append(batch, f.missing(ResetRotated))
			a.known = a.passed
		}
		batch = append(batch, f.count(line))
	}
	if f.newest != nil && (f.newest.is(line) || line.at.After(f.newest.at)) {
		f.newest = nil
	}
	return batch, nil
}

// errRotated means that lines are gone that were told before.
var errRotated = errors.New("the log was rotated")

// errOther means that an answer is perhaps that of another run.
var errOther = errors.New("the log is another one")

// mistrusts reports whether an answer that does not begin with what was told is asked for once
// more: a node tells the log of the next run as soon as that has begun, and the API server knows it
// a little later.
func (f *follower) mistrusts(line rawLine, passed, known LinePosition) bool {
	switch {
	case line.at.Unix() < known.Since:
		return false
	case !line.at.After(f.latest):
		if passed.Sum += line.sum; passed.Count+1 < known.Count || passed.Sum == known.Sum {
			return false
		}
	}
	if f.mismatched.IsZero() {
		f.mismatched = time.Now()
	}
	return time.Since(f.mismatched) < mismatchedWithin
}

// adopt takes what was counted of the lines that were told elsewhere.
func (f *follower) adopt(counted perSecondCounts) {
	counted.uncountedTo(f.after.Since - 1)
	f.counts, f.imported = counted, false
	f.latest = time.Unix(counted.seconds[len(counted.seconds)-1].at+1, -1)
}

// skips counts a line that comes before the first one that is told, and is false for all others.
func (f *follower) skips(line rawLine) bool {
	if f.skip == nil {
		return false
	}
	if f.skip.is(line) || line.at.After(f.skip.at) { // later: that first one is not there any more
		f.skip = nil
		return false
	}
	if line.at.Unix() > f.counts.horizon {
		f.count(line)
	}
	return true
}

// count counts a line, and returns it as it is told.
func (f *follower) count(raw rawLine) *Line {
	at := raw.at.Unix()
	f.counts.add(at, raw.sum)
	f.lines++
	if f.fresh && !f.counts.hasHorizon { // what was told before is not counted any more
		f.counts.uncountedTo(max(at, f.latest.Unix()))
	}
	f.last, f.fresh, f.counted = raw.at, false, true
	if raw.at.After(f.latest) {
		f.latest = raw.at
	}
	position, _ := f.counts.since(at)
	return &Line{Time: raw.at, Text: raw.text, Cut: raw.cut, After: position}
}

// resync says that lines may be missing, and has the next answer tell only what is written from
// then on, or all that is later than a position that cannot be found.
func (f *follower) resync(ctx context.Context, reason string) error {
	f.tell(ctx, []*Line{f.missing(reason)})
	if f.imported {
		f.restart()
		return errAnew
	}
	f.counts, f.fresh, f.skip, f.newest = perSecondCounts{}, true, nil, nil
	return errAnew
}

// tell tells lines, and that these were all that were there at the beginning, if so.
func (f *follower) tell(ctx context.Context, lines []*Line) {
	if len(lines) > 0 {
		f.to.tell(ctx, lines)
	}
	if f.found && f.newest == nil {
		f.to.settle()
	}
}
