package balance

import (
	"slices"
	"time"
)

const (
	// settle is how long the same replicas must have answered before anything is moved. A replica that fails and begins again
	// is not fed by then, and of several that are added the last is there.
	settle = 2 * time.Minute
	// When a replica goes to which streams were moved, that becomes twice as long, up to unsettled, until they have been the
	// same for calm.
	unsettled = time.Hour
	calm      = 2 * time.Hour
)

// fleet is which replicas there are, and for how long these have been the same.
type fleet struct {
	names []string
	since time.Time
	wait  time.Duration // how long they must be the same; 0: settle
	moved bool          // streams were moved since they are the same
}

// see takes note of the replicas that answer. It reports whether they have been the same for long enough.
func (f *fleet) see(all []Load, now time.Time) bool {
	var names []string
	for _, l := range all {
		names = append(names, l.Instance)
	}
	slices.Sort(names)
	f.wait = max(f.wait, settle)
	if !slices.Equal(names, f.names) {
		if f.moved && slices.ContainsFunc(f.names, func(n string) bool { return !slices.Contains(names, n) }) {
			f.wait = min(2*f.wait, unsettled)
		}
		f.names, f.since, f.moved = names, now, false
	}
	lasted := now.Sub(f.since)
	if lasted >= calm {
		f.wait = settle
	}
	return lasted >= f.wait
}
