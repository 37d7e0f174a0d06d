package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// follower follows an event stream as a careful browser does: it keeps what it was told, and comes back with its
// position when a connection ends. It checks all that it is told against docs/wire.md.
type follower struct {
	name    string
	token   string
	path    string   // of the stream, with its query
	watches []string // names of its watches; "" for a single stream
	// address returns the gateway for the n-th connection.
	address func(n int) string
	connect connector
	// lasts returns how long a connection is kept before the client cuts it; nil: until it ends.
	lasts func() time.Duration
	// relists allows for lists of the gateway in between, whose events are in no order and have older ids.
	relists bool
	// conflated has the watches that may tell a modification after later changes of other objects.
	conflated map[string]bool
	// lean makes the follower keep what was told without the objects, for long tests.
	lean bool

	mu          sync.Mutex
	views       map[string]*view
	last        string // the newest id
	connections int
	goodbyes    []string
	failure     error    // how the gateway broke the contract; ends the follower
	lost        error    // why the last connection ended
	recent      []string // the last connections and frames, for the log of a failed test

	away chan struct{}      // closed when the follower may come back; nil: at once
	cut  context.CancelFunc // cuts the present connection
	stay bool               // the client itself cuts no connection
	idle int                // connections in a row that were cut before they told anything; see idleMost

	ended chan struct{}
}

// connector makes one connection, and calls each with its frames until it ends. It returns nil after a clean end.
type connector func(ctx context.Context, url string, header http.Header, each func(frame) error) error

// follow makes a follower follow its stream until the test ends.
func follow(t *testing.T, f *follower) *follower {
	t.Helper()
	f.views = map[string]*view{}
	for _, watch := range f.watches {
		f.views[watch] = newView()
		f.views[watch].lean, f.views[watch].conflated = f.lean, f.conflated[watch]
	}
	f.ended = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go f.run(ctx)
	t.Cleanup(func() {
		cancel()
		<-f.ended
		if t.Failed() {
			t.Log(f.summary())
		}
	})
	return f
}

// single and several name the watches of the two kinds of streams.
func single() []string                   { return []string{""} }
func several(names ...string) []string   { return names }
func always(url string) func(int) string { return func(int) string { return url } }

// rejoinAfter is the wait before a reconnect: long enough not to flood a gateway that is away, and much shorter than
// that of browsers.
const rejoinAfter = 30 * time.Millisecond

func (f *follower) run(ctx context.Context) {
	defer close(f.ended)
	for n := 0; ctx.Err() == nil; n++ {
		if err := f.connection(ctx, n); err != nil {
			f.mu.Lock()
			f.failure = fmt.Errorf("%s, connection %d: %w", f.name, n, err)
			f.mu.Unlock()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(rejoinAfter/2 + rand.N(rejoinAfter)):
		}
	}
}

// connection makes the n-th connection. An error means that the contract was broken.
func (f *follower) connection(ctx context.Context, n int) error {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	f.mu.Lock()
	for f.away != nil {
		away := f.away
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-away:
		}
		f.mu.Lock()
	}
	f.cut = cut
	sent := f.last
	gateway := f.address(n)
	begin, err := f.begin(gateway, sent)
	f.connections++
	f.idle++
	f.note("connection %d: %s from %q", n, gateway, sent)
	f.mu.Unlock()
	if err != nil {
		return err
	}
	if f.lasts != nil {
		defer f.endsAfter(f.lasts(), cut)()
	}
	address, header := f.request(gateway, n, sent)
	var breach error
	goodbye := false
	err = f.connect(ctx, address, header, func(read frame) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if read.event != "" {
			f.idle = 0
			f.note("  %s %s %.120s", read.event, read.id, read.data)
		}
		if goodbye {
			breach = fmt.Errorf("after goodbye came %+v", read)
		} else if read.event != "" {
			breach = f.take(begin, read)
		}
		goodbye = read.event == "goodbye"
		return breach
	})
	f.mu.Lock()
	f.lost = err
	f.mu.Unlock()
	var status errStatus
	switch {
	case breach != nil:
		return breach
	case errors.Is(err, errTorn), errors.As(err, &status):
		return err
	case err == nil && !goodbye && ctx.Err() == nil:
		return errors.New("the stream ended cleanly without goodbye")
	}
	return nil // cut by either side
}

// endsAfter cuts a connection after a time, or later if the follower is to stay at that moment, or
// if several in a row have told it nothing: a gateway that is busy may need longer to begin.
func (f *follower) endsAfter(lasting time.Duration, cut func()) (stop func()) {
	ticks, done := time.NewTimer(lasting), make(chan struct{})
	go func() {
		defer ticks.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
			}
			f.mu.Lock()
			stay := f.stay || f.idle > idleMost
			f.mu.Unlock()
			if !stay {
				cut()
				return
			}
			ticks.Reset(100 * time.Millisecond)
		}
	}()
	return func() { close(done) }
}

