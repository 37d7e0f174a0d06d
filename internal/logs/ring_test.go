package logs

import "testing"

// Lines may be missing twice within a second, at the same position. A reader that was told the
// first of these places must not go on behind the second: what lies between them would be lost in
// silence.
func TestPlaceWhereLinesAreMissingIsNoPlaceInARing(t *testing.T) {
	missing := func() *Line { return &Line{Reset: ResetRotated, After: LinePosition{Since: 5}} }
	f := &feed{ring: []*Line{missing(), {Text: "between", After: LinePosition{5, 1, 7}}, missing(), {Text: "behind", After: LinePosition{5, 2, 9}}}, first: 10, next: 14}
	if next, ok := f.after(LinePosition{Since: 5}); ok {
		t.Errorf("a reader that may not have been told of line 11 goes on at %d", next)
	}
	r := Reader{feed: f}
	if r.join(missing()); r.placed {
		t.Errorf("a reader that comes from behind goes on at %d", r.next)
	}
	if r.join(f.ring[1]); !r.placed || r.next != 12 {
		t.Errorf("behind line 11 comes %d", r.next)
	}
}
