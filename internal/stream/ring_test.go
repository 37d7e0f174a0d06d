package stream

import (
	"runtime"
	"testing"
)

// An event also holds the state before it. In a chain of changes of one object each state is held once. If many
// objects change once each, each event holds two states.
func TestRingIsBoundedByAllThatItHolds(t *testing.T) {
	for name, objects := range map[string]int{"one object": 1, "many objects": 1 << 20} {
		const bound = 1000
		topic := newTestTopic(Options{Events: 1 << 20, Bytes: bound})
		states := map[int]*item{}
		for version := uint64(101); version < 600; version++ {
			key := int(version) % objects
			old := states[key]
			if old == nil {
				old = &item{namespace: "a", size: 10}
			}
			states[key] = &item{namespace: "a", version: version, size: 10}
			topic.Append(version, Change[*item]{Type: Modified, Object: states[key], Old: old})
		}
		held, events := map[*item]bool{}, 0
		for seq := topic.ring.evicted.seq; seq < topic.ring.next; seq++ {
			event := topic.ring.at(seq)
			held[event.Object], held[event.Old] = true, true
			events++
		}
		if size := len(held) * 10; size > bound || size < bound-20 || topic.Stats().Bytes != int64(size) {
			t.Errorf("%s: %d bytes in %d events, counted as %d", name, size, events, topic.Stats().Bytes)
		}
		topic.Restart(50)
		if s := topic.Stats(); s.Bytes != 0 || len(topic.ring.held) != 0 {
			t.Errorf("%s: an empty ring holds %d bytes of %d objects", name, s.Bytes, len(topic.ring.held))
		}
	}
}

// An object that ceases to match is told as it last matched. That is one copy per event, and the ring does not count
// it: so nothing may keep it.
func TestWhatCeasesToMatchIsNotHeldByTheRing(t *testing.T) {
	event := &Event[*item]{Pos: 102, Change: Change[*item]{
		Type: Modified, Object: &item{label: "other", version: 102}, Old: &item{label: "web", version: 101},
	}}
	web := func(i *item) bool { return i.label == "web" }
	_, first, _ := event.For(web)
	_, second, _ := event.For(web)
	if first != second || first.version != 102 {
		t.Errorf("%v and %v are made of one event", first, second)
	}
	runtime.GC()
	if event.left.Load().Value() != nil {
		t.Error("the event holds it")
	}
	if _, again, _ := event.For(web); again.version != 102 || again.label != "web" {
		t.Errorf("later it is %v", again)
	}
}
