package stream

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func modification(name string, version uint64) *Event[*item] {
	return &Event[*item]{
		Change: Change[*item]{Type: Modified, Object: &item{name: name, version: version}, Old: &item{name: name, version: version - 1}},
		Pos:    version, ID: version,
	}
}

func offer(c *Conflator[*item], name string, version uint64, now time.Time) (tell bool) {
	e := modification(name, version)
	return c.Offer(e, e.Old, now)
}

// TestWhatIsToldEarlyIsNotHeldBackForEver: the interval of its object begins when it is told.
func TestWhatIsToldEarlyIsNotHeldBackForEver(t *testing.T) {
	c := NewConflator[*item](250 * time.Millisecond)
	start := time.Now()
	offer(c, "a", 1, start)
	offer(c, "a", 2, start)
	now := start.Add(10 * time.Millisecond)
	if h := c.Early(now); h == nil || h.Event.Pos != 2 || c.Early(now) != nil {
		t.Fatalf("%+v", h)
	}
	if offer(c, "a", 3, now) {
		t.Fatal("told twice within an interval")
	}
	if h := c.Due(now.Add(250 * time.Millisecond)); h == nil || h.Event.Pos != 3 {
		t.Fatalf("due is %+v", h)
	}
}

func TestConflationTellsTheLatestOnceAnInterval(t *testing.T) {
	c := NewConflator[*item](250 * time.Millisecond)
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	if !offer(c, "a", 1, at(0)) {
		t.Fatal("the first modification is held back")
	}
	if offer(c, "a", 2, at(10)) || offer(c, "a", 3, at(20)) {
		t.Fatal("two modifications within an interval are told")
	}
	if !offer(c, "b", 4, at(20)) {
		t.Fatal("another object is held back")
	}
	if c.Due(at(249)) != nil {
		t.Fatal("told before the interval is over")
	}
	h := c.Due(at(250))
	if h == nil || h.Event.Pos != 3 || h.Base.version != 1 {
		t.Fatalf("due is %+v, want version 3 on the base of 1", h)
	}
	if c.Due(at(1000)) != nil || !c.Next().IsZero() {
		t.Fatal("told twice")
	}
	if offer(c, "a", 5, at(499)) {
		t.Fatal("the interval does not begin when the held one was told")
	}
}

func TestHeldModificationIsNotClaimed(t *testing.T) {
	c := NewConflator[*item](time.Second)
	now := time.Now()
	offer(c, "a", 10, now)
	offer(c, "b", 11, now)
	if got := c.Claim(11); got != 11 {
		t.Errorf("with nothing held, %d may be claimed, want 11", got)
	}
	offer(c, "b", 12, now)
	offer(c, "a", 13, now)
	offer(c, "b", 14, now)
	if got := c.Claim(14); got != 11 {
		t.Errorf("while 12 is held, %d may be claimed, want 11", got)
	}
	c.Drop(&item{name: "b"})
	if got := c.Claim(15); got != 12 {
		t.Errorf("while 13 is held, %d may be claimed, want 12", got)
	}
	c.Due(now.Add(time.Second))
	if got := c.Claim(15); got != 15 {
		t.Errorf("with nothing held any more, %d may be claimed, want 15", got)
	}
}

// In the end a client's map has the objects as they are. No object is told more often than was asked for, and no
// version is claimed whose events were not told.
func TestConflationLosesNothing(t *testing.T) {
	const interval = 100 * time.Millisecond
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := NewConflator[*item](interval)
		now := time.Now()
		truth, client, told := map[string]uint64{}, map[string]uint64{}, map[string]time.Time{}
		pending := map[string]uint64{} // the first version of each object that the client was not told
		tell := func(key string, version uint64) {
			if last, ok := told[key]; ok && now.Sub(last) < interval {
				t.Fatalf("seed %d: %s is told after %v", seed, key, now.Sub(last))
			}
			told[key], client[key] = now, version
			delete(pending, key)
		}
		flush := func() {
			for h := c.Due(now); h != nil; h = c.Due(now) {
				if h.Base.version != client[h.key.name] && h.Base.version != h.claim {
					t.Fatalf("seed %d: base %d of %s, which the client has at %d", seed, h.Base.version, h.key.name, client[h.key.name])
				}
				tell(h.key.name, h.Event.Pos)
			}
		}
		version := uint64(1)
		for range 300 {
			now = now.Add(rand.N(30 * time.Millisecond))
			flush()
			version += 1 + random.Uint64N(3)
			key := fmt.Sprint("object-", random.IntN(6))
			truth[key] = version
			if random.IntN(10) == 0 { // deleted, or added anew: told at once
				c.Drop(&item{name: key})
				delete(told, key)
				client[key] = version
				delete(pending, key)
			} else {
				if _, waiting := pending[key]; !waiting {
					pending[key] = version
				}
				if offer(c, key, version, now) {
					tell(key, version)
				}
			}
			claim := c.Claim(version)
			for key, first := range pending {
				if first <= claim {
					t.Fatalf("seed %d: %d is claimed, though %s was not told of %d", seed, claim, key, first)
				}
			}
		}
		now = now.Add(interval)
		flush()
		for key, version := range truth {
			if client[key] != version {
				t.Fatalf("seed %d: the client has %s at %d, not %d", seed, key, client[key], version)
			}
		}
		if len(c.held) != 0 || c.Claim(version) != version {
			t.Fatalf("seed %d: %d are still held", seed, len(c.held))
		}
	}
}
