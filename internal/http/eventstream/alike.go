package eventstream

// Alike is a Source that may tell several clients the same. What is next is then read, framed and encoded once for all of them: see cohort.
type Alike interface {
	Source
	// Likeness names what is told from here on, as a value that can be compared. Sources with the same likeness at the same place tell
	// the same. It is nil as long as this source has something to tell that is for its own client alone.
	Likeness() any
	// Place is where the source stands. It never changes, and keeps no more alive than the source does.
	Place() Place
	// Resume goes to a place where a source with the same likeness has stood. The next Read goes on from there.
	Resume(at Place)
	// Rest says that until Resume, another source reads for this one's client: nothing is to wake the session, nor to be kept.
	Rest()
	// Fork returns a source at the same place that belongs to no client, and is not woken before its first Read. It counts for nobody,
	// and is used no more once all those are closed for which it reads, except that it is closed itself.
	Fork() Alike
	// For says for which user a fork reads next: any of those to whom it is told.
	For(user string)
}

// Place is where sources that are alike may stand.
type Place interface {
	// Compare says whether the place is before another (-1), the same (0), or behind it (1); it is not ok if that cannot be said. What is
	// told next is the same from two places that are the same, and from those between them.
	Compare(other Place) (order int, ok bool)
}
