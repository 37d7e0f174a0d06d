package stream

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestPositions(t *testing.T) {
	for _, test := range []struct {
		text  string
		known map[string]Known // nil: unreadable
	}{
		{"e1.42", map[string]Known{"": UpTo(42)}},
		{"e1", map[string]Known{}},
		{"e1.0", map[string]Known{}}, // a single watch whose snapshot was not complete
		{"e1.pods-42.jobs2-7", map[string]Known{"pods": UpTo(42), "jobs2": UpTo(7)}},
		{"e1.42-50", map[string]Known{"": {42, 50}}}, // cut off in a burst
		{"e1.pods-42-50.jobs2-7", map[string]Known{"pods": {42, 50}, "jobs2": UpTo(7)}},
		{"e1.18446744073709551615", map[string]Known{"": UpTo(1<<64 - 1)}},
		{"e1.18446744073709551616", nil},
		{"", nil},
		{".42", nil},
		{"e1.", nil},
		{"e1.42.", nil},
		{"E1.42", nil},
		{"e-1.42", nil},
		{"e1.042", nil},
		{"e1.+42", nil},
		{"e1.-42", nil},
		{"e1.4 2", nil},
		{"e1.42-", nil},
		{"e1.42-42", nil}, // as good as 42
		{"e1.42-7", nil},
		{"e1.0-7", nil},
		{"e1.42-50-60", nil},
		{"e1.pods-0", nil}, // left out instead
		{"e1.pods-", nil},
		{"e1.pods", nil},
		{"e1.pods-7-6", nil},
		{"e1.pods-7-8-9", nil},
		{"e1.Pods-7", nil},
		{"e1.2pods-7", nil},
		{"e1.pods-7.pods-8", nil},
		{"e1.42.pods-7", nil},
		{"e1.pods-7.42", nil},
		{"e1.pods-7\n", nil},
		{"e1." + strings.Repeat("a", maxPosition), nil},
	} {
		p, err := ParsePosition(test.text)
		switch {
		case test.known == nil && err == nil:
			t.Errorf("%q was read as %v", test.text, p)
		case test.known != nil && err != nil:
			t.Errorf("%q: %v", test.text, err)
		case test.known != nil && (p.Epoch != "e1" || !maps.Equal(p.Known, test.known)):
			t.Errorf("%q was read as %v", test.text, p)
		}
	}
}

func TestWatchWithoutVersionIsLeftOutOfIDs(t *testing.T) {
	for want, versions := range map[string][]Known{
		"e": {{}, {}}, "e.a-5": {UpTo(5), {}}, "e.b-6": {{}, UpTo(6)}, "e.a-5.b-6": {UpTo(5), UpTo(6)}, "e.a-5-9": {{5, 9}, {0, 9}},
	} {
		if got := string(AppendID(nil, "e", []string{"a", "b"}, versions)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if got := string(AppendID([]byte("id: "), "e", []string{""}, []Known{{0, 9}})); got != "id: e.0" {
		t.Errorf("%q", got)
	}
}

func FuzzParsePosition(f *testing.F) {
	for _, s := range []string{"abc.42", "abc", "abc.0", "abc.pods-42.jobs-7", "a.b-1.c-2.d-3", "A.1", "a..", "a.1.b-2", "a.b-01", "a.1-2", "a.b-1-2.c-3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePosition(s)
		if err != nil {
			if err != ErrPosition {
				t.Fatalf("the error is %v", err)
			}
			return
		}
		// What was read is what AppendID writes, in some order of the watches.
		names := slices.Sorted(maps.Keys(p.Known))
		if strings.HasSuffix(s, ".0") {
			names = []string{""}
		}
		known := make([]Known, len(names))
		for i, name := range names {
			known[i] = p.Known[name]
		}
		written := string(AppendID(nil, p.Epoch, names, known))
		if len(names) < 2 && written != s {
			t.Fatalf("%q was written as %q", s, written)
		}
		again, err := ParsePosition(written)
		if err != nil || again.Epoch != p.Epoch || !maps.Equal(again.Known, p.Known) {
			t.Fatalf("%q was written as %q, and read as %v, %v", s, written, again, err)
		}
	})
}
