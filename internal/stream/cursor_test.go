package stream

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuietNamespaceIsNeitherResetNorWoken(t *testing.T) {
	topic := newTestTopic(Options{Events: 50, Bytes: 1 << 20})
	topic.Append(101, added("quiet", 101))
	waiting, asleep := topic.From(topic.Head(), Namespaces("quiet")), NewWakeChannel()
	if !waiting.Arm(asleep) {
		t.Fatal("a cursor at the head cannot be armed")
	}
	defer waiting.Disarm()
	behind := resume(t, topic, 100, Namespaces("quiet")) // never reads

	version := uint64(101)
	for range 100 * 50 {
		version++
		topic.Append(version, added("busy", version))
		topic.wakeReaders(nil)
	}
	if len(asleep.C) > 0 {
		t.Error("the reader of the quiet namespace was woken")
	}
	if read, at := versions(t, waiting); len(read) > 0 || at != version {
		t.Errorf("the reader of the quiet namespace read %v up to %d", read, at)
	}
	if read, _ := versions(t, resume(t, topic, 101, Namespaces("quiet"))); len(read) > 0 {
		t.Errorf("resuming read %v", read)
	}
	if _, err := topic.Resume(UpTo(100), Namespaces("quiet")); !errors.Is(err, ErrExpired) {
		t.Errorf("the quiet namespace's own event was evicted, but resuming before it gives %v", err)
	}
	if _, _, err := behind.Next(make([]*Event[*item], 0, 1), nil); !errors.Is(err, ErrSlow) {
		t.Errorf("the reader that did not read its event gets %v", err)
	}
	if _, err := topic.Resume(UpTo(101), AllNamespaces()); !errors.Is(err, ErrExpired) {
		t.Errorf("the reader of all namespaces gets %v", err)
	}
	topic.Append(version+1, added("quiet", version+1))
	topic.wakeReaders(nil)
	if len(asleep.C) != 1 {
		t.Error("its own event did not wake the reader of the quiet namespace")
	}
}

func TestRelistBurstCutInTheMiddleIsToldAgain(t *testing.T) {
	topic := newTestTopic(roomy)
	topic.Append(101, added("a", 101))
	topic.AppendBurst(110, []Change[*item]{added("a", 104), added("b", 105), added("a", 108)})

	whole := []uint64{104, 105, 108}
	for cut := 1; cut <= len(whole)+1; cut++ {
		c := resume(t, topic, 100, AllNamespaces())
		_, position, err := c.Next(make([]*Event[*item], 0, cut), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := whole
		if cut == len(whole)+1 {
			want = nil // everything was read
		}
		if again, _ := versions(t, resume(t, topic, position, AllNamespaces())); !slices.Equal(again, want) {
			t.Errorf("cut after %d events, resumed after %d: %v, not %v", cut, position, again, want)
		}
	}
}

func TestPositionWithinAGapExpires(t *testing.T) {
	topic := newTestTopic(roomy)
	topic.Append(101, added("a", 101))
	topic.AppendBurst(110, []Change[*item]{added("a", 104)})
	topic.AppendBurst(120, nil) // the relist found no difference, yet something may have come and gone
	topic.Append(121, added("a", 121))

	for version := uint64(99); version <= 122; version++ {
		var want error
		switch {
		case version < 100:
			want = ErrExpired
		case version > 121:
			want = ErrAhead
		case version > 101 && version < 110, version > 110 && version < 120:
			want = ErrExpired
		}
		for _, namespaces := range []NamespaceSet{AllNamespaces(), Namespaces("a"), Namespaces("a", "never")} {
			if _, err := topic.Resume(UpTo(version), namespaces); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("resuming after %d gives %v, not %v", version, err, want)
			}
		}
	}
}

func TestGapThatIsForgottenExpiresAllBeforeIt(t *testing.T) {
	topic := newTestTopic(roomy)
	topic.Append(101, added("a", 101))
	for i := range uint64(maxGaps + 1) {
		topic.AppendBurst(110+10*i, nil)
	}
	for version, want := range map[uint64]error{101: ErrExpired, 105: ErrExpired, 110: nil, 115: ErrExpired, 120: nil} {
		for _, namespaces := range []NamespaceSet{AllNamespaces(), Namespaces("a"), Namespaces("never")} {
			if _, err := topic.Resume(UpTo(version), namespaces); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("resuming %v after %d gives %v, not %v", namespaces, version, err, want)
			}
		}
	}
}

