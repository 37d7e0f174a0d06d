package logs

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// firstTail is how many lines a feed begins with.
	firstTail = 1000
	// What was there counts as read so long after the answer began, since Kubernetes does not mark where that ends, or so long
	// after it was asked for: what has written nothing has no answer.
	settled      = 300 * time.Millisecond
	settledQuiet = 2 * time.Second
	// What broke is resumed after a time from the first to the last.
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
	// clockMargin is how far a clock may jump back behind what is counted, and nothing is lost: what a log is not asked for is not
	// answered either, and nothing would tell.
	clockMargin = 10 * time.Minute
	// batchLines is how many lines are appended in one step at most.
	batchLines = 256
)

// feed follows one run for all its readers.
type feed struct {
	run    Run
	source Source
	bound  int // of the ring, in bytes
	told   func(lines []Line)

	// Of the goroutine that follows.
	tally  tally
	last   time.Time // of the last line
	latest time.Time // the latest of all lines
	lines  int
	fresh  bool // the next answer is read as if nothing had been told, but for what is there

	mu      sync.Mutex
	ring    []Line
	first   uint64 // number of the ring's first line
	next    uint64 // number of the line that comes next
	bytes   int
	started bool  // what was there has been read
	err     error // io.EOF or ErrGone once no more will come
	waiting map[*Cursor]Waiter
	readers int
	idle    *time.Timer // ends it; nil while there are readers
	cancel  context.CancelFunc
}

// follow reads the run to its end, however often the connection breaks. It returns when all was told, or the context has
// ended.
func (f *feed) follow(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		ended, err := f.source.Ended(ctx, f.run) // before it is read, so that nothing is written behind what is read
		before := f.lines
		if err == nil {
			err = f.read(ctx, ended)
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrGone):
			f.finish(ErrGone)
			return
		case ended && err == nil:
			f.finish(io.EOF)
			return
		}
		if f.lines > before {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, lastPause)
	}
}

// errAnew means that it cannot be told what of an answer is new.
var errAnew = errors.New("what was told is not in the log")

// read reads one answer to its end, and tells what is new in it. It returns nil if the answer is complete.
func (f *feed) read(ctx context.Context, ended bool) error {
	since, tail, known := time.Time{}, firstTail, Position{}
	switch {
	case f.fresh:
		tail = 0
	case f.lines > 0:
		position, ok := f.tally.all(f.last.Unix())
		if !ok {
			return f.anew(ResetClock)
		}
		if tail, known = -1, position; position.Since > everything {
			since = time.Unix(position.Since, 0).Add(-clockMargin)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	settling := time.AfterFunc(settledQuiet, f.settle)
	defer settling.Stop()
	body, err := f.source.Read(ctx, f.run, since, tail)
	if err != nil {
		return err
	}
	defer body.Close()
	settling.Reset(settled)
	in := newLineReader(body)
	if in.last = f.last; f.lines == 0 {
		in.last = time.Unix(0, 0)
	}
	passed := Position{Since: known.Since}
	var counted tally // what is passed over
	var batch []Line
	for {
		line, any, err := in.next()
		// A line without an end is one only if nothing can follow.
		whole := err == nil || any && ended && errors.Is(err, io.EOF)
		switch {
		case !whole:
		case passed.Count < known.Count && line.at.Unix() < known.Since: // told, or older, since the last that was told is counted
		case passed.Count < known.Count && known.Since > everything && line.at.After(f.latest):
			return f.anew(ResetRotated) // or it is from before the clock jumped back, and from before what was told
		case passed.Count < known.Count && !line.at.After(f.latest):
			passed.Count++
			counted.add(line.at.Unix(), line.sum)
			if passed.Sum += line.sum; passed == known || passed.Count < known.Count {
				break
			}
			return f.anew(ResetRotated)
		default:
			if passed.Count < known.Count { // a line that is new stands where those should be that were told
				f.tally = counted
				batch = append(batch, Line{Time: line.at, Reset: ResetRotated, After: passed})
				known = passed
			}
			batch = append(batch, f.count(line, tail))
		}
		if err != nil || !in.more() || len(batch) >= batchLines {
			f.tell(batch)
			batch = nil
		}
		switch {
		case errors.Is(err, io.EOF) && passed.Count < known.Count && ended:
			f.tell([]Line{{Time: f.last, Reset: ResetRotated, After: known}})
			f.settle()
			return nil
		case errors.Is(err, io.EOF):
			if !ended { // or it has ended just now, which cannot be told apart
				f.interrupted()
			}
			f.settle()
			return nil
		case err != nil:
			f.interrupted()
			return err
		}
	}
}

// interrupted notes that an answer broke off. If that was before all was read that was there at first, there may be more lines of the
// first second, before those that were told.
func (f *feed) interrupted() {
	f.mu.Lock()
	settled := f.started
	f.mu.Unlock()
	if !settled && !f.tally.anyAt && len(f.tally.seconds) > 0 {
		f.tally.blindTo(f.tally.seconds[0].at)
	}
}

// count counts a line, and returns it as it is told.
func (f *feed) count(raw rawLine, tail int) Line {
	at := raw.at.Unix()
	f.tally.add(at, raw.sum)
	f.lines++
	switch {
	case f.tally.anyAt:
	case tail == 0: // what was told before is not counted any more
		f.tally.blindTo(max(at, f.latest.Unix()))
	case f.lines == tail: // there may be more lines of the first second, before those that were asked for
		f.tally.blindTo(f.tally.seconds[0].at)
	}
	f.last, f.fresh = raw.at, false
	if raw.at.After(f.latest) {
		f.latest = raw.at
	}
	position, _ := f.tally.since(at)
	return Line{Time: raw.at, Text: raw.text, Cut: raw.cut, After: position}
}

// anew says that lines may be missing, and has the next answer tell only what is written from then on.
func (f *feed) anew(reason string) error {
	f.tell([]Line{{Time: f.last, Reset: reason, After: Position{Since: f.last.Unix()}}})
	f.tally, f.fresh = tally{}, true
	return errAnew
}

// tell appends lines to the ring, and wakes the readers.
func (f *feed) tell(lines []Line) {
	if len(lines) == 0 {
		return
	}
	f.told(lines)
	f.mu.Lock()
	for i := range lines {
		f.ring = append(f.ring, lines[i])
		f.bytes += lines[i].size()
		f.next++
	}
	evicted := 0
	for f.bytes > f.bound && evicted < len(f.ring)-1 {
		f.bytes -= f.ring[evicted].size()
		f.ring[evicted] = Line{}
		evicted++
	}
	f.ring = f.ring[evicted:]
	f.first += uint64(evicted)
	woken := f.wake()
	f.mu.Unlock()
	wakeAll(woken)
}

// settle says that what was there has been read.
func (f *feed) settle() {
	f.mu.Lock()
	f.started = true
	woken := f.wake()
	f.mu.Unlock()
	wakeAll(woken)
}

// finish says that no more will come, and why.
func (f *feed) finish(err error) {
	f.mu.Lock()
	f.started, f.err = true, err
	woken := f.wake()
	f.mu.Unlock()
	wakeAll(woken)
}

// wake takes those who wait. The lock is held; they are woken when it is not.
func (f *feed) wake() (woken []Waiter) {
	for c, w := range f.waiting {
		woken = append(woken, w)
		delete(f.waiting, c)
	}
	return woken
}

func wakeAll(woken []Waiter) {
	for _, w := range woken {
		w.Wake()
	}
}
