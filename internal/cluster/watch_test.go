package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// journal is a Health that records its calls.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) Up(int64) { j.write("up") }

func (j *journal) Down(err error) { j.write("down: " + err.Error()) }

func (j *journal) write(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// take returns what was recorded since the last call.
func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

// readWatch reads a watch's body to its end. It returns the events by name, the calls of Health, and the objects.
func readWatch(kind Kind, body io.Reader, from uint64) (events, health []string, objects []*Object) {
	ctx, cancel := context.WithCancel(context.Background())
	j := &journal{}
	w := watcherOf(kind, body, j)
	w.cancel = cancel
	var marker *Object
	if from > 0 {
		marker = newMarker(from)
	}
	go w.run(ctx, marker)
	defer w.Stop()
	for e := range w.ResultChan() {
		switch o := e.Object.(type) {
		case *metav1.Status:
			events = append(events, fmt.Sprintf("%s %d", e.Type, o.Code))
		case *Object:
			name := o.Key()
			if o.IsMarker() {
				if name = "marker"; o.Proves() != 0 {
					name = "proof"
				}
			} else {
				objects = append(objects, o)
			}
			events = append(events, fmt.Sprintf("%s %s@%d", e.Type, name, o.Version()))
		}
	}
	return events, j.take(), objects
}

func watcherOf(kind Kind, body io.Reader, health Health) *watcher {
	return &watcher{
		compactor:    compactor{kind: kind},
		body:         io.NopCloser(body),
		lw:           &ListWatch{kind: kind, health: health},
		livenessGate: livenessGate{up: func() { health.Up(1) }},
		result:       make(chan watch.Event),
		done:         make(chan struct{}),
		number:       1,
	}
}

func line(kind, name string, version int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","metadata":{"name":%q,"namespace":"n","resourceVersion":"%d"}}}`+"\n", kind, name, version)
}

func bookmarkLine(version int) string {
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}`+"\n", version)
}

const gone = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}}` + "\n"

func TestWatchEvents(t *testing.T) {
	for _, test := range []struct {
		name   string
		body   string
		from   uint64
		events []string
		health []string // beginnings
	}{
		{
			name: "a bookmark is followed by its marker", from: 5,
			body:   line("ADDED", "a", 6) + bookmarkLine(9) + line("DELETED", "a", 10),
			events: []string{"MODIFIED marker@5", "ADDED n/a@6", "BOOKMARK marker@9", "MODIFIED proof@9", "DELETED n/a@10"},
			health: []string{"up"},
		},
		{
			name: "an expired version", from: 5, body: gone,
			events: []string{"MODIFIED marker@5", "ERROR 410"},
			health: []string{"down: too old resource version"},
		},
		{
			name: "a watch that expires on the way", from: 5, body: line("ADDED", "a", 6) + gone + line("ADDED", "b", 7),
			events: []string{"MODIFIED marker@5", "ADDED n/a@6", "ERROR 410"},
			health: []string{"up", "down: too old resource version"},
		},
		{
			name: "a watch that ends as soon as it begins", from: 5, body: "",
			events: []string{"MODIFIED marker@5", "ERROR 500"},
			health: []string{"down: the watch ended as soon as it began"},
		},
		{
			name: "a proxy's page", from: 5, body: "<html>",
			events: []string{"MODIFIED marker@5", "ERROR 500"},
			health: []string{"down: the watch ended as soon as it began"},
		},
		{
			name: "nonsense between events", from: 5, body: line("ADDED", "a", 6) + "}" + line("ADDED", "b", 7),
			events: []string{"MODIFIED marker@5", "ADDED n/a@6", "ERROR 500"},
			health: []string{"up", "down: jsontext"},
		},
		{
			name: "an unknown event", from: 5, body: line("RENAMED", "a", 6),
			events: []string{"MODIFIED marker@5", "ERROR 500"},
			health: []string{`down: a watch event of the unknown type "RENAMED"`},
		},
		{
			name: "an event that is none", from: 5, body: "5\n",
			events: []string{"MODIFIED marker@5", "ERROR 500"},
			health: []string{"down: a watch event of the unknown type"},
		},
		{
			name: "an event without an object", from: 5, body: `{"type":"ADDED"}`,
			events: []string{"MODIFIED marker@5", "ERROR 500"},
			health: []string{"down: reading a watch event"},
		},
		{
			name: "an object without a version", from: 5, body: `{"type":"ADDED","object":{"metadata":{"name":"a"}}}`,
			events: []string{"MODIFIED marker@5", "ERROR 500"},
			health: []string{"down: reading a watch event: pods: object a: resourceVersion"},
		},
		{
			name: "a bookmark without a version", from: 5, body: `{"type":"BOOKMARK","object":{"metadata":{}}}`,
			events: []string{"MODIFIED marker@5", "ERROR 500"},
			health: []string{"down: reading a bookmark"},
		},
		{
			name: "an error that is none", from: 5, body: `{"type":"ERROR","object":[]}`,
			events: []string{"MODIFIED marker@5", "ERROR 500"},
			health: []string{"down: reading a watch's error"},
		},
	} {
		events, health, _ := readWatch(pods, strings.NewReader(test.body), test.from)
		if !slices.Equal(events, test.events) {
			t.Errorf("%s: events %q", test.name, events)
		}
		if !slices.EqualFunc(health, test.health, strings.HasPrefix) {
			t.Errorf("%s: health %q", test.name, health)
		}
	}
}

// A broken connection is no reason to list again: client-go goes on from the last event.
func TestConnectionThatBreaksIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := io.MultiReader(strings.NewReader(line("ADDED", "a", 6)), iotest.ErrReader(errors.New("connection reset by peer")))
		events, health, _ := readWatch(pods, body, 5)
		if want := []string{"MODIFIED marker@5", "ADDED n/a@6"}; !slices.Equal(events, want) {
			t.Errorf("%q", events)
		}
		if len(health) != 2 || health[0] != "up" || !strings.HasPrefix(health[1], "down: the watch broke off: ") || !strings.HasSuffix(health[1], "connection reset by peer") {
			t.Errorf("%q", health)
		}
		// Nor is the end of a quiet watch that lasted for a while. The second marker says that it has.
		events, health, _ = readWatch(pods, &patient{}, 5)
		if want := []string{"MODIFIED marker@5", "MODIFIED proof@5"}; !slices.Equal(events, want) || !slices.Equal(health, []string{"up"}) {
			t.Errorf("%q, %q", events, health)
		}
	})
}