// When a lease ends, etcd deletes all that was bound to it in one revision, so several events share one version.
func TestEventsOfOneVersionAreNotLostBetweenThem(t *testing.T) {
	topic := newTestTopic(Options{Events: 3, Bytes: 1 << 20})
	topic.Append(101, added("a", 1))
	c := topic.From(topic.Head(), AllNamespaces())
	for _, serial := range []uint64{2, 3, 4} {
		topic.Append(101, added("a", serial))
	}
	if read, _ := versions(t, c); !slices.Equal(read, []uint64{2, 3, 4}) {
		t.Errorf("the cursor read %v", read)
	}
	if read, _ := versions(t, resume(t, topic, 101, AllNamespaces())); !slices.Equal(read, []uint64{2, 3, 4}) {
		t.Errorf("who was told the first event of the version gets %v", read)
	}
	if _, err := topic.Resume(UpTo(100), AllNamespaces()); !errors.Is(err, ErrExpired) {
		t.Errorf("the first event of the version was evicted, but resuming before it gives %v", err)
	}
	topic.Append(102, added("a", 5))
	if _, err := topic.Resume(UpTo(101), AllNamespaces()); !errors.Is(err, ErrExpired) {
		t.Errorf("an event of the version was evicted that may not have been told, but resuming after it gives %v", err)
	}
}

func TestCursorFromBeforeTheFirstListIsNotLeftBehind(t *testing.T) {
	topic := NewTopic[*item](roomy)
	head := topic.Head()
	topic.Begin(100)
	if _, _, err := topic.From(head, AllNamespaces()).Next(make([]*Event[*item], 0, 1), nil); !errors.Is(err, ErrSlow) {
		t.Errorf("it gets %v, and would never know of the first list", err)
	}
}

func TestRestartEndsAllCursors(t *testing.T) {
	topic := newTestTopic(roomy)
	topic.Append(150, added("a", 150))
	all, some, asleep := topic.From(topic.Head(), AllNamespaces()), topic.From(topic.Head(), Namespaces("a")), NewWakeChannel()
	all.Arm(asleep)
	topic.Restart(120)
	topic.wakeReaders(nil)
	if len(asleep.C) != 1 {
		t.Error("a reader sleeps on in a history that has ended")
	}
	for _, c := range []*Cursor[*item]{all, some} {
		if _, _, err := c.Next(make([]*Event[*item], 0, 1), nil); !errors.Is(err, ErrEpoch) {
			t.Errorf("a cursor of the old history gets %v", err)
		}
		if c.Arm(asleep) {
			t.Error("a cursor of the old history can be armed")
		}
	}
}

func TestEventLargerThanTheTopicReachesThoseWhoKeepUp(t *testing.T) {
	topic := newTestTopic(Options{Events: 10, Bytes: 100})
	c := topic.From(topic.Head(), AllNamespaces())
	for version := uint64(101); version < 110; version++ {
		topic.Append(version, Change[*item]{Object: &item{version: version, size: 1000}})
		if read, _ := versions(t, c); !slices.Equal(read, []uint64{version}) {
			t.Fatalf("the reader that keeps up reads %v, not %d", read, version)
		}
	}
	if s := topic.Stats(); s.Events != 1 || s.Bytes != 1000 || s.Evicted != 8 {
		t.Errorf("more is kept than the newest: %+v", s)
	}
	if _, err := topic.Resume(UpTo(107), AllNamespaces()); !errors.Is(err, ErrExpired) {
		t.Errorf("resuming before what was evicted gives %v", err)
	}
}

func TestBurstLargerThanTheTopicTakesNoRoom(t *testing.T) {
	topic := newTestTopic(Options{Events: 20, Bytes: 1 << 20})
	var burst []Change[*item]
	for range 1000 {
		burst = append(burst, added("a", 101))
	}
	topic.AppendBurst(101, burst)
	if n := len(topic.ring.slots); n > 21 {
		t.Errorf("the ring has room for %d events", n)
	}
	if _, err := topic.Resume(UpTo(100), Namespaces("a")); !errors.Is(err, ErrExpired) {
		t.Errorf("resuming before a burst of which a part was evicted gives %v", err)
	}
	if read, _ := versions(t, resume(t, topic, 101, Namespaces("a"))); len(read) > 0 {
		t.Errorf("after the burst, %d events are told", len(read))
	}
}

