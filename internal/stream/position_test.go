package stream

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func at(all, some uint64) Claim { return narrowed(all, some, "") }

func narrowed(all, some uint64, visibility string) Claim {
	return Claim{Known: Known{all, some}, Epoch: "e1", Visibility: visibility}
}

func ofEpoch(epoch string, claim Claim) Claim {
	claim.Epoch = epoch
	return claim
}

func own(text, epoch string) Claim { return Claim{Own: text, Epoch: epoch} }

func TestPositions(t *testing.T) {
	for _, test := range []struct {
		text  string
		known map[string]Claim // nil: unreadable
	}{
		{"e1.42", map[string]Claim{"": at(42, 42)}},
		{"e1", map[string]Claim{}},
		{"e1.0", map[string]Claim{}}, // a single watch whose snapshot was not complete
		{"e1.pods-42.jobs2-7", map[string]Claim{"pods": at(42, 42), "jobs2": at(7, 7)}},
		{"e1.42-50", map[string]Claim{"": at(42, 50)}}, // cut off in a burst
		{"e1.pods-42-50.jobs2-7", map[string]Claim{"pods": at(42, 50), "jobs2": at(7, 7)}},
		{"e1.18446744073709551615", map[string]Claim{"": at(1<<64-1, 1<<64-1)}},
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
		{"e1.42-s1a", map[string]Claim{"": narrowed(42, 42, "s1a")}}, // narrowed
		{"e1.42-50-s1a", map[string]Claim{"": narrowed(42, 50, "s1a")}},
		{"e1.pods-42-s1a.jobs2-7", map[string]Claim{"pods": narrowed(42, 42, "s1a"), "jobs2": at(7, 7)}},
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
		{"e1.l-p0a-9", map[string]Claim{"l": own("p0a-9", "e1")}}, // in a form of the source's own
		{"e1.l-p7.pods-42", map[string]Claim{"l": own("p7", "e1"), "pods": at(42, 42)}},
		{"e1.l-p", nil},
		{"e1.a-7.b-42~e2.c-9", map[string]Claim{"a": at(7, 7), "b": ofEpoch("e2", at(42, 42)), "c": at(9, 9)}}, // of several histories
		{"e1.a-7.b-42-50-s1a~2e", map[string]Claim{"a": at(7, 7), "b": ofEpoch("2e", narrowed(42, 50, "s1a"))}},
		{"e1.a-7.l-p0a-9~e2", map[string]Claim{"a": at(7, 7), "l": own("p0a-9", "e2")}},
		{"e1.a-7~e2", nil}, // the first one's is at the beginning
		{"e1.a-7.b-7~e1", nil},
		{"e1.a-7.b-7~", nil},
		{"e1.a-7.b-7~E2", nil},
		{"e1.a-7.b-7~e2~e3", nil},
		{"e1.a-7.b-7~e2-8", nil},
		{"e1.a-7.b~e2", nil},
		{"e1.42~e2", nil},
		{"e1~e2.42", nil},
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
	none := Claim{}
	for want, claims := range map[string][]Claim{
		"": {none, none}, "e1": {ofEpoch("e1", none), none}, "e2": {none, ofEpoch("e2", none)}, "e1.a-5": {at(5, 5), none},
		"e1.a-5.b-6": {at(5, 5), at(6, 6)}, "e1.a-5-9": {at(5, 9), at(0, 9)}, "e1.a-5-9-s1.b-6-s2": {narrowed(5, 9, "s1"), narrowed(6, 6, "s2")},
		"e1.b-6": {ofEpoch("e2", narrowed(0, 0, "s1")), at(6, 6)}, "e1.a-5.b-6~e2": {at(5, 5), ofEpoch("e2", at(6, 6))}, "e1.a-5.b-p7~e2": {at(5, 5), own("p7", "e2")},
	} {
		if got := string(AppendID(nil, []string{"a", "b"}, claims)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if got := string(AppendID([]byte("id: "), []string{""}, []Claim{narrowed(0, 9, "s1")})); got != "id: e1.0" {
		t.Errorf("%q", got)
	}
}

func FuzzParsePosition(f *testing.F) {
	for _, s := range []string{"abc.42", "abc", "abc.0", "abc.pods-42.jobs-7", "a.b-1.c-2.d-3", "A.1", "a..", "a.1.b-2", "a.b-01", "a.1-2", "a.b-1-2.c-3", "a.1-2-s3", "a.b-1-s2.c-3", "a.l-p0-1.c-3", "a.b-1.c-3~d", "a.b-1.c-3-s4~d.e-5", "a.b-1.l-p0-1~d", "a.1~b"} {
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
		if len(names) == 0 {
			names = []string{"none"}
		}
		if strings.HasSuffix(s, ".0") {
			names = []string{""}
		}
		claims := make([]Claim, len(names))
		for i, name := range names {
			if claims[i] = p.Claims[name]; claims[i].Epoch == "" {
				claims[i].Epoch = p.Epoch
			}
		}
		written := string(AppendID(nil, names, claims))
		if len(names) < 2 && written != s {
			t.Fatalf("%q was written as %q", s, written)
		}
		again, err := ParsePosition(written)
		if err != nil || !maps.Equal(again.Claims, p.Claims) || len(names) < 2 && again.Epoch != p.Epoch {
			t.Fatalf("%q was written as %q, and read as %v, %v", s, written, again, err)
		}
	})
}
