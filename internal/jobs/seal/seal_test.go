package seal

import (
	"math"
	"testing"
)

// A row has one text at all replicas, or clients could not tell that they know it; a position never
// has the same, or two of them would tell whether something happened between. Both have the same
// length whatever their number.
func TestRowsHaveOneTextAndPositionsNeverTheSame(t *testing.T) {
	key := NewKey()
	here, there := New(key, "c", "jobs.batch"), New(key, "c", "jobs.batch")
	seen := map[string]bool{}
	for _, seq := range []uint64{0, 1, 2, 10, 1 << 40, math.MaxUint64} {
		row := here.Row(seq)
		if row != there.Row(seq) || len(row) != RowLength || seen[row] {
			t.Errorf("the row %d is %q, and %q", seq, row, there.Row(seq))
		}
		seen[row] = true
		for range 3 {
			position := here.Position(seq)
			if seen[position] || len(position) != PositionLength {
				t.Errorf("a position at %d is %q", seq, position)
			}
			seen[position] = true
			for _, text := range []string{row, position} {
				if got, ok := there.Open(text); !ok || got != seq {
					t.Errorf("%q of %d is read as %d, %t", text, seq, got, ok)
				}
			}
		}
	}
}

// Who has no key can neither make a number nor take one to another log, nor write one in another
// way, nor cut or lengthen it.
func TestForgedNumbersAreRefused(t *testing.T) {
	key := NewKey()
	n := New(key, "c", "jobs.batch")
	for _, text := range []string{n.Row(7), n.Position(7)} {
		for name, other := range map[string]*Numbers{
			"another key": New(NewKey(), "c", "jobs.batch"), "another cluster": New(key, "d", "jobs.batch"), "another kind": New(key, "c", "pods"),
			"names that touch": New(key, "cj", "obs.batch"),
		} {
			if seq, ok := other.Open(text); ok {
				t.Errorf("%s opens it as %d", name, seq)
			}
		}
		for i := range text {
			for _, c := range []byte("0123456789abcdefghijklmnopqrstuvwA-=") {
				if forged := text[:i] + string(c) + text[i+1:]; forged != text {
					if seq, ok := n.Open(forged); ok {
						t.Errorf("%q, which was %q, is read as %d", forged, text, seq)
					}
				}
			}
			if _, ok := n.Open(text[:i]); ok {
				t.Errorf("%q is read", text[:i])
			}
		}
		for _, forged := range []string{"", "0", "7", text + "0", text + text} {
			if _, ok := n.Open(forged); ok {
				t.Errorf("%q is read", forged)
			}
		}
	}
}

// Whatever a stranger writes is refused, unless it was made here: then it is the only spelling.
func FuzzOpen(f *testing.F) {
	n := New([KeySize]byte{}, "c", "jobs.batch")
	f.Add(n.Row(5))
	f.Add(n.Position(5))
	f.Add("0")
	f.Fuzz(func(t *testing.T, text string) {
		seq, ok := n.Open(text)
		if ok && len(text) == RowLength && n.Row(seq) != text {
			t.Errorf("%q is read as %d, which is %q", text, seq, n.Row(seq))
		}
		if ok && len(text) != RowLength && len(text) != PositionLength {
			t.Errorf("%q is read as %d", text, seq)
		}
	})
}

func BenchmarkRow(b *testing.B) {
	n := New(NewKey(), "c", "jobs.batch")
	b.ReportAllocs()
	for b.Loop() {
		n.Row(4711)
	}
}

func BenchmarkPosition(b *testing.B) {
	n := New(NewKey(), "c", "jobs.batch")
	b.ReportAllocs()
	for b.Loop() {
		n.Position(4711)
	}
}
