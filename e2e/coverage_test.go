package e2e

import (
	"fmt"
	"slices"
	"testing"
)

// This file compares what a follower was told with what a witness saw. A change may be missing only if a snapshot
// covers it: the follower was told reset, then the state, then synced at a version that is not before the change.

// checkNothingLost fails the test for changes that were neither told nor covered, and for events that never happened.
// The follower must have caught up.
func checkNothingLost(t *testing.T, f *follower, watch string, w *witness) {
	t.Helper()
	w.waitFor(t, f, watch)
	err := f.look(watch, func(v *view) error {
		seen, err := w.sequence()
		if err != nil {
			return err
		}
		if err := v.lost(seen, none); err != nil {
			return err
		}
		return v.invented(seen, w.from, none)
	})
	if err != nil {
		t.Errorf("%s: %v", f.name, err)
	}
}

// waitFor waits until the witness has seen all that a follower was told: the follower may have been told first.
func (w *witness) waitFor(t *testing.T, f *follower, watch string) {
	t.Helper()
	newest := uint64(0)
	err := f.look(watch, func(v *view) error {
		for _, e := range v.told {
			if !e.unknown {
				newest = max(newest, e.version)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the test's own watch has seen what "+f.name+" was told", func() error {
		seen, err := w.sequence()
		if err == nil && newest > w.from && (len(seen) == 0 || seen[len(seen)-1].version < newest) {
			return fmt.Errorf("it has not seen version %d", newest)
		}
		return err
	})
}

// sequence returns all that the witness saw.
func (w *witness) sequence() ([]told, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen), w.err
}

// stretches are parts of history of which a gateway saw only the difference, because it listed anew. Its clients are
// not told of what came and went within one (rule 5).
type stretches []interval

func (s stretches) contain(version uint64) bool {
	return slices.ContainsFunc(s, func(i interval) bool { return i.contains(version) })
}

// none stands for the relists of a gateway that made none.
func none(uint64) bool { return false }

// lost looks for changes that a witness saw, and that were neither told nor within a snapshot or a relist.
func (v *view) lost(seen []told, relisted func(version uint64) bool) error {
	has := map[occurrence]bool{}
	for _, e := range v.told {
		has[e.occurrence] = true
	}
	var missing []told
	for _, e := range seen {
		if !has[e.occurrence] && !stretches(v.covered).contain(e.version) && !relisted(e.version) {
			missing = append(missing, e)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d of %d changes were lost in silence, the first: %s, the last: %s, on %s", len(missing), len(seen),
			missing[0], missing[len(missing)-1], v.around(missing[0].version, missing[len(missing)-1].version))
	}
	return nil
}

// around describes the connections that went past a version, and what they told near it.
func (v *view) around(from, to uint64) string {
	text := ""
	for _, w := range v.walks {
		if w.from <= to && from <= w.to {
			text += fmt.Sprintf("\n  %s: from %d to %d", w.address, w.from, w.to)
		}
	}
	for _, e := range v.told {
		if e.version+20 > from && e.version < to+20 {
			text += fmt.Sprintf("\n  told %s", e)
		}
	}
	return text
}

// invented looks for events that the witness, which began at a version, did not see. Deletions of objects that the
// follower did not have change nothing. Deletions that a relist found have the relist's version, or that of the
// object that replaced the deleted one.
func (v *view) invented(seen []told, from uint64, relisted func(version uint64) bool) error {
	happened := map[occurrence]bool{}
	for _, e := range seen {
		happened[e.occurrence] = true
	}
	for _, e := range v.told {
		if e.version > from && !e.unknown && !happened[e.occurrence] && !(e.gone && relisted(e.version)) {
			return fmt.Errorf("this never happened: %s", e)
		}
	}
	return nil
}

// checkSameSequence fails the test unless a follower was told exactly what the witness saw after the first snapshot:
// each event once over all connections, under the same name, in the same order, with the same object.
func checkSameSequence(t *testing.T, f *follower, watch string, w *witness) {
	t.Helper()
	w.waitFor(t, f, watch)
	err := f.look(watch, func(v *view) error {
		seen, err := w.sequence()
		if err != nil {
			return err
		}
		if len(v.resets) > 0 || len(v.covered) != 1 {
			return fmt.Errorf("there were resets %q and %d snapshots", v.resets, len(v.covered))
		}
		seen = slices.DeleteFunc(seen, func(e told) bool { return e.version <= v.covered[0].to })
		for i := range max(len(seen), len(v.told)) {
			switch {
			case i >= len(seen):
				return fmt.Errorf("event %d never happened: %s", i, v.told[i])
			case i >= len(v.told):
				return fmt.Errorf("event %d was not told: %s", i, seen[i])
			case seen[i].occurrence != v.told[i].occurrence, seen[i].event != v.told[i].event, seen[i].key != v.told[i].key:
				return fmt.Errorf("event %d is %s, but was told as %s", i, seen[i], v.told[i])
			case !sameJSON(seen[i].json, v.told[i].json):
				return fmt.Errorf("event %d, %s, has the object\n%s\nnot\n%s", i, seen[i], v.told[i].json, seen[i].json)
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", f.name, err)
	}
}

func (e told) String() string {
	return fmt.Sprintf("%s %s at version %d (uid %s)", e.event, e.key, e.version, e.uid)
}
