package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// model is a topic as a plain slice that forgets nothing, with what the contract says of such a history.
type model struct {
	opts       Options
	history    []modelEvent
	evicted    int // how many events at the front of the history are no longer kept
	begun      int // where the history after the last Begin or Restart starts
	floor      uint64
	forgotten  uint64 // the end of the last gap that is not remembered
	watermark  uint64
	open       bool // the newest event is a deletion, to whose revision there may be more
	gaps       []gap
	generation int
}

type modelEvent struct {
	*item
	pos        uint64
	tie        bool // its position was reached before it came
	relistDiff bool // it is part of the difference that a relist found
	at         time.Time
}

func (m *model) begin(version uint64) {
	m.begun, m.evicted = len(m.history), len(m.history)
	m.floor, m.watermark, m.open, m.gaps, m.forgotten = version, version, false, nil, 0
}

func (m *model) add(i *item, version uint64) {
	m.history = append(m.history, modelEvent{item: i, pos: version, tie: version == m.watermark, at: time.Now()})
}

func (m *model) evict() {
	for kept := m.history[m.evicted:]; len(kept) > 0; kept = m.history[m.evicted:] {
		size := int64(0)
		for _, e := range kept {
			size += int64(e.Size())
		}
		tooMany := len(kept) > 1 && (len(kept) > m.opts.Events || size > m.opts.Bytes)
		if !tooMany && time.Since(kept[0].at) <= m.opts.Age {
			return
		}
		m.evicted++
	}
}

func (m *model) relisted(version uint64) {
	if version > m.watermark {
		m.gaps = append(m.gaps, gap{m.watermark, version, Known{m.complete(), version}})
	}
	if len(m.gaps) > maxGaps {
		m.floor, m.forgotten = m.gaps[0].to, m.gaps[0].to
		m.gaps = m.gaps[1:]
		for m.evicted < len(m.history) && m.history[m.evicted].pos <= m.floor {
			m.evicted++
		}
	}
	m.watermark, m.open = version, false
}

// complete is the version up to which a client that has read everything has been told all there is.
func (m *model) complete() uint64 {
	if m.open {
		return m.watermark - 1
	}
	return m.watermark
}

func in(namespaces NamespaceSet, namespace string) bool {
	return namespaces.All() || slices.Contains(namespaces.Namespaces(), namespace)
}

// due reports whether a client that resumes after a version must be told an event.
func (e modelEvent) due(version uint64) bool { return e.pos > version || e.tie && e.pos == version }

// passedByRelist reports whether a relist passed over a stretch of which the client knows some.
func (m *model) passedByRelist(known Known) bool {
	return slices.ContainsFunc(m.gaps, func(g gap) bool {
		return known.Some > g.from && known.All < g.to && known != g.burst
	})
}

// resume is what Resume must return.
func (m *model) resume(known Known, namespaces NamespaceSet) error {
	version := known.All
	if version > m.watermark {
		return ErrAhead
	}
	if version < m.floor {
		return ErrExpired
	}
	for _, e := range m.history[m.begun:m.evicted] {
		if in(namespaces, e.namespace) && e.due(version) {
			return ErrExpired
		}
	}
	if m.passedByRelist(known) {
		return ErrExpired
	}
	return nil
}

// follower is a cursor, and what it must read.
type follower struct {
	cursor       *Cursor[*item]
	namespaces   NamespaceSet
	next         int    // in the model's history
	begun        int    // where its backlog begins
	from         int    // what comes before this it never reads
	start        int    // what comes before this is read from a backlog
	after        uint64 // the backlog begins behind the first event of this version
	known        Known
	sole         int   // what was alone in its version when it was passed
	knew         Known // what its client knew before its backlog
	deduplicates bool  // has not yet passed all that its client knew
	ahead        bool  // began before all that its client knew
	ties         bool  // events that share the version after which it resumed are due
	generation   int
	position     uint64
}

