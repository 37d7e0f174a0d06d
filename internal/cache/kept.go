package cache

import (
	"slices"
	"sync"
	"time"
)

// keepCatchUp is how long a result serves clients that come later.
const keepCatchUp = time.Minute

// keptCatchUps keeps the newest catch-up of each store of a cluster. One is kept for keepCatchUp, and only while the
// store's ring still has all that follows it. If all together exceed the bound, the oldest are dropped.
type keptCatchUps struct {
	bound int64 // in bytes, of all together

	mu   sync.Mutex
	kept []keptCatchUp // the oldest first
}

type keptCatchUp struct {
	by     *catchUps
	flight *flight
	at     time.Time
	bytes  int64
}

// eventSize is about what an event of a catch-up occupies beside its object, in bytes.
const eventSize = 160

func (k *keptCatchUps) put(by *catchUps, f *flight) {
	bytes := int64(len(f.result.Events)) * eventSize
	for _, e := range f.result.Events {
		bytes += int64(e.Object.Size())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(by)
	k.kept = append(k.kept, keptCatchUp{by, f, time.Now(), bytes})
	total := int64(0)
	for _, c := range k.kept {
		total += c.bytes
	}
	for total > k.bound {
		total -= k.kept[0].bytes
		k.kept = slices.Delete(k.kept, 0, 1)
	}
}

// get returns a store's kept flight if it serves a client at this version, and leads to least, else nil.
func (k *keptCatchUps) get(by *catchUps, topic *Topic, after, least uint64) *flight {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.kept, func(c keptCatchUp) bool { return c.by == by })
	if i < 0 {
		return nil
	}
	c := k.kept[i]
	if time.Since(c.at) >= keepCatchUp || !topic.Holds(c.flight.result.Head) {
		k.remove(by)
		return nil
	}
	// The flight's head must not lie before the version. Otherwise the topic would tell again what lies between, or
	// would have a gap there that the client cannot pass.
	if c.flight.after <= after && max(after, least) <= c.flight.result.Head.Version {
		return c.flight
	}
	return nil
}

// forget drops a store's result once it has been kept for keepCatchUp.
func (k *keptCatchUps) forget(by *catchUps) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = slices.DeleteFunc(k.kept, func(c keptCatchUp) bool { return c.by == by && time.Since(c.at) >= keepCatchUp })
}

func (k *keptCatchUps) drop(by *catchUps) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(by)
}

func (k *keptCatchUps) remove(by *catchUps) {
	k.kept = slices.DeleteFunc(k.kept, func(c keptCatchUp) bool { return c.by == by })
}
