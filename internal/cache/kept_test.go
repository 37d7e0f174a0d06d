package cache

import (
	"testing"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// A catch-up that is kept ends at some version. Who has been further has it read again, or a stretch would be missing.
func TestKeptCatchUpServesOnlyWhomItLeadsFarEnough(t *testing.T) {
	topic := stream.NewTopic[*cluster.Object](roomy)
	topic.Begin(100)
	kept, by := &keptCatchUps{bound: 1 << 20}, &catchUps{}
	f := &flight{after: 90, result: &CatchUp{After: 90, Head: topic.Head()}}
	kept.put(by, f)
	for _, c := range []struct {
		after, least uint64
		serves       bool
	}{{90, 0, true}, {95, 0, true}, {95, 100, true}, {100, 100, true}, {95, 101, false}, {101, 0, false}, {89, 0, false}} {
		if got := kept.get(by, topic, c.after, c.least); (got == f) != c.serves {
			t.Errorf("after %d, at least up to %d: %t", c.after, c.least, got == f)
		}
	}
	if kept.get(&catchUps{}, topic, 95, 0) != nil {
		t.Error("another store is served")
	}
}

// Between the end of a store and its removal somebody may ask for its kind.
func TestStoreThatHasEndedIsNotHandedOut(t *testing.T) {
	kinds, err := NewKinds(apitest.New(pods).Connect(t), Options{Topic: roomy}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ended, err := newStore(pods, roomy, nil, func() {}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ended.end("its definition was removed")
	kinds.stores[pods] = &running{store: ended, users: map[string]int{}, stop: func() {}}
	go func() {
		select {
		case <-kinds.start:
		case <-t.Context().Done():
		}
	}()
	store, release, err := kinds.Use(pods, "ann")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if store == ended || store.Err() != nil {
		t.Error("the store has ended already")
	}
}
