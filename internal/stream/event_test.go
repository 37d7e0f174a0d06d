package stream

import "testing"

// The semantics are those of the API server's watch cache: an update by which an object begins to match is an
// addition, one by which it ceases to match a deletion.
func TestForTellsEnteringAndLeavingAFilter(t *testing.T) {
	matching := func(i *item) bool { return i.label == "in" }
	in, out := func(version uint64) *item { return &item{label: "in", version: version} }, func(version uint64) *item { return &item{label: "out", version: version} }
	nothing := Type(99)
	for _, test := range []struct {
		name     string
		change   Change[*item]
		filtered Type // what a client with a filter is told
		version  uint64
		label    string
	}{
		{"added, matches", Change[*item]{Added, in(5), nil}, Added, 5, "in"},
		{"added, does not match", Change[*item]{Added, out(5), nil}, nothing, 0, ""},
		{"modified, matches on", Change[*item]{Modified, in(5), in(4)}, Modified, 5, "in"},
		{"modified, enters", Change[*item]{Modified, in(5), out(4)}, Added, 5, "in"},
		{"modified, leaves", Change[*item]{Modified, out(5), in(4)}, Deleted, 5, "in"},
		{"modified, never matched", Change[*item]{Modified, out(5), out(4)}, nothing, 0, ""},
		{"modified, matches, with nothing known from before", Change[*item]{Modified, in(5), nil}, Modified, 5, "in"},
		{"modified, does not match, with nothing known from before", Change[*item]{Modified, out(5), nil}, Deleted, 5, "out"},
		{"deleted, matched", Change[*item]{Deleted, in(5), in(4)}, Deleted, 5, "in"},
		{"deleted, did not match", Change[*item]{Deleted, out(5), out(4)}, nothing, 0, ""},
		{"deleted, did not match any more", Change[*item]{Deleted, in(5), out(4)}, nothing, 0, ""},
		{"deleted, with nothing known from before", Change[*item]{Deleted, in(5), nil}, Deleted, 5, "in"},
	} {
		e := &Event[*item]{Change: test.change, Pos: 5, ID: 5}
		if kind, object, tell := e.For(nil); kind != test.change.Type || object != test.change.Object || !tell {
			t.Errorf("%s: without a filter it is told as %v of %+v", test.name, kind, object)
		}
		kind, object, tell := e.For(matching)
		if tell != (test.filtered != nothing) {
			t.Errorf("%s: told: %v", test.name, tell)
		}
		if tell && (kind != test.filtered || object.version != test.version || object.label != test.label) {
			t.Errorf("%s: told as %v of %+v", test.name, kind, object)
		}
	}
}

func TestObjectThatLeftIsMadeOnce(t *testing.T) {
	e := &Event[*item]{Change: Change[*item]{Modified, &item{label: "out", version: 5}, &item{label: "in", version: 4}}, Pos: 5}
	matching := func(i *item) bool { return i.label == "in" }
	_, first, _ := e.For(matching)
	_, second, _ := e.For(matching)
	if first != second {
		t.Error("each reader makes its own")
	}
}

func TestTypesHaveTheirNamesOnTheWire(t *testing.T) {
	if Added.String() != "added" || Modified.String() != "modified" || Deleted.String() != "deleted" {
		t.Error(Added, Modified, Deleted)
	}
}
