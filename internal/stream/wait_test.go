package stream

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// armed returns a cursor at the head that waits, and its channel.
func armed(t *testing.T, topic *Topic[*item], namespaces NamespaceSet) (*Cursor[*item], *WakeChannel) {
	t.Helper()
	c, w := topic.From(topic.Head(), namespaces), NewWakeChannel()
	if !c.Arm(w) {
		t.Fatal("a cursor at the head cannot be armed")
	}
	return c, w
}

func TestWaiterIsWokenForItsNamespaceOnly(t *testing.T) {
	for _, test := range []struct {
		namespaces NamespaceSet
		event      string // its namespace
		isWoken    bool
	}{
		{AllNamespaces(), "a", true},
		{AllNamespaces(), "", true},
		{Namespaces("a"), "a", true},
		{Namespaces("a"), "b", false},
		{Namespaces("a"), "", false},
		{Namespaces("a", "b"), "b", true},
		{Namespaces("a", "b"), "c", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			topic := newTestTopic(roomy)
			defer run(topic)()
			c, w := armed(t, topic, test.namespaces)
			defer c.Disarm()
			topic.Append(101, added(test.event, 101))
			synctest.Wait()
			if isWoken := len(w.C) == 1; isWoken != test.isWoken {
				t.Errorf("an event of %q woke a reader of %v: %v", test.event, test.namespaces, isWoken)
			}
			topic.Notify()
			synctest.Wait()
			if len(w.C) != 1 {
				t.Error("Notify did not wake the reader")
			}
		})
	}
}

func TestStalledReaderNeverDelaysAppend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topic := newTestTopic(Options{Events: 10, Bytes: 1 << 20})
		defer run(topic)()
		// There are 100 readers that neither read nor take their tokens, and one that does both.
		for i := range 100 {
			c, w := armed(t, topic, Namespaces("a"))
			defer c.Disarm()
			if i%2 == 0 {
				w.Wake() // so that its token is there already
			}
		}
		witness, w := armed(t, topic, Namespaces("a"))
		defer witness.Disarm()
		began := time.Now()
		for version := uint64(101); version < 1000; version++ {
			topic.Append(version, added("a", version))
			<-w.C
			if read, _ := versions(t, witness); len(read) != 1 || read[0] != version {
				t.Fatalf("the witness read %v, not %d", read, version)
			}
			if !witness.Arm(w) {
				t.Fatal("the witness cannot be armed")
			}
		}
		if time.Since(began) > 0 {
			t.Errorf("it took %v", time.Since(began))
		}
	})
}

func TestArmingLeavesNothingBehind(t *testing.T) {
	topic := newTestTopic(roomy)
	var cursors []*Cursor[*item]
	for i := range 30 {
		namespaces := []NamespaceSet{AllNamespaces(), Namespaces("a"), Namespaces("a", "b", fmt.Sprint("n", i))}[i%3]
		c, w := armed(t, topic, namespaces)
		for range i % 4 {
			c.Arm(w) // again
		}
		cursors = append(cursors, c)
	}
	if n := topic.Stats().Waiting; n != 10+10+30 {
		t.Errorf("%d wait", n)
	}
	topic.Append(101, added("a", 101))
	topic.wakeReaders(nil)
	if n := topic.Stats().Waiting; n != 20 { // in b, and in n0 and so on
		t.Errorf("%d wait after an event woke the others", n)
	}
	for i, c := range cursors {
		if i%2 == 0 {
			versions(t, c)
			c.Arm(NewWakeChannel())
		}
	}
	for i := range cursors {
		cursors[(i*7)%len(cursors)].Disarm()
		cursors[(i*7)%len(cursors)].Disarm() // again
	}
	if n := topic.Stats().Waiting; n != 0 {
		t.Errorf("%d wait after all were disarmed", n)
	}
}

