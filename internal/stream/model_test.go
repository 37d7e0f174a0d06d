package stream

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// model is a topic as a plain slice that forgets nothing, and what the contract says of it.
type model struct {
	opts       Options
	history    []modelEvent
	evicted    int // how many events at the front of the history are no longer kept
	begun      int // where the history since the last Begin or Restart begins
	floor      uint64
	forgotten  uint64 // the end of the last gap that is not remembered
	watermark  uint64
	gaps       []gap
	generation int
}

type modelEvent struct {
	*item
	pos uint64
	tie bool // its position was reached before it came
	at  time.Time
}

func (m *model) begin(version uint64) {
	m.begun, m.evicted = len(m.history), len(m.history)
	m.floor, m.watermark, m.gaps, m.forgotten = version, version, nil, 0
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
		m.gaps = append(m.gaps, gap{m.watermark, version})
	}
	if len(m.gaps) > maxGaps {
		m.floor, m.forgotten = m.gaps[0].to, m.gaps[0].to
		m.gaps = m.gaps[1:]
		for m.evicted < len(m.history) && m.history[m.evicted].pos <= m.floor {
			m.evicted++
		}
	}
	m.watermark = version
}

func in(scope Scope, namespace string) bool {
	return scope.All() || slices.Contains(scope.Namespaces(), namespace)
}

// due reports whether who resumes after a version must be told an event.
func (e modelEvent) due(version uint64) bool { return e.pos > version || e.tie && e.pos == version }

// leapt reports whether a relist passed over what a client knows some of.
func (m *model) leapt(known Known) bool {
	return slices.ContainsFunc(m.gaps, func(g gap) bool {
		same := g.from == known.All && g.to == known.Some
		return known.Some > g.from && known.All < g.to && !same
	})
}

// resume is what Resume must say.
func (m *model) resume(known Known, scope Scope) error {
	version := known.All
	if version > m.watermark {
		return ErrAhead
	}
	if version < m.floor {
		return ErrExpired
	}
	for _, e := range m.history[m.begun:m.evicted] {
		if in(scope, e.namespace) && e.due(version) {
			return ErrExpired
		}
	}
	if m.leapt(known) {
		return ErrExpired
	}
	return nil
}

// follower is a cursor, and what it must read.
type follower struct {
	cursor     *Cursor[*item]
	scope      Scope
	next       int // in the model's history
	known      Known
	wary       bool // has not passed all that was known
	ahead      bool // began before all that was known
	ties       bool // events that share the version that it resumed after are due
	generation int
	position   uint64
}

// read compares one batch with the model. It reports false when the cursor has rightly come to its end.
func (f *follower) read(m *model, room int) (alive bool, err error) {
	var want error
	if f.generation != m.generation {
		want = ErrEpoch
	} else {
		if f.wary && (m.leapt(f.known) || f.known.All < m.forgotten) {
			want = ErrExpired
		}
		for n := f.next; n < m.evicted; n++ {
			if e := m.history[n]; f.expects(e) || f.ahead && in(f.scope, e.namespace) {
				want = ErrSlow
			}
		}
	}
	batch, position, got := f.cursor.Next(make([]*Event[*item], 0, room), nil)
	if !errors.Is(got, want) || got != nil && want == nil {
		return false, fmt.Errorf("Next failed with %v, not %v", got, want)
	}
	if want != nil {
		return false, nil
	}
	for _, e := range batch {
		for f.next < len(m.history) && !f.expects(m.history[f.next]) {
			f.next++
		}
		if f.next == len(m.history) {
			return false, fmt.Errorf("an event too many: %+v", e.Object)
		}
		if want := m.history[f.next]; e.Object != want.item || e.Pos != want.pos {
			return false, fmt.Errorf("%+v at %d was read, not %+v at %d", e.Object, e.Pos, want.item, want.pos)
		}
		f.next++
	}
	if len(batch) < room {
		for ; f.next < len(m.history); f.next++ {
			if f.expects(m.history[f.next]) {
				return false, fmt.Errorf("%+v was not read", m.history[f.next].item)
			}
		}
		if want := max(m.watermark, f.known.All); position != want {
			return false, fmt.Errorf("everything was read, but the position is %d, not %d", position, want)
		}
	}
	if position < f.position {
		return false, fmt.Errorf("the position went back from %d to %d", f.position, position)
	}
	f.position = position
	f.wary = f.wary && (position < f.known.Some || m.watermark < f.known.Some)
	for _, e := range m.history[f.next:] {
		if in(f.scope, e.namespace) && !e.due(position) {
			return false, fmt.Errorf("the position %d claims %+v at %d, which was not read", position, e.item, e.pos)
		}
	}
	return true, nil
}

func (f *follower) expects(e modelEvent) bool {
	return in(f.scope, e.namespace) && (e.pos > f.known.All || e.pos == f.known.All && e.tie && f.ties)
}
