package eventstream

import "github.com/kubecast/kubecast/internal/stream"

// Shareable is a Source that may tell several clients the same. What is next is then read, framed
// and encoded once for all of them, by a broadcast group.
type Shareable interface {
	Source
	// ShareKey names what is told from here on, as a value that can be compared. Two sources with
	// the same key at the same place tell the same. It is nil while this source has something to
	// tell that is for its own client alone.
	ShareKey() any
	// Place is where the source stands. It never changes, and keeps no more alive than the source does.
	Place() Place
	// Seek goes to a place where a source with the same key has stood, and returns the client's
	// position then. The next Read goes on from there.
	Seek(to Place) stream.Claim
	// Suspend says that until Seek, another source reads for this one's client. Meanwhile nothing
	// wakes the session, and nothing is kept for it.
	Suspend()
	// Clone returns a source at the same place that belongs to no client. It is woken by nothing
	// before its first Read, and counts against no quota. It is used no longer than the sources for
	// which it reads, but has to be closed itself.
	Clone() Shareable
	// ChargeTo says which user pays for what a clone reads next: any of those to whom it is told.
	ChargeTo(user string)
}

// Place is where sources with the same key may stand.
type Place interface {
	// Compare says whether the place is before another (-1), the same (0), or behind it (1). It is
	// not ok if that cannot be said. From two places that are the same, and from those between
	// them, the same is told next.
	Compare(other Place) (order int, ok bool)
}