// leave cuts the connection. The follower does not come back before the returned function is called.
func (f *follower) leave() (comeBack func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	away := make(chan struct{})
	f.away = away
	if f.cut != nil {
		f.cut()
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.away = nil
		close(away)
	}
}

// keep makes the follower stay on its connection, or cut its connections again.
func (f *follower) keep(stay bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stay = stay
}

// request returns the address and the headers of the n-th connection. By turns, the position is sent in each of the
// ways that there are.
func (f *follower) request(gateway string, n int, position string) (address string, header http.Header) {
	address, header = gateway+f.path, bearer(f.token)
	if position == "" {
		return address, header
	}
	spellings := []string{"", "lastEventId", "last_event_id"}
	if spelling := spellings[n%len(spellings)]; spelling != "" {
		separator := "?"
		if strings.Contains(address, "?") {
			separator = "&"
		}
		return address + separator + spelling + "=" + url.QueryEscape(position), header
	}
	header.Set("Last-Event-ID", position)
	return address, header
}

// note keeps one of the last things that happened, which the caller has locked the follower for.
func (f *follower) note(format string, args ...any) {
	const most = 60
	if len(f.recent) >= 2*most {
		f.recent = slices.Delete(f.recent, 0, most)
	}
	f.recent = append(f.recent, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// summary describes a follower for the log of a failed test. What it was told last is named in full once it has failed.
func (f *follower) summary() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := fmt.Sprintf("%s: %d connections, last id %q, goodbyes %q, last end: %v, failure: %v",
		f.name, f.connections, f.last, f.goodbyes, f.lost, f.failure)
	for name, v := range f.views {
		text += fmt.Sprintf("\n  watch %q: %d objects, %d events, %d snapshots, resets %q, freshness %q",
			name, len(v.objects), len(v.told), len(v.covered), v.resets, v.freshness)
	}
	recent := f.recent
	if f.failure == nil {
		recent = recent[max(0, len(recent)-10):]
	}
	for _, each := range recent {
		text += "\n    " + each
	}
	return text
}

// look calls a function with the view of a watch, which the function must not keep. If the follower has failed, look
// returns that failure.
func (f *follower) look(watch string, at func(*view) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure != nil {
		return f.failure
	}
	return at(f.views[watch])
}

// waitSynced waits until all watches have been told a whole snapshot.
func (f *follower) waitSynced(t *testing.T) {
	t.Helper()
	for _, watch := range f.watches {
		eventually(t, f.name+" is synced", func() error {
			return f.look(watch, func(v *view) error {
				if len(v.covered) == 0 {
					return fmt.Errorf("no snapshot yet; last end: %v", f.lost)
				}
				return nil
			})
		})
	}
}

// rawly connects with the tests' own strict reader.
var rawly = rawlyBy(func(string) *http.Client { return http.DefaultClient })

// rawlyBy is rawly by a client for each address.
func rawlyBy(client func(url string) *http.Client) connector {
	return func(ctx context.Context, url string, header http.Header, each func(frame) error) error {
		return readRawly(ctx, client(url), url, header, each)
	}
}

func readRawly(ctx context.Context, client *http.Client, url string, header http.Header, each func(frame) error) error {
	stream, err := openFramesBy(ctx, client, url, header)
	if err != nil {
		return err
	}
	defer stream.close()
	for n := 0; ; n++ {
		read, err := stream.next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case n == 0 && read.comment == "", n == 1 && read.retry == "":
			return each(frame{event: "broken", data: fmt.Sprintf("frame %d is neither the comment nor retry: %+v", n, read)})
		}
		if err := each(read); err != nil {
			return err
		}
	}
}

// events returns how many events were told on the first watch, without snapshots.
func (f *follower) events(t *testing.T) (n int) {
	t.Helper()
	if err := f.look(f.watches[0], func(v *view) error { n = len(v.told); return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

// waitEvents waits until so many more events were told on the first watch.
func (f *follower) waitEvents(t *testing.T, more int) {
	t.Helper()
	enough := f.events(t) + more
	advancing(t, fmt.Sprintf("%s is told %d more events", f.name, more), func() (int, error) { return f.events(t), nil }, func() error {
		if n := f.events(t); n < enough {
			return fmt.Errorf("%d are missing", enough-n)
		}
		return nil
	})
}

func (f *follower) connectionCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.connections
}

// resets returns the reasons of a watch's resets.
func (f *follower) resets(t *testing.T, watch string) (reasons []string) {
	t.Helper()
	if err := f.look(watch, func(v *view) error { reasons = slices.Clone(v.resets); return nil }); err != nil {
		t.Fatal(err)
	}
	return reasons
}
