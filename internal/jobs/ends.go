package jobs

import (
	"cmp"
	"slices"
)

// Ended is how many jobs of one key came to an end in one step.
type Ended struct {
	Key                          string
	From                         Time // of the step; 0: since ever
	Succeeded, Failed, Cancelled int
}

// Ends counts ends by key and by the step in which they were.
type Ends struct {
	span   Span
	counts map[endsOf]*Ended
}

type endsOf struct {
	key  string
	step int
}

// NewEnds begins with none.
func NewEnds(span Span) *Ends { return &Ends{span, map[endsOf]*Ended{}} }

// Add counts a transition of a job of a key. One that leads to no end, or lies outside the span, counts for nothing.
func (e *Ends) Add(key string, to State, at Time) {
	if !to.Ended() || at < e.span.From || at >= e.span.Until {
		return
	}
	of := endsOf{key, e.span.step(at)}
	ended := e.counts[of]
	if ended == nil {
		ended = &Ended{Key: key}
		if e.span.From != 0 {
			ended.From = e.span.begin(of.step)
		}
		e.counts[of] = ended
	}
	switch to {
	case Succeeded:
		ended.Succeeded++
	case Failed:
		ended.Failed++
	default:
		ended.Cancelled++
	}
}

// Size is how many groups of a key and a step there are.
func (e *Ends) Size() int { return len(e.counts) }

// Sum is what was counted, by step, then by key.
func (e *Ends) Sum() []Ended {
	all := make([]Ended, 0, len(e.counts))
	for _, ended := range e.counts {
		all = append(all, *ended)
	}
	slices.SortFunc(all, func(a, b Ended) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Key, b.Key)) })
	return all
}
