// Package stream is the broadcaster: what happens to the objects of one kind goes into a Topic once, and any number
// of Cursors read it from there, each at its own pace.
//
// A topic is a bounded ring. Live delivery and replay are the same read, since a cursor is no more than a place in
// the ring; so there is no queue per reader that could overflow, and no seam between replay and live.
//
// What it promises: Append never waits for a reader, and costs the same whether there are none or ten thousand. A
// cursor is given every event of its namespaces after its place, in order, or an error that says that it cannot be
// (ErrSlow, ErrExpired, ErrAhead, ErrEpoch); there is no third outcome. Who reads one namespace is neither woken
// nor pushed off the ring by what happens in the others.
//
// What it refuses: to know what an object is, beyond Object.
package stream

import "errors"

var (
	// ErrExpired means that events after the position are no longer, or never were, in the ring.
	ErrExpired = errors.New("stream: the position is older than what is kept")
	// ErrAhead means that the position lies after all that the topic has seen.
	ErrAhead = errors.New("stream: the position is ahead of what has been seen")
	// ErrSlow means that the ring overtook a cursor.
	ErrSlow = errors.New("stream: the reader was overtaken")
	// ErrEpoch means that versions went back, so positions from before mean nothing.
	ErrEpoch = errors.New("stream: the position belongs to another history")
)

// Object is what a topic carries. Objects are immutable.
type Object[O any] interface {
	comparable
	GetNamespace() string
	// GetName tells the object from the others of its namespace.
	GetName() string
	// Size is what the object occupies, in bytes.
	Size() int
	// WithVersion is the object with another resourceVersion.
	WithVersion(version uint64) O
}
