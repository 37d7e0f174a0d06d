package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// calm is a time without faults, in which changes have to be told promptly.
type calm struct {
	from, to time.Time
	stall    time.Duration // the longest time for which this process itself had to wait for a processor
}

// promptly is how much later than the test's own watch a client may get an event: a second, and more if the machine
// itself is slow.
func (c calm) promptly() time.Duration { return time.Second + 20*c.stall }

// keepCalm lets a time pass, and measures how late the machine lets this process run.
func keepCalm(lasting time.Duration) calm {
	return keepCalmWhile(func() { time.Sleep(lasting) })
}

// keepCalmWhile calls do, which must not make anything fail, and measures how late the machine lets this process run
// in the meantime.
func keepCalmWhile(do func()) calm {
	const step = 10 * time.Millisecond
	c := calm{from: time.Now()}
	done := make(chan struct{})
	var measuring sync.WaitGroup
	measuring.Go(func() {
		for last := c.from; ; {
			select {
			case <-done:
				return
			case <-time.After(step):
			}
			now := time.Now()
			c.stall = max(c.stall, now.Sub(last)-step)
			last = now
		}
	})
	do()
	close(done)
	measuring.Wait()
	c.to = time.Now()
	return c
}

// late looks for changes during a calm time that were told, but not promptly.
func (v *view) late(should []told, c calm, conflate time.Duration) error {
	when := map[occurrence]time.Time{}
	for _, e := range v.told {
		when[e.occurrence] = e.at
	}
	for _, e := range should {
		at, ok := when[e.occurrence]
		if !ok || e.at.Before(c.from) || e.at.After(c.to) {
			continue // lost judges what was not told
		}
		if took, most := at.Sub(e.at), c.promptly()+conflate; took > most {
			return fmt.Errorf("%s was told after %v, when %v would be much: nothing was slow", e, took, most)
		}
	}
	return nil
}

// superseded leaves out modifications that a conflated watch need not tell, because it tells a later state.
func (v *view) superseded(should []told) (left []told) {
	newest := map[string]uint64{}
	for _, e := range v.told {
		newest[e.uid] = max(newest[e.uid], e.version)
	}
	for _, e := range should {
		if e.event != "modified" || newest[e.uid] <= e.version {
			left = append(left, e)
		}
	}
	return left
}

// The check of promptness finds the events that come late, and only these.
func TestLateEventsAreSeen(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := calm{from: began, to: began.Add(time.Second)}
	should := []told{{occurrence: occurrence{"a", 1, false}, at: began.Add(10 * time.Millisecond)}}
	for after, late := range map[time.Duration]bool{0: false, 900 * time.Millisecond: false, 1100 * time.Millisecond: true} {
		v := &view{told: []told{{occurrence: occurrence{"a", 1, false}, at: should[0].at.Add(after)}}}
		if err := v.late(should, c, 0); (err != nil) != late {
			t.Errorf("after %v: %v", after, err)
		}
		if err := v.late(should, c, time.Second); err != nil {
			t.Errorf("conflated, after %v: %v", after, err)
		}
	}
}
