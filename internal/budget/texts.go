package budget

import (
	"slices"
	"sync/atomic"
	"time"
	"weak"
)

// Texts are the renderings of a value that never changes, in several variants. They are a field of that value, so
// that a rendering is found without a lock, and is garbage when the value is. The zero value has none.
type Texts struct{ kept atomic.Pointer[[]*text] }

type text struct {
	variant, text string
	user          string
	charge        *Entry
}

const (
	keepTexts  = 2 * time.Second // after a text was last asked for
	manyTexts  = 64              // variants that are kept of one value, since clients choose them
	textsExtra = 256             // bytes that a text costs beside its own
)

// Get returns a variant, and makes it if it is not kept. It is charged to the user for whom it was made. Two users
// that ask at the same moment may both make it; only one is kept.
func (t *Texts) Get(m *Memory, user, variant string, make func() string) string {
	if found := t.find(variant); found != nil {
		return found.text
	}
	made := &text{variant: variant, text: make(), user: user}
	owner := weak.Make(t)
	made.charge = m.Enter(user, keepTexts, func() {
		if t := owner.Value(); t != nil {
			t.forget(made)
		}
	})
	for {
		before := t.kept.Load()
		var others []*text
		if before != nil {
			others = *before
		}
		if slices.ContainsFunc(others, func(o *text) bool { return o.variant == variant }) {
			return made.text // another goroutine was quicker
		}
		with, without := others, (*text)(nil)
		if len(others) >= manyTexts {
			if without = surplus(others, user); without == nil {
				return made.text
			}
			with = slices.DeleteFunc(slices.Clone(others), func(o *text) bool { return o == without })
		}
		with = append(with[:len(with):len(with)], made)
		if t.kept.CompareAndSwap(before, &with) {
			if without != nil {
				without.charge.Release()
			}
			made.charge.Set(int64(len(made.text)) + textsExtra)
			return made.text
		}
	}
}

func (t *Texts) find(variant string) *text {
	kept := t.kept.Load()
	if kept == nil {
		return nil
	}
	for _, o := range *kept {
		if o.variant == variant {
			o.charge.Use()
			return o
		}
	}
	return nil
}

// surplus returns a text of the user who has most of them, or nil if no user has more than the given one.
func surplus(texts []*text, user string) *text {
	counts := map[string]int{}
	for _, o := range texts {
		counts[o.user]++
	}
	var found *text
	most := counts[user]
	for _, o := range texts {
		if counts[o.user] > most {
			found, most = o, counts[o.user]
		}
	}
	return found
}

// forget removes a text.
func (t *Texts) forget(gone *text) {
	for {
		before := t.kept.Load()
		if before == nil {
			return
		}
		var after *[]*text
		if without := slices.DeleteFunc(slices.Clone(*before), func(o *text) bool { return o == gone }); len(without) > 0 {
			after = &without
		}
		if t.kept.CompareAndSwap(before, after) {
			return
		}
	}
}
