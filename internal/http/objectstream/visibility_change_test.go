package objectstream

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/stream"
)

// TestWhatAClientMayHaveBeenToldIsTakenBack: between the two versions of its position, a client was
// told some of the events, and nobody knows which. An object that came there, and may not be seen
// any more, must not stay with it.
func TestWhatAClientMayHaveBeenToldIsTakenBack(t *testing.T) {
	w := watchedPods(t)
	w.put("a/one", "1")
	both := visible("a", "b")
	first, _ := w.begin(both, eventstream.From{}, watchRequest{})
	first.readUntil("synced")
	known := first.source.(*watch).claim().All
	for _, name := range []string{"b/maybe-1", "b/maybe-2", "b/never"} {
		w.put(name, "1")
	}
	first.readUntil("added never")
	some := first.source.(*watch).claim().All - 1
	claim := stream.Claim{Known: stream.Known{All: known, Some: some}, Visibility: both.Name()}
	c, reset := w.begin(both, eventstream.From{Known: true, Named: true, Claim: claim}, watchRequest{})
	c.source.Permit(visible("a"))
	c.read()
	if reset != "" {
		t.Fatal(reset)
	}
	wants(t, "the change", c.events(), "narrowed", "narrowed", "deleted maybe-1", "deleted maybe-2", "bookmark")
}

// TestKindThatEndsWhileItIsReadIsNoticed: a kind ends after it was looked whether it has, and before the cursor waits.
func TestKindThatEndsWhileItIsReadIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchedPods(t)
		w.put("a/one", "1")
		c, _ := w.begin(nil, eventstream.From{}, watchRequest{conflate: time.Second})
		c.readUntil("synced")
		w.put("a/one", "2")
		c.readUntil("modified one")
		w.put("a/one", "3")
		synctest.Wait()
		c.read() // it is held back
		time.Sleep(2 * time.Second)
		c.relay = func() eventstream.Outcome {
			c.relay = nil
			w.api.Delete("pods", "a/one")
			w.api.Serve(pods, false)
			for store := c.source.(*watch).Store; store.Err() == nil; {
				time.Sleep(time.Second)
			}
			return eventstream.GoOn
		}
		for end := time.Now().Add(time.Minute); ; {
			p := c.source.Read(t.Context(), c)
			if p.Outcome == eventstream.Gone {
				break
			}
			if !p.More || time.Now().After(end) {
				t.Fatalf("%+v, and nothing will wake it; told: %v", p, c.events())
			}
		}
		told := slices.DeleteFunc(c.events(), func(event string) bool { return event == "stale" }) // it may be known that its watch has ended
		wants(t, "before the end", told, "added one", "synced", "modified one", "modified one", "deleted one")
	})
}
