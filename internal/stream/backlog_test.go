package stream

import (
	"errors"
	"slices"
	"testing"
)

// caughtUp is a backlog with one event at each version.
func caughtUp(versions ...uint64) (events []*Event[*item]) {
	for _, version := range versions {
		events = append(events, &Event[*item]{Change: added("a", version), Pos: version, ID: version})
	}
	return events
}

// A batch is filled across the end of a backlog. Otherwise a reader would take a batch that is not
// full for the end, and wait without being armed.
func TestBatchIsFilledAcrossTheEndOfAPast(t *testing.T) {
	topic := newTestTopic(roomy)
	head := topic.Head()
	topic.Append(101, added("a", 101))
	c, w := topic.CaughtUp(head, caughtUp(98, 99, 100), UpTo(98), Namespaces("a")), NewWakeChannel()
	batch, position, err := c.Next(make([]*Event[*item], 0, 10), w)
	defer c.Disarm()
	if err != nil || len(batch) != 3 || position != 101 {
		t.Fatalf("%d events up to %d (%v), want those of 99, 100 and 101", len(batch), position, err)
	}
	topic.Append(102, added("a", 102))
	topic.wakeReaders(nil)
	if len(w.C) != 1 {
		t.Error("its reader is not woken by what comes then")
	}
}

// Of the events that share the position's version, the client was told only the first.
func TestPastBeginsBehindTheFirstEventOfItsVersion(t *testing.T) {
	topic := newTestTopic(roomy)
	c := topic.CaughtUp(topic.Head(), caughtUp(97, 98, 98, 98, 99), UpTo(98), AllNamespaces())
	if read, _ := versions(t, c); !slices.Equal(read, []uint64{98, 98, 99}) {
		t.Errorf("told %v", read)
	}
}

// A reader whose backlog ends at a place that the ring has overtaken would be reset there anyway.
// It is reset at once, and does not hold the backlog any longer.
func TestReaderOfAPastIsResetAsSoonAsTheRingOvertakesItsEnd(t *testing.T) {
	topic := newTestTopic(Options{Events: 2, Bytes: 1 << 20})
	c := topic.CaughtUp(topic.Head(), caughtUp(98, 99, 100), UpTo(97), AllNamespaces())
	if batch, _, err := c.Next(make([]*Event[*item], 0, 1), nil); err != nil || len(batch) != 1 {
		t.Fatalf("%d events, %v", len(batch), err)
	}
	for version := uint64(101); version < 110; version++ {
		topic.Append(version, added("a", version))
	}
	if _, _, err := c.Next(make([]*Event[*item], 0, 1), nil); !errors.Is(err, ErrSlow) {
		t.Errorf("%v", err)
	}
}

// What another replica told the client may be yet to come here, and then be gone again in a relist.
func TestPastDoesNotHideARelistThatLeapsOverWhatIsKnown(t *testing.T) {
	topic := newTestTopic(roomy)
	c := topic.CaughtUp(topic.Head(), caughtUp(98, 99), Known{All: 98, Some: 105}, AllNamespaces())
	topic.AppendBurst(110, nil)
	if _, _, err := c.Next(make([]*Event[*item], 0, 9), nil); !errors.Is(err, ErrExpired) {
		t.Errorf("%v", err)
	}
}

// What a slow client was not told is read again, be it from a backlog or from the ring, and nothing
// else is.
func TestCursorStepsBackToWhatWasNotTold(t *testing.T) {
	for cut := range 6 {
		topic := newTestTopic(roomy)
		head := topic.Head()
		for version := uint64(101); version <= 103; version++ {
			topic.Append(version, added("a", version))
		}
		c := topic.CaughtUp(head, caughtUp(98, 99, 100), UpTo(97), AllNamespaces())
		batch, _, err := c.Next(make([]*Event[*item], 0, 6), nil)
		if err != nil || len(batch) != 6 {
			t.Fatalf("%d events, %v", len(batch), err)
		}
		c.Back(batch[cut:])
		if read, _ := versions(t, c); !slices.Equal(read, []uint64{98, 99, 100, 101, 102, 103}[cut:]) {
			t.Errorf("after %d were told: %v", cut, read)
		}
	}
}

// A client that was cut off in the burst of a relist knows some of what lies up to its end. It was
// not told the last version of that, only because its backlog ends right before.
func TestWhatIsNextBehindAPastIsToldToWhoKnowsOnlySomeOfIt(t *testing.T) {
	for _, c := range []struct {
		known Known
		want  []uint64
	}{
		{Known{97, 101}, []uint64{98, 99, 100, 101, 102}},
		{Known{98, 101}, []uint64{99, 100, 101, 102}},
		{Known{100, 101}, []uint64{102}}, // of 101 alone it was told something, and there is nothing else of it
		{Known{99, 100}, []uint64{101, 102}},
		{UpTo(99), []uint64{100, 101, 102}},
	} {
		topic := newTestTopic(roomy)
		cursor := topic.CaughtUp(topic.Head(), caughtUp(97, 98, 99, 100), c.known, AllNamespaces())
		topic.Append(101, added("a", 101))
		topic.Append(102, added("a", 102))
		if read, _ := versions(t, cursor); !slices.Equal(read, c.want) {
			t.Errorf("%+v is told %v", c.known, read)
		}
	}
}

func TestWhatIsPendingIsReadAfterwards(t *testing.T) {
	topic := newTestTopic(roomy)
	topic.Begin(110)
	topic.Append(111, added("a", 111))
	c := topic.CaughtUp(Head{Version: 110, complete: 110, seq: topic.ring.evicted.seq}, caughtUp(102, 104), UpTo(101), AllNamespaces())
	pending, err := c.Pending(topic.Head())
	if err != nil || len(pending) != 3 {
		t.Fatalf("%d pending, %v", len(pending), err)
	}
	topic.Append(112, added("a", 112))
	if read, _ := versions(t, c); !slices.Equal(read, []uint64{102, 104, 111, 112}) {
		t.Errorf("%v", read)
	}
}