// TestProofComesBehindWhatWasMissed: no event proves that all is there that was missed while there
// was no watch. A bookmark does, and that nothing has come for a while.
func TestProofComesBehindWhatWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := line("ADDED", "a", 6) + line("ADDED", "b", 7)
		for name, test := range map[string]struct {
			body io.Reader
			want []string
		}{
			"cut off":    {strings.NewReader(events), nil},
			"a bookmark": {strings.NewReader(events + line("BOOKMARK", "", 9)), []string{"BOOKMARK marker@9", "MODIFIED proof@9"}},
			"quiet":      {io.MultiReader(strings.NewReader(events), &patient{}), []string{"MODIFIED proof@7"}},
		} {
			got, _, _ := readWatch(pods, test.body, 5)
			if want := append([]string{"MODIFIED marker@5", "ADDED n/a@6", "ADDED n/b@7"}, test.want...); !slices.Equal(got, want) {
				t.Errorf("%s: %q", name, got)
			}
		}
	})
}

// TestWatchThatIsLostIsNotProved by the quiet before its end, when the one is noticed just after the other.
func TestWatchThatIsLostIsNotProved(t *testing.T) {
	j := &journal{}
	w := watcherOf(pods, strings.NewReader(""), j)
	w.result = make(chan watch.Event, 2)
	w.deliver(t.Context(), watch.Modified, newMarker(5))
	w.livenessGate.cancel()
	w.prove(t.Context(), false)
	if health := j.take(); len(w.result) != 1 || len(health) != 0 {
		t.Errorf("%d events are delivered, and health is %q", len(w.result), health)
	}
}

