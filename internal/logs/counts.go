package logs

import (
	"math"
	"slices"
)

// LinePosition is a place in the log of a run: of the lines whose time is in the second Since or later,
// the first Count were told, and the sum of their hashes is Sum. Lines are only ever added at the
// end of a log, so it means the same for every reader, whatever the clock does.
type LinePosition struct {
	Since int64 // Unix seconds
	Count uint64
	Sum   uint64
}

// perSecondCounts are how many lines were told, by the second of their times.
type perSecondCounts struct {
	seconds    []second // ascending
	horizon    int64    // lines of seconds up to this one are not all counted
	hasHorizon bool     // whether there is such a second
}

type second struct {
	at         int64
	count, sum uint64
}

// maxSeconds bounds perSecondCounts: a clock may jump back over so many seconds in which something was written.
const maxSeconds = 1024

// add counts a line.
func (t *perSecondCounts) add(at int64, sum uint64) {
	i := len(t.seconds)
	if i > 0 && t.seconds[i-1].at >= at { // the usual case is the last one
		i, _ = slices.BinarySearchFunc(t.seconds, at, func(s second, at int64) int { return int(min(max(s.at-at, -1), 1)) })
	}
	if i == len(t.seconds) || t.seconds[i].at != at {
		t.seconds = slices.Insert(t.seconds, i, second{at: at})
	}
	t.seconds[i].count++
	t.seconds[i].sum += sum
	if len(t.seconds) > maxSeconds {
		t.uncountedTo(t.seconds[0].at)
		t.seconds = slices.Delete(t.seconds, 0, 1)
	}
}

// uncountedTo says that lines of seconds up to this one are not all counted.
func (t *perSecondCounts) uncountedTo(at int64) {
	if !t.hasHorizon || at > t.horizon {
		t.horizon, t.hasHorizon = at, true
	}
}

// everything is before all times.
const everything = math.MinInt64

// all is the position of who was told all that was counted, from the first second of which all is;
// ok is false if the last line's is not.
func (t *perSecondCounts) all(last int64) (p LinePosition, ok bool) {
	switch {
	case !t.hasHorizon:
		return t.since(everything)
	case last <= t.horizon:
		return p, false
	}
	return t.since(t.horizon + 1)
}

// since is the position of who was told all that was counted, by a second; ok is false if that cannot be said.
func (t *perSecondCounts) since(at int64) (p LinePosition, ok bool) {
	p.Since = at
	for i := len(t.seconds) - 1; i >= 0 && t.seconds[i].at >= at; i-- {
		p.Count += t.seconds[i].count
		p.Sum += t.seconds[i].sum
	}
	return p, !t.hasHorizon || at > t.horizon
}
