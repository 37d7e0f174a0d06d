package objectstream

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

var pods = cluster.Kind{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true, Watchable: true}

// patience is how long what must happen may take on a machine that is busy.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told is one event that a client was told, and the position that it had with it.
type told struct {
	event    string
	version  string // of its object
	position stream.Claim
}

// client is a Sink without a session: it keeps what it is told.
type client struct {
	t           *testing.T
	source      eventstream.Source
	wakes       *stream.WakeChannel
	form        eventstream.Encoder
	nonBlocking bool
	relay       func() eventstream.Outcome // nil: it goes on
	told        []told
}

func (c *client) Wake()                  { c.wakes.Wake() }
func (c *client) Step(int) bool          { return true }
func (c *client) NonBlocking() bool      { return c.nonBlocking }
func (c *client) Outgrowing(func() bool) {}

func (c *client) Spawn(do func(context.Context)) context.CancelFunc {
	do(context.Background())
	return func() {}
}

func (c *client) Relay() eventstream.Outcome {
	if c.relay == nil {
		return eventstream.GoOn
	}
	return c.relay()
}

// Emit keeps the event's name, and the object's if it has one.
func (c *client) Emit(e eventstream.Event, claim stream.Claim) {
	text := string(c.form.Encode(nil, e))
	name, data, _ := strings.Cut(strings.TrimPrefix(text, "event: "), "\ndata: ")
	if _, object, is := strings.Cut(data, `"name":"`); is {
		object, _, _ = strings.Cut(object, `"`)
		name += " " + object
	}
	_, version, _ := strings.Cut(data, `"resourceVersion":"`)
	version, _, _ = strings.Cut(version, `"`)
	c.told = append(c.told, told{name, version, claim})
}

func (c *client) events() (all []string) {
	for _, t := range c.told {
		all = append(all, t.event)
	}
	return all
}

// read reads until there is nothing more.
func (c *client) read() {
	c.t.Helper()
	for {
		switch p := c.source.Read(c.t.Context(), c); {
		case p.Outcome != eventstream.GoOn:
			c.t.Fatalf("the stream ends as %s", p.Outcome)
		case p.Missed != "":
			c.Emit(eventstream.Event{Kind: eventstream.KindReset, Name: p.Missed}, p.Claim)
		case !p.More:
			return
		}
	}
}

// readUntil reads until an event was told.
func (c *client) readUntil(event string) {
	c.t.Helper()
	for end := time.After(patience); ; {
		if c.read(); slices.Contains(c.events(), event) {
			return
		}
		select {
		case <-c.wakes.C:
		case <-end:
			c.t.Fatalf("never: %s, only %v", event, c.events())
		}
	}
}

// watched is a store of pods, and who may see them.
type watched struct {
	t     *testing.T
	api   *apitest.API
	kinds *cache.Kinds
}

