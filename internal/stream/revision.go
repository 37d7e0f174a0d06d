package stream

import "cmp"

// Revision is a version, as far as it has come: several events may share one, and nothing says
// which of them is the last. States that were seen at one version, with an event of it in between,
// differ in Part.
//
// The parts are counted from 1, which also stands for a list at the version, and for a bookmark. Whoever sees all
// events of a version counts alike.
type Revision struct {
	Version uint64
	Part    int
}

// Compare says whether a revision is before another (-1), the same (0), or after it (1).
func (r Revision) Compare(other Revision) int {
	return cmp.Or(cmp.Compare(r.Version, other.Version), cmp.Compare(r.Part, other.Part))
}

// Later is the later one of two.
func (r Revision) Later(other Revision) Revision {
	if r.Compare(other) < 0 {
		return other
	}
	return r
}

// moveOn moves the watermark to a version at which there is something new, or is none if something is not.
func (t *Topic[O]) moveOn(version uint64, something bool) {
	switch {
	case version > t.watermark:
		t.part = 1
	case something:
		t.part++
	}
	t.watermark = version
}