// read compares one batch with the model, and steps back now and then. It reports false when the cursor has rightly
// failed.
func (f *follower) read(m *model, room int, random *rand.Rand) (alive bool, err error) {
	want := f.err(m)
	batch, position, got := f.cursor.Next(make([]*Event[*item], 0, room), nil)
	if !errors.Is(got, want) || got != nil && want == nil {
		return false, fmt.Errorf("Next failed with %v, not %v", got, want)
	}
	if want != nil {
		return false, nil
	}
	places := make([]int, len(batch))
	for i, e := range batch {
		f.pass(m)
		if f.next == len(m.history) {
			return false, fmt.Errorf("an event too many: %+v", e.Object)
		}
		if want := m.history[f.next]; e.Object != want.item || e.Pos != want.pos {
			return false, fmt.Errorf("%+v at %d was read, not %+v at %d", e.Object, e.Pos, want.item, want.pos)
		}
		places[i] = f.next
		f.next++
	}
	if len(batch) < room {
		f.pass(m)
	}
	if len(batch) > 0 && random.IntN(4) == 0 {
		untold := random.IntN(len(batch))
		f.cursor.Back(batch[untold:])
		f.next, f.position = places[untold], 0
		return true, nil
	}
	if len(batch) < room {
		if f.next < len(m.history) {
			return false, fmt.Errorf("%+v was not read", m.history[f.next].item)
		}
		if want := max(m.complete(), f.known.All); position != want {
			return false, fmt.Errorf("everything was read, but the position is %d, not %d", position, want)
		}
	}
	if position < f.position {
		return false, fmt.Errorf("the position went back from %d to %d", f.position, position)
	}
	f.position = position
	if f.next >= f.start {
		f.deduplicates = f.deduplicates && (position < f.known.Some || m.watermark < f.known.Some)
	}
	for n := f.next; n < len(m.history); n++ {
		e := m.history[n]
		claimed := !e.due(position)
		if n < f.start {
			claimed = f.expects(m, n) && (e.pos < position || e.pos == position && f.first(m, n))
		}
		if claimed && in(f.namespaces, e.namespace) {
			return false, fmt.Errorf("the position %d claims %+v at %d, which was not read", position, e.item, e.pos)
		}
	}
	return true, nil
}

// err is the error with which the next read must fail.
func (f *follower) err(m *model) (want error) {
	switch {
	case f.generation != m.generation:
		return ErrEpoch
	case f.deduplicates && (m.passedByRelist(f.known) || f.known.All < m.forgotten):
		want = ErrExpired
	}
	for n := max(f.next, f.start); n < m.evicted; n++ {
		if f.expects(m, n) || f.ahead && in(f.namespaces, m.history[n].namespace) {
			want = ErrSlow
		}
	}
	return want
}

// pass moves on to the next event that must be read.
func (f *follower) pass(m *model) {
	for f.next < len(m.history) && !f.expects(m, f.next) {
		f.next++
	}
}

func (f *follower) expects(m *model, n int) bool {
	e := m.history[n]
	switch {
	case !in(f.namespaces, e.namespace):
		return false
	case n < f.start:
		sole := f.knew.isNext(e.pos) && !f.takenBack(m, n) && f.first(m, n) && (n+1 == f.start || m.history[n+1].pos > e.pos)
		return e.pos > f.after && !sole || e.pos == f.after && !f.first(m, n)
	case f.knew.isNext(e.pos) && !f.takenBack(m, n) && !e.tie && !e.relistDiff && (n == f.sole || n+1 == len(m.history) || m.history[n+1].pos > e.pos):
		f.sole = n // the client was told something of this version, and this is all there is
		return false
	}
	return e.pos > f.known.All || e.pos == f.known.All && e.tie && f.ties
}

// takenBack reports whether, before an event, some of the very version that the client knows all of is told again.
func (f *follower) takenBack(m *model, n int) bool {
	for n--; n >= f.from && m.history[n].pos >= f.knew.All; n-- {
		e := m.history[n]
		if e.pos == f.knew.All && in(f.namespaces, e.namespace) && (n < f.start && !f.first(m, n) || n >= f.start && e.tie) {
			return true
		}
	}
	return false
}

// first reports whether an event is the first of its position in the backlog.
func (f *follower) first(m *model, n int) bool {
	return n == f.begun || m.history[n-1].pos < m.history[n].pos
}