func watchedPods(t *testing.T) *watched {
	w := &watched{t: t, api: apitest.New(pods)}
	var err error
	w.kinds, err = cache.NewKinds(w.api.Connect(t), cache.Options{
		Topic:   stream.Options{Events: 1000, Bytes: 64 << 20, Age: time.Hour},
		CatchUp: cache.CatchUpBound{Events: 1000, Bytes: 64 << 20, Timeout: patience},
	}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.kinds.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

func (w *watched) put(name, value string) {
	w.api.Put("pods", name, "metadata.labels.v="+value)
}

// visible is what a caller sees who may see some namespaces; none means all.
func visible(namespaces ...string) *visibility.Visibility {
	v, _ := visibility.Of(auth.Scope{All: len(namespaces) == 0, Namespaces: namespaces}, visibility.Target{}, pods)
	return v
}

// begin puts a client where it comes from.
func (w *watched) begin(v *visibility.Visibility, from eventstream.From, request watchRequest) (c *client, reset string) {
	w.t.Helper()
	c = w.open(v, request)
	c.source.Find(w.t.Context(), from)
	_, reset = c.source.Begin(eventstream.Freshness{})
	return c, reset
}

// open opens a watch that can be read.
func (w *watched) open(v *visibility.Visibility, request watchRequest) *client {
	w.t.Helper()
	store, release, err := w.kinds.Use(pods, "alice")
	if err != nil {
		w.t.Fatal(err)
	}
	request.target = visibility.Target{Version: "v1", Resource: "pods"}
	s := newWatch(nil, &auth.Identity{}, request, access.Grant{Kinds: w.kinds, Store: store, Visible: v, Release: release})
	w.t.Cleanup(s.Close)
	if err := s.Ready(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return &client{t: w.t, source: s, wakes: stream.NewWakeChannel(), form: eventstream.ServerSentEvents(budget.NewMemory(1<<20), "alice")}
}

func wants(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, not %q", what, got, want)
	}
}

// TestWatchIsResumedBehindEachEvent: whoever is cut off behind any event, and comes back with the
// position that came with it, is told what follows, and nothing twice.
func TestWatchIsResumedBehindEachEvent(t *testing.T) {
	w := watchedPods(t)
	w.put("a/one", "1")
	c, _ := w.begin(nil, eventstream.From{}, watchRequest{})
	c.readUntil("synced")
	for i := range 5 {
		w.put(fmt.Sprintf("a/next-%d", i), "1")
		w.put("a/one", fmt.Sprint("again ", i))
	}
	w.api.Delete("pods", "a/one")
	w.put("b/last", "1")
	c.readUntil("added last")
	all := c.told
	for i, t0 := range all {
		if t0.position.All == 0 {
			continue
		}
		again, reset := w.begin(nil, eventstream.From{Known: true, Named: true, Claim: t0.position}, watchRequest{})
		again.read()
		if reset != "" || !slices.Equal(again.events(), c.events()[i+1:]) {
			t.Errorf("behind %s at %+v: reset %q, %q", t0.event, t0.position, reset, again.events())
		}
	}
}

// TestWhatAClientDoesOnceItIsAnsweredIsToldAsAChange, however late its watch is read.
func TestWhatAClientDoesOnceItIsAnsweredIsToldAsAChange(t *testing.T) {
	w := watchedPods(t)
	w.put("a/one", "1")
	w.put("b/two", "1")
	other, _ := w.begin(nil, eventstream.From{}, watchRequest{})
	other.readUntil("added two")
	state, quiet, lost := w.open(nil, watchRequest{}), w.open(nil, watchRequest{quiet: true}), w.open(visible("a", "b"), watchRequest{})
	for _, c := range []*client{state, quiet, lost} {
		c.source.(*watch).pin() // and the client is answered
	}
	w.put("a/one", "2")
	w.put("a/late", "1")
	other.readUntil("added late")
	lost.source.Permit(visible("a"))
	for _, c := range []*client{state, quiet, lost} {
		c.source.Find(t.Context(), eventstream.From{})
		c.source.Begin(eventstream.Freshness{})
		c.read()
	}
	wants(t, "with the state", state.events(), "added one", "added two", "synced", "modified one", "added late")
	wants(t, "without it", quiet.events(), "modified one", "added late")
	wants(t, "of which less may be seen by now", lost.events(), "narrowed", "narrowed", "added late", "added one", "synced")
}

// TestWatchLeavesToOthersWhatTakesLong: a worker that told a snapshot would let all other streams wait.
func TestWatchLeavesToOthersWhatTakesLong(t *testing.T) {
	w := watchedPods(t)
	w.put("a/one", "1")
	c, _ := w.begin(nil, eventstream.From{}, watchRequest{})
	c.nonBlocking = true
	if p := c.source.Read(t.Context(), c); p.Outcome != eventstream.WouldBlock || len(c.told) != 0 {
		t.Errorf("%+v, %v", p, c.events())
	}
	c.nonBlocking = false
	c.read()
	wants(t, "then", c.events(), "added one", "synced")
	c.source.Permit(visible("b"))
	c.nonBlocking = true
	if p := c.source.Read(t.Context(), c); p.Outcome != eventstream.WouldBlock || len(c.told) != 2 {
		t.Errorf("%+v, %v", p, c.events())
	}
}

// TestNarrowedWatchHasNoPlaceWithinItsSnapshot: who is told which part of a kind it may see has no
// position yet, and would begin anew at another replica.
func TestNarrowedWatchHasNoPlaceWithinItsSnapshot(t *testing.T) {
	w := watchedPods(t)
	w.put("a/one", "1")
	c := w.open(visible("a"), watchRequest{})
	c.source.Find(t.Context(), eventstream.From{})
	claim, _ := c.source.Begin(eventstream.Freshness{})
	if claim.IsPlaced() {
		t.Errorf("it has a place at %+v", claim)
	}
	c.read()
	if claim = c.told[len(c.told)-1].position; !claim.IsPlaced() {
		t.Errorf("it has none behind its snapshot, at %+v", claim)
	}
}

// TestWatchGoesOverToOtherPermissionsAtOneVersion, and no position of the way there is of use to anybody.
func TestWatchGoesOverToOtherPermissionsAtOneVersion(t *testing.T) {
	w := watchedPods(t)
	w.put("a/one", "1")
	w.put("b/two", "1")
	w.put("c/three", "1")
	c, _ := w.begin(visible("a", "b"), eventstream.From{}, watchRequest{})
	c.readUntil("synced")
	wants(t, "the state", c.events(), "narrowed", "added one", "added two", "synced")
	c.told = nil
	w.put("b/two", "2")
	w.put("c/secret", "1")
	w.put("a/lost", "1")
	other, _ := w.begin(nil, eventstream.From{}, watchRequest{})
	other.readUntil("added lost")
	c.source.Permit(visible("b", "c"))
	c.read()
	wants(t, "the change", c.events(), "modified two", "narrowed", "deleted one", "widened", "added secret", "added three", "bookmark")
	for i, t0 := range c.told {
		from := eventstream.From{Known: true, Named: true, Claim: t0.position}
		_, reset := w.begin(visible("b", "c"), from, watchRequest{})
		if last := i == len(c.told)-1; last != (reset == "") {
			t.Errorf("behind %s at %+v: reset %q", t0.event, t0.position, reset)
		}
	}
	w.put("a/unseen", "1")
	w.put("c/three", "2")
	c.readUntil("modified three")
	wants(t, "from then on", c.events()[7:], "modified three")
}

// TestWhatWasMadeAnewAndLostIsTakenBack: a client was told by another replica, in the midst of a
// relist's difference, that an object was made anew. If the new one may not be seen any more, it is
// told so of both, since it may know either.
func TestWhatWasMadeAnewAndLostIsTakenBack(t *testing.T) {
	w := watchedPods(t)
	w.put("a/one", "1")
	w.put("b/again", "1")
	c, _ := w.begin(visible("a", "b"), eventstream.From{}, watchRequest{})
	c.readUntil("synced")
	known := c.told[len(c.told)-1].position
	w.api.Delete("pods", "b/again")
	w.put("b/again", "2")
	w.put("a/one", "2")
	c.readUntil("modified one")
	known.Some = c.told[len(c.told)-1].position.All // it was told some of that
	other, reset := w.begin(visible("a", "b"), eventstream.From{Known: true, Named: true, Claim: known}, watchRequest{})
	other.source.Permit(visible("a"))
	other.read()
	wants(t, "reset "+reset, other.events(), "narrowed", "modified one", "narrowed", "deleted again", "deleted again", "bookmark")
}

// TestWatchThatIsStoppedInTheMiddleGoesOnThere: what was read and not told is not passed over.
func TestWatchThatIsStoppedInTheMiddleGoesOnThere(t *testing.T) {
	w := watchedPods(t)
	c, _ := w.begin(nil, eventstream.From{}, watchRequest{})
	c.readUntil("synced")
	for i := range 9 {
		w.put(fmt.Sprint("a/", i), "1")
	}
	other, _ := w.begin(nil, eventstream.From{}, watchRequest{})
	other.readUntil("added 8")
	c.told = nil
	c.relay = func() eventstream.Outcome { return eventstream.WouldBlock }
	for i := range 9 {
		if p := c.source.Read(t.Context(), c); p.Outcome != eventstream.WouldBlock || len(c.told) != i+1 {
			t.Fatalf("after %d: %+v, %v", i, p, c.events())
		}
	}
	wants(t, "in pieces", c.events(), "added 0", "added 1", "added 2", "added 3", "added 4", "added 5", "added 6", "added 7", "added 8")
}

// TestWhoIsCutOffWhileBeingToldAgainEndsWithTheState: a relist elsewhere told a client some, or all, of what lies up to a
// version. It is told that again from the beginning here, which takes what it has back, and is cut off behind any event
// of it, and again. What it was told first is then not what it has.
func TestWhoIsCutOffWhileBeingToldAgainEndsWithTheState(t *testing.T) {
	w := watchedPods(t)
	var states []map[string]string // from the beginning on, one a version
	note := func() {
		state := map[string]string{}
		for key, text := range w.api.Objects("pods") {
			_, version, _ := strings.Cut(text, `"resourceVersion":"`)
			state[strings.TrimPrefix(key, "a/")], _, _ = strings.Cut(version, `"`)
		}
		states = append(states, state)
	}
	w.put("a/one", "1")
	first := w.api.Version()
	note()
	for _, change := range []func(){
		func() { w.put("a/two", "1") },
		func() { w.put("a/one", "2") },
		func() { w.api.Delete("pods", "a/two") },
		func() { w.put("a/two", "2") },
		func() { w.put("a/two", "3") },
		func() { w.api.Delete("pods", "a/one") },
		func() { w.put("a/one", "3") },
		func() { w.api.Delete("pods", "a/one", "a/two") }, // at one version
		func() { w.put("a/two", "4") },
		func() { w.put("a/one", "4") },
		func() { w.put("a/last", "1") },
	} {
		change()
		note()
	}
	c, _ := w.begin(nil, eventstream.From{}, watchRequest{})
	c.readUntil("added last")

	for all := range states {
		for some := all; some < len(states); some++ {
			known := stream.Known{All: first + uint64(all), Some: first + uint64(some)}
			end := states[len(states)-1]
			w.cutOff(fmt.Sprintf("%d to %d", all, some), states[some], stream.Claim{Known: known}, end, 2)
			if some != all+1 { // or it was told the only event of that version
				w.cutOff(fmt.Sprintf("%d, some to %d", all, some), states[all], stream.Claim{Known: known}, end, 2)
			}
		}
	}
}

// cutOff tells a client that has something what follows its position, and cuts it off behind each event of that.
func (w *watched) cutOff(story string, has map[string]string, claim stream.Claim, want map[string]string, times int) {
	c, reset := w.begin(nil, eventstream.From{Known: true, Named: true, Claim: claim}, watchRequest{})
	c.read()
	if reset != "" {
		w.t.Fatalf("%s: reset %s", story, reset)
	}
	has = maps.Clone(has)
	for _, t := range c.told {
		what, name, _ := strings.Cut(t.event, " ")
		switch what {
		case "added", "modified":
			has[name] = t.version
		case "deleted":
			delete(has, name)
		}
		story := fmt.Sprintf("%s, %s@%s (%d-%d)", story, t.event, t.version, t.position.All, t.position.Some)
		if times > 0 {
			w.cutOff(story+", cut off", has, t.position, want, times-1)
		}
	}
	c.source.Close()
	if !maps.Equal(has, want) {
		w.t.Fatalf("%s: then it has %v, not %v", story, has, want)
	}
}
