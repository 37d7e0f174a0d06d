// Package stream is the broadcaster. Each change of the objects of one kind goes into a Topic once; any number of
// Cursors read it from there, each at its own pace.
//
// A topic is a bounded ring, and a cursor is no more than a place in it. So live delivery and replay are the same
// read: there is no queue per reader that could overflow, and no seam between replay and live.
//
// What it promises: Append never waits for a reader, and costs the same whether none or ten thousand of them wait for
// other events. A cursor returns every event of its namespaces after its place, in order, or an error (ErrSlow,
// ErrExpired, ErrAhead, ErrEpoch). There is no third outcome. A reader of one namespace is neither woken nor pushed
// off the ring by what happens in the others.
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
	// ErrEpoch means that the versions of the API server went back, as after a restore of etcd: earlier positions
	// mean nothing.
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