func TestForgottenNamespacesExpireButMissNothing(t *testing.T) {
	topic := newTestTopic(Options{Events: 100, Bytes: 1 << 20})
	type place struct {
		cursor  *Cursor[*item]
		version uint64
	}
	var places []place
	version := uint64(100)
	name := func(i int) string { return fmt.Sprint("n", i) }
	for i := range 2 * maxChains {
		places = append(places, place{topic.From(topic.Head(), Namespaces(name(i))), version})
		version++
		topic.Append(version, added(name(i), version))
	}
	if n := len(topic.chains); n > maxChains+1 {
		t.Errorf("%d namespaces are remembered", n)
	}
	kept := 0
	for i, p := range places {
		own := p.version + 1
		batch, _, err := p.cursor.Next(make([]*Event[*item], 0, 9), nil)
		switch {
		case errors.Is(err, ErrSlow):
		case err != nil || len(batch) != 1 || batch[0].Pos != own:
			t.Fatalf("the cursor of %s got %v and %v", name(i), batch, err)
		default:
			kept++
		}
		c, err := topic.Resume(UpTo(p.version), Namespaces(name(i)))
		if errors.Is(err, ErrExpired) {
			continue
		}
		if read, _ := versions(t, c); err != nil || !slices.Equal(read, []uint64{own}) {
			t.Fatalf("resuming in %s got %v and %v", name(i), read, err)
		}
	}
	if kept != 100 {
		t.Errorf("%d events could be read of 100 that are kept", kept)
	}
}

func TestNamespacesComeInTheOrderOfLists(t *testing.T) {
	got := Namespaces("team", "b", "team-a", "team", "a.b", "a").Namespaces()
	if want := []string{"a.b", "a", "b", "team-a", "team"}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// Until returns what the cursor would have read up to the head, and nothing that came later.
func TestUntilIsWhatWouldHaveBeenRead(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		topic := newTestTopic(Options{Events: 40, Bytes: 1 << 20})
		version := uint64(100)
		grow := func(n int) {
			for range n {
				version++
				switch random.IntN(8) {
				case 0:
					topic.AppendBurst(version+3, []Change[*item]{added("a", version), added("b", version+1)})
					version += 3
				case 1:
					topic.Progress(version)
				default:
					topic.Append(version, added([]string{"a", "b", "c"}[random.IntN(3)], version))
				}
			}
		}
		grow(random.IntN(20))
		namespaces := []NamespaceSet{AllNamespaces(), Namespaces("a"), Namespaces("a", "c"), Namespaces("absent")}[random.IntN(4)]
		known := UpTo(topic.Head().Version - min(topic.Head().Version-100, uint64(random.IntN(12))))
		one, err := topic.Resume(known, namespaces)
		other, _ := topic.Resume(known, namespaces)
		if err != nil {
			continue // within a gap
		}
		grow(random.IntN(60))
		want, _, wantErr := other.Next(make([]*Event[*item], 0, 1000), nil)
		head := topic.Head()
		grow(random.IntN(2))
		if wantErr != nil {
			head = topic.Head() // the later ones may have been evicted meanwhile
		}
		pending, pendingErr := one.Pending(head)
		got, err := one.Until(head) // which is the same, since Pending has read nothing
		if !slices.Equal(pending, got) || !errors.Is(pendingErr, err) {
			t.Fatalf("seed %d: %d events pending, %v; read are %d, %v", seed, len(pending), pendingErr, len(got), err)
		}
		if (err == nil) != (wantErr == nil) && head == topic.Head() || err == nil && !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d events, %v; want %d, %v", seed, len(got), err, len(want), wantErr)
		}
	}
	topic := newTestTopic(roomy)
	c := topic.From(topic.Head(), AllNamespaces())
	topic.Restart(50)
	if _, err := c.Until(topic.Head()); !errors.Is(err, ErrEpoch) {
		t.Errorf("of another epoch: %v", err)
	}
}
