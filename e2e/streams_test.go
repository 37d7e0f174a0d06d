package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/e2e/harness"
)

// stream is one connection that a test reads frame by frame.
type stream struct {
	*frames
	lastID string
}

// open opens a stream as a viewer of the whole cluster. It is cut off when the test ends, or after a time in which
// any test should have read what it waits for.
func (s *stage) open(t *testing.T, g *gateway, path string, header http.Header) *stream {
	t.Helper()
	return openAs(t, g, s.viewer(t), path, header)
}

func openAs(t *testing.T, g *gateway, token, path string, header http.Header) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventuallyWithin)
	t.Cleanup(cancel)
	all := bearer(token)
	for name, values := range header {
		all[name] = values
	}
	opened, err := openFrames(ctx, g.url+path, all)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	t.Cleanup(opened.close)
	return &stream{frames: opened}
}

// mustNext reads one frame.
func (s *stream) mustNext(t *testing.T) frame {
	t.Helper()
	read, err := s.next()
	if err != nil {
		t.Fatalf("%v after:\n%s", err, harness.Tail(s.raw.String(), 12))
	}
	if read.id != "" {
		s.lastID = read.id
	}
	return read
}

// mustEvent reads up to the next event, which must have the given name. What is said of the stream
// itself is passed over, unless it is asked for: a bookmark tells nothing, and an API server that
// is short of time ends watches, which is then told as it is.
func (s *stream) mustEvent(t *testing.T, name string) frame {
	t.Helper()
	for {
		read := s.mustNext(t)
		if read.event == name {
			return read
		}
		if !read.ofTheStream() {
			t.Fatalf("%+v was told, and not %s", read, name)
		}
	}
}

// mustTold reads up to the next event that tells more than how the stream itself is.
func (s *stream) mustTold(t *testing.T) frame {
	t.Helper()
	for {
		if read := s.mustNext(t); !read.ofTheStream() {
			return read
		}
	}
}

// ofTheStream reports whether a frame only says how its stream is. On /stream, events begin with their watch's name.
func (f frame) ofTheStream() bool {
	switch f.event[strings.LastIndex(f.event, ".")+1:] {
	case "", "bookmark", "stale", "live":
		return true
	}
	return false
}

// find reads up to an event with a name.
func (s *stream) find(t *testing.T, name string) frame {
	t.Helper()
	for {
		if read := s.mustNext(t); read.event == name {
			return read
		}
	}
}

// reason reads the reason in an event's data.
func (f frame) reason(t *testing.T) string {
	t.Helper()
	var data struct{ Reason string }
	if err := json.Unmarshal([]byte(f.data), &data); err != nil {
		t.Fatalf("%+v: %v", f, err)
	}
	return data.Reason
}

// mustEnd reads to the end of the stream, which must be a clean one, and returns the events on the way.
func (s *stream) mustEnd(t *testing.T) (events []frame) {
	t.Helper()
	for {
		read, err := s.next()
		switch {
		case err != nil && err.Error() == "EOF":
			return events
		case err != nil:
			t.Fatalf("%v after:\n%s", err, harness.Tail(s.raw.String(), 12))
		case read.event != "":
			events = append(events, read)
		}
	}
}

// firstID is the id after the snapshot of a scope.
func (s *stage) firstID(t *testing.T, g *gateway, scope scope) string {
	t.Helper()
	stream := s.open(t, g, scope.path(), nil)
	defer stream.close()
	return stream.find(t, "synced").id
}

// streams returns nil if the gateway has exactly so many open streams on a path, whatever their query.
func (g *gateway) streams(path string, want int) error {
	a, err := fetch(http.MethodGet, g.ops+"/debug/streams", nil)
	if err != nil {
		return err
	}
	path, _, _ = strings.Cut(path, "?")
	if n := strings.Count(a.body, strconv.Quote(path)); n != want {
		return fmt.Errorf("%d streams on %s, not %d", n, path, want)
	}
	return nil
}
