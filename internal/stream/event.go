package stream

import (
	"sync/atomic"
	"time"
	"weak"
)

// Type is what happened to an object.
type Type uint8

// What can happen to an object.
const (
	Added Type = iota
	Modified
	Deleted
)

// String is the event's name on the wire.
func (t Type) String() string { return [...]string{"added", "modified", "deleted"}[t] }

// Change is one change of one object.
type Change[O Object[O]] struct {
	Type Type
	// Object is the state after the change. For a deletion it is the last state, with the version of the deletion.
	Object O
	// Old is the state before the change; the zero value if there was none, or if it is not known.
	Old O
}

// Event is a change in its place in a topic. Events are shared by all readers, and immutable.
type Event[O Object[O]] struct {
	Change[O]
	// Pos orders the event: a client that resumes after X is told it if Pos > X, or if it shares X with an earlier
	// event.
	Pos uint64
	// ID is the version up to which a client that has been told this event has been told everything. It lags
	// behind Pos within the burst of a relist, and for a deletion, which may share its revision with others: a client
	// which is cut off there gets them again.
	ID uint64
	// At is when the event was appended.
	At time.Time

	seq        uint64 // its number in the ring; 0 if it was never in one
	relistDiff bool   // part of the difference that a relist found
	from       uint64 // then the version from before the relist
	tie        bool   // shares its version with an earlier event; see Topic.Append
	part       int    // its revision's part; see Revision
	left       atomic.Pointer[weak.Pointer[O]]
}

// Revision is the event's version, up to this event. It is zero if the event was never in a ring.
func (e *Event[O]) Revision() Revision { return Revision{Version: e.Pos, Part: e.part} }

// EventAt is a change that happened at a version, in no topic yet.
func EventAt[O Object[O]](version uint64, change Change[O]) *Event[O] {
	e := &Event[O]{Change: change, Pos: version, ID: version}
	if change.Type == Deleted {
		e.ID--
	}
	return e
}

// FromRelist reports whether the event is part of the difference that a relist found, and the
// version from before it. That is not less than of any event before; ID may be, behind a deletion.
func (e *Event[O]) FromRelist() (before uint64, is bool) { return e.from, e.relistDiff }

// floor is the lowest position with which a client is not told the event again.
func (e *Event[O]) floor() uint64 {
	if e.tie {
		return e.Pos + 1
	}
	return e.Pos
}

// For is the event as it is told to a client that sees only what matches. An object that begins to match is added.
// One that ceases to match is deleted: the client gets it as it last matched, with the version of the event. The API
// server does the same (apiserver, storage/cacher: convertToWatchEvent). A nil match means that everything matches.
// If tell is false, there is nothing to be told.
func (e *Event[O]) For(match func(O) bool) (kind Type, object O, tell bool) {
	if match == nil {
		return e.Type, e.Object, true
	}
	var none O
	switch e.Type {
	case Deleted:
		last := e.Old
		if last == none {
			last = e.Object
		}
		return Deleted, e.Object, match(last)
	case Added:
		return Added, e.Object, match(e.Object)
	}
	if e.Old == none {
		// The event is from a backlog, which does not say what was before. It is told as if the
		// object had matched: a client upserts, and ignores the deletion of what it does not have.
		if match(e.Object) {
			return Modified, e.Object, true
		}
		return Deleted, e.Object, true
	}
	was, is := match(e.Old), match(e.Object)
	switch {
	case was && is:
		return Modified, e.Object, true
	case is:
		return Added, e.Object, true
	case was:
		return Deleted, e.lastMatch(), true
	}
	return Modified, e.Object, false
}

// lastMatch is the state before the event with the version of the event. It is made once for all readers that need it
// at about the same time. The event refers to it weakly, since the ring does not count it among the bytes that it
// keeps.
func (e *Event[O]) lastMatch() O {
	if made := e.left.Load(); made != nil {
		if left := made.Value(); left != nil {
			return *left
		}
	}
	left := e.Old.WithVersion(e.Pos)
	made := weak.Make(&left)
	e.left.Store(&made)
	return left
}
