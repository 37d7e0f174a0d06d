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
		known map[string]Claim // nil: unreadable
	}{
		{"e1.42", map[string]Claim{"": {UpTo(42), "", ""}}},
		{"e1", map[string]Claim{}},
		{"e1.0", map[string]Claim{}}, // a single watch whose snapshot was not complete
		{"e1.pods-42.jobs2-7", map[string]Claim{"pods": {UpTo(42), "", ""}, "jobs2": {UpTo(7), "", ""}}},
		{"e1.42-50", map[string]Claim{"": {Known{42, 50}, "", ""}}}, // cut off in a burst
		{"e1.pods-42-50.jobs2-7", map[string]Claim{"pods": {Known{42, 50}, "", ""}, "jobs2": {UpTo(7), "", ""}}},
		{"e1.18446744073709551615", map[string]Claim{"": {UpTo(1<<64 - 1), "", ""}}},
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
		{"e1.42-s1a", map[string]Claim{"": {UpTo(42), "s1a", ""}}}, // narrowed
		{"e1.42-50-s1a", map[string]Claim{"": {Known{42, 50}, "s1a", ""}}},
		{"e1.pods-42-s1a.jobs2-7", map[string]Claim{"pods": {UpTo(42), "s1a", ""}, "jobs2": {UpTo(7), "", ""}}},
		{"e1.0-s1a", nil},
		{"e1.s1a", nil},
		{"e1.42-s1a-s1a", nil},
		{"e1.42-s1a-50", nil},
		{"e1.42-S1a", nil},
		{"e1.pods-s1a", nil},
		{"e1.42-50-60", nil},
		{"e1.pods-0", nil}, // such a watch is left out instead
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
		{"e1.l-p0a-9", map[string]Claim{"l": {Own: "p0a-9"}}}, // in a form of the source's own
		{"e1.l-p7.pods-42", map[string]Claim{"l": {Own: "p7"}, "pods": {UpTo(42), "", ""}}},
		{"e1.l-p", nil},
		{"e1.l-pA", nil},
		{"e1." + strings.Repeat("a", maxPosition), nil},
	} {
		p, err := ParsePosition(test.text)
		switch {
		case test.known == nil && err == nil:
			t.Errorf("%q was read as %v", test.text, p)
		case test.known != nil && err != nil:
			t.Errorf("%q: %v", test.text, err)
		case test.known != nil && (p.Epoch != "e1" || !maps.Equal(p.Claims, test.known)):
			t.Errorf("%q was read as %v", test.text, p)
		}
	}
}

func TestWatchWithoutVersionIsLeftOutOfIDs(t *testing.T) {
	at := func(all, some uint64) Claim { return Claim{Known: Known{all, some}} }
	for want, versions := range map[string][]Claim{
		"e": {{}, {}}, "e.a-5": {at(5, 5), {}}, "e.a-5.b-6": {at(5, 5), at(6, 6)}, "e.a-5-9": {at(5, 9), at(0, 9)},
		"e.a-5-9-s1.b-6-s2": {{Known{5, 9}, "s1", ""}, {UpTo(6), "s2", ""}}, "e.b-6": {{Known{}, "s1", ""}, at(6, 6)},
	} {
		if got := string(AppendID(nil, "e", []string{"a", "b"}, versions)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if got := string(AppendID([]byte("id: "), "e", []string{""}, []Claim{{Known{0, 9}, "s1", ""}})); got != "id: e.0" {
		t.Errorf("%q", got)
	}
}

func FuzzParsePosition(f *testing.F) {
	for _, s := range []string{"abc.42", "abc", "abc.0", "abc.pods-42.jobs-7", "a.b-1.c-2.d-3", "A.1", "a..", "a.1.b-2", "a.b-01", "a.1-2", "a.b-1-2.c-3", "a.1-2-s3", "a.b-1-s2.c-3", "a.l-p0-1.c-3"} {
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
		// AppendID writes what was read in some order of the watches.
		names := slices.Sorted(maps.Keys(p.Claims))
		if strings.HasSuffix(s, ".0") {
			names = []string{""}
		}
		claims := make([]Claim, len(names))
		for i, name := range names {
			claims[i] = p.Claims[name]
		}
		written := string(AppendID(nil, p.Epoch, names, claims))
		if len(names) < 2 && written != s {
			t.Fatalf("%q was written as %q", s, written)
		}
		again, err := ParsePosition(written)
		if err != nil || again.Epoch != p.Epoch || !maps.Equal(again.Claims, p.Claims) {
			t.Fatalf("%q was written as %q, and read as %v, %v", s, written, again, err)
		}
	})
}