// TestProofIsNeverOlderThanWhatCameBeforeIt, also if a watch has been quiet for long enough in the
// moment in which an event comes: client-go would go on from the older version.
func TestProofIsNeverOlderThanWhatCameBeforeIt(t *testing.T) {
	event := strings.TrimSpace(line("ADDED", "a", 6))
	for range 500 {
		w := watcherOf(pods, strings.NewReader(""), &journal{})
		w.passed = 5
		var both sync.WaitGroup
		both.Go(func() {
			if err := w.event(t.Context(), []byte(event)); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() { w.prove(t.Context(), false) })
		runtime.Gosched() // so that both are under way
		first, second := (<-w.result).Object.(*Object), (<-w.result).Object.(*Object)
		if both.Wait(); second.Version() < first.Version() {
			t.Fatalf("behind version %d came %d", first.Version(), second.Version())
		}
	}
}

// patient is a body that ends after a while.
type patient struct{}

func (*patient) Read([]byte) (int, error) {
	time.Sleep(2 * time.Second)
	return 0, io.EOF
}

func TestWatchCutAnywhereNeverTellsAWrongObject(t *testing.T) {
	var body string
	var ends []int // where each event is complete
	var want []string
	for i, item := range items {
		if item.kind == secrets || item.name == "huge" || item.name == "indented" {
			continue
		}
		body += `{"type":"MODIFIED","object":` + item.sent + `}`
		ends = append(ends, len(body))
		compact := compactor{kind: crds}
		o, err := compact.object([]byte(item.sent))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("MODIFIED %s@7", o.Key()))
		if i%3 == 0 {
			body += "\n"
		}
	}
	for cut := range len(body) + 1 {
		complete := 0
		for complete < len(ends) && ends[complete] <= cut {
			complete++
		}
		events, health, objects := readWatch(crds, strings.NewReader(body[:cut]), 0)
		within := strings.TrimSpace(body[:cut]) != "" && (complete == 0 || strings.TrimSpace(body[ends[complete-1]:cut]) != "")
		switch {
		case complete == 0:
			if len(events) != 1 || events[0] != "ERROR 500" {
				t.Fatalf("cut after %d bytes: %q", cut, events)
			}
		case !slices.Equal(events, want[:complete]):
			t.Fatalf("cut after %d bytes: %q", cut, events)
		case health[0] != "up" || (len(health) == 2) != within:
			t.Fatalf("cut after %d bytes, within an event: %v, but health is %q", cut, within, health)
		}
		for _, o := range objects {
			if !isStrict([]byte(o.JSON())) {
				t.Fatalf("cut after %d bytes: %s", cut, o.JSON())
			}
		}
	}
}

func FuzzWatch(f *testing.F) {
	f.Add([]byte(line("ADDED", "a", 6)+bookmarkLine(9)+line("DELETED", "a", 10)+gone), false)
	f.Add([]byte(bookmarkLine(9)+"\n\n{}"), false)
	for _, item := range items {
		if item.name != "huge" {
			f.Add([]byte(`{"type":"ADDED","object":`+item.sent+`}`), item.kind == secrets)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, secret bool) {
		kind := crds
		if secret {
			kind = secrets
		}
		events, _, objects := readWatch(kind, strings.NewReader(string(body)), 0)
		dec := jsontext.NewDecoder(strings.NewReader(string(body)))
		for _, o := range objects {
			var value jsontext.Value
			for {
				var err error
				if value, err = dec.ReadValue(); err != nil {
					return // a name is there twice
				}
				if what := watch.EventType(gjson.GetBytes(value, "type").Str); what != watch.Bookmark {
					break
				}
			}
			checkObject(t, kind, gjson.GetBytes(value, "object").Raw, o)
		}
		if n := len(events); n == 0 {
			t.Fatal("the watch ended at once, and nobody was told")
		}
	})
}

func TestMarkersAreNoObjects(t *testing.T) {
	if !newMarker(5).IsMarker() || Probe("n", "a").IsMarker() || object(t, `{"metadata":{"name":"progress","resourceVersion":"1"}}`).IsMarker() {
		t.Error("objects and markers are confused")
	}
}
