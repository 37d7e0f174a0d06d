package eventstream_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/scheduler"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

// board is what the example's source tells of: lines that are written one behind the other. Positions are how many there were.
type board struct {
	mu      sync.Mutex
	lines   []string
	readers map[*reading]stream.Waiter // that have told all there is
}

func (b *board) write(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line)
	for r, waiter := range b.readers {
		delete(b.readers, r)
		waiter.Wake()
	}
}

// reading is a Source: one client's place on the board.
type reading struct {
	board *board
	from  eventstream.From
	next  uint64
}

func (r *reading) Name() string                          { return "" } // it is the only one of its stream
func (r *reading) Ready(context.Context) error           { return nil }
func (r *reading) Epoch(context.Context) (string, error) { return "board", nil }

// Find is told where the client comes from; what it finds counts from Begin on.
func (r *reading) Find(_ context.Context, from eventstream.From) { r.from = from }

func (r *reading) Begin(eventstream.Freshness) (stream.Claim, string) {
	r.next = r.from.Claim.All
	return r.claim(), r.from.Reset
}

func (r *reading) claim() stream.Claim { return stream.Claim{Known: stream.UpTo(r.next)} }

// Read tells what there is, and waits for nobody: the session is woken once there is more.
func (r *reading) Read(_ context.Context, to eventstream.Sink) eventstream.ReadResult {
	r.board.mu.Lock()
	lines := r.board.lines[r.next:]
	if len(lines) == 0 {
		r.board.readers[r] = to
	}
	r.board.mu.Unlock()
	for _, line := range lines {
		r.next++
		to.Emit(eventstream.Event{Name: "line", Data: fmt.Sprintf("%q", line)}, r.claim())
	}
	return eventstream.ReadResult{Claim: r.claim(), More: len(lines) > 0}
}

func (r *reading) Bookmark(to eventstream.Sink) {
	to.Emit(eventstream.Event{Name: "bookmark", Data: "{}"}, r.claim())
}

// Question is asked again and again for as long as the stream runs. Everybody may read the board.
func (r *reading) Question() permission.Question { return permission.Question{Key: "board"} }
func (r *reading) Permit(*visibility.Visibility) {}

func (r *reading) AuditRead() auditrecord.Read { return auditrecord.Read{} }

func (r *reading) Close() {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	delete(r.board.readers, r)
}

// everybody is an auth.Authorizer that permits everything.
type everybody struct{}

func (everybody) Authorize(context.Context, auth.Identity, auth.Request) (auth.Decision, error) {
	return auth.Decision{Allowed: true}, nil
}

func (everybody) Scope(context.Context, auth.Identity, auth.Request) (auth.Scope, error) {
	return auth.Scope{All: true}, nil
}

func (everybody) Changes(auth.Identity, func()) (stop func()) { return func() {} }

// A source says the client's position with each event, and the Hub makes event ids of it: a client that comes back with one is told
// what it has missed. What a source is asked for by is its Parser, for a path.
func ExampleSource() {
	news := &board{lines: []string{"one"}, readers: map[*reading]stream.Waiter{}}
	parse := func(_, _ string, _ url.Values) (eventstream.Opener, error) {
		return func(context.Context, auth.Identity) (eventstream.Source, error) { return &reading{board: news}, nil }, nil
	}
	alarm := scheduler.NewAlarm()
	permissions := permission.New(permission.Options{
		Authorizer: everybody{}, Confirm: func(context.Context, auth.Identity) error { return nil }, Reauthorize: time.Minute, Alarm: alarm,
	})
	defer permissions.End()
	hub := eventstream.New(eventstream.Options{
		Parsers: eventstream.Parsers{"board": {Parse: parse}}, Permissions: permissions, Alarm: alarm,
		Processors: budget.NewQueue(2, 0, 0), Memory: budget.NewMemory(1 << 20),
		Times:       eventstream.Times{Heartbeat: time.Minute, MaxAge: time.Hour, WriteTimeout: time.Minute, Retry: time.Second},
		SyncTimeout: time.Minute, Drain: time.Second, Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { hub.Run(ctx) })
	defer serving.Wait()
	defer stop()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := hub.Single(w, r, auth.Identity{Username: "ann"}); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	defer server.Close()

	// follow tells the events of a stream up to a line, and the last event's id.
	follow := func(lastEventID, until string, meanwhile func()) (id string) {
		request, _ := http.NewRequest(http.MethodGet, server.URL+"/board", nil)
		request.Header.Set("Accept", "text/event-stream")
		request.Header.Set("Last-Event-ID", lastEventID)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			fmt.Println(err)
			return ""
		}
		defer response.Body.Close()
		meanwhile()
		for text := bufio.NewScanner(response.Body); text.Scan(); {
			switch field, value, _ := strings.Cut(text.Text(), ": "); field {
			case "id":
				id = value
			case "data":
				fmt.Println(id, value)
				if value == until {
					return id
				}
			}
		}
		return id
	}
	id := follow("", `"two"`, func() { news.write("two") })
	news.write("three")
	follow(id, `"three"`, func() {})
	// Output:
	// board.1 "one"
	// board.2 "two"
	// board.3 "three"
}