func TestCursorIsNotArmedWhileThereIsSomethingToRead(t *testing.T) {
	topic := newTestTopic(Options{Events: 2, Bytes: 1 << 20})
	for _, namespaces := range []NamespaceSet{AllNamespaces(), Namespaces("a")} {
		c, w := topic.From(topic.Head(), namespaces), NewWakeChannel()
		version := topic.Stats().Watermark + 1
		topic.Append(version, added("a", version))
		if c.Arm(w) {
			t.Error("it is armed behind an event")
		}
		for range 5 {
			version++
			topic.Append(version, added("a", version))
		}
		if c.Arm(w) {
			t.Error("it is armed though it was overtaken")
		}
		if n := topic.Stats().Waiting; n != 0 {
			t.Errorf("%d wait", n)
		}
	}
}

func TestArmingAgainMovesToTheOtherWaiter(t *testing.T) {
	topic := newTestTopic(roomy)
	c, before := armed(t, topic, Namespaces("a"))
	after := NewWakeChannel()
	c.Arm(after)
	topic.Append(101, added("a", 101))
	topic.wakeReaders(nil)
	if len(before.C) != 0 || len(after.C) != 1 {
		t.Errorf("the waiters hold %d and %d tokens", len(before.C), len(after.C))
	}
}

func TestBurstOfAppendsWakesAReaderAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := roomy
		opts.Gather = 10 * time.Millisecond
		topic := newTestTopic(opts)
		defer run(topic)()
		c, w := armed(t, topic, AllNamespaces())
		defer c.Disarm()

		// 500 events in half a second.
		go func() {
			for version := uint64(101); version <= 600; version++ {
				topic.Append(version, added("a", version))
				time.Sleep(time.Millisecond)
			}
		}()
		woken, began := 0, time.Now()
		for read := 0; read < 500; {
			<-w.C
			if woken == 0 && time.Since(began) > 0 {
				t.Error("the first event was kept waiting")
			}
			woken++
			for more := true; more; more = !c.Arm(w) { // an event of the same moment may come in between
				got, _ := versions(t, c)
				read += len(got)
			}
		}
		if woken > 51 {
			t.Errorf("the reader was woken %d times", woken)
		}
		// After a pause, the next event wakes at once again.
		time.Sleep(time.Second)
		began = time.Now()
		topic.Append(700, added("a", 700))
		<-w.C
		if time.Since(began) > 0 {
			t.Errorf("an event after a pause was kept waiting for %v", time.Since(began))
		}
	})
}

func TestEventsGrowOldWithoutAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := roomy
		opts.Age = time.Minute
		topic := newTestTopic(opts)
		defer run(topic)()
		topic.Append(101, added("a", 101))
		if s := topic.Stats(); s.Events != 1 || !s.Oldest.Equal(time.Now()) {
			t.Errorf("%+v", s)
		}
		time.Sleep(59 * time.Second)
		if topic.Stats().Events != 1 {
			t.Error("it was dropped too early")
		}
		time.Sleep(15 * time.Second)
		if s := topic.Stats(); s.Events != 0 || s.Bytes != 0 || s.Evicted != 1 || !s.Oldest.IsZero() {
			t.Errorf("it is still there: %+v", s)
		}
		resume(t, topic, 101, AllNamespaces())
	})
}

func TestAppendAllocatesNothingPerReader(t *testing.T) {
	topic := newTestTopic(Options{Events: 100, Bytes: 1 << 20})
	for i := range 1000 {
		c, _ := armed(t, topic, []NamespaceSet{AllNamespaces(), Namespaces("busy"), Namespaces("quiet")}[i%3])
		defer c.Disarm()
	}
	change := Change[*item]{Object: &item{namespace: "busy"}}
	version := uint64(100)
	for range 1000 { // until the ring and the chain have their room
		version++
		topic.Append(version, change)
	}
	if n := testing.AllocsPerRun(1000, func() {
		version++
		topic.Append(version, change)
	}); n > 1 {
		t.Errorf("%v allocations; one, of the event, is needed", n)
	}
}
