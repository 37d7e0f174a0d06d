package http

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/kubecast/kubecast/internal/apitest"
)

const eventStream = "text/event-stream"

// frame is one frame of an event stream.
type frame struct {
	event, id, data string
	comment         bool
	retry           time.Duration
	raw             string
}

// The forms that a frame can have. They are narrower than the specification of server-sent events: they are ours.
var (
	commentFrame = regexp.MustCompile(`^: ?[a-z]*$`)
	retryFrame   = regexp.MustCompile(`^retry: ([1-9][0-9]*)$`)
	eventFrame   = regexp.MustCompile(`^event: ([a-z0-9]+(?:\.[a-z]+)?)\n(?:id: ([a-z0-9]+(?:\.(?:[a-z][a-z0-9]*-)?[0-9]+(?:-[0-9]+)?(?:-(?:s[0-9a-v]{8}|x))?(?:~[a-z0-9]+)?|\.[a-z][a-z0-9]*-p[0-9a-z-]+(?:~[a-z0-9]+)?)*)\n)?data: ([^\r\n\x00]+)$`)
)

func parseFrame(raw string) (frame, error) {
	f := frame{raw: raw}
	text := strings.TrimSuffix(raw, "\n\n")
	if !utf8.ValidString(text) || len(text) != len(raw)-2 {
		return f, fmt.Errorf("not a frame: %q", raw)
	}
	if commentFrame.MatchString(text) {
		f.comment = true
		return f, nil
	}
	if m := retryFrame.FindStringSubmatch(text); m != nil {
		ms, err := strconv.Atoi(m[1])
		f.retry = time.Duration(ms) * time.Millisecond
		return f, err
	}
	m := eventFrame.FindStringSubmatch(text)
	if m == nil {
		return f, fmt.Errorf("not a frame: %q", raw)
	}
	f.event, f.id, f.data = m[1], m[2], m[3]
	if !json.Valid([]byte(f.data)) {
		return f, fmt.Errorf("the data is not JSON: %q", raw)
	}
	return f, nil
}

// field is a value in the event's data.
func (f frame) field(path ...string) string {
	var value any
	if json.Unmarshal([]byte(f.data), &value) != nil {
		return ""
	}
	for _, key := range path {
		in, ok := value.(map[string]any)
		if !ok {
			return ""
		}
		value = in[key]
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// String is the event with what identifies it, for comparing many at once.
func (f frame) String() string {
	if name := f.field("metadata", "name"); name != "" {
		return f.event + " " + name
	}
	if reason := f.field("reason"); reason != "" {
		return f.event + " " + reason
	}
	return f.event
}

// events is a client of an event stream. It checks every byte.
type events struct {
	t        testing.TB
	response *http.Response
	body     *bufio.Reader
	close    context.CancelFunc
	stuck    func() (stop func() bool) // closes it after a while, unless it is stopped before; nil: nothing does
	lastID   string
}

// within bounds a wait for something of the stream, however long it has been open. It returns what ends the wait.
func (s *events) within() (stop func() bool) {
	if s.stuck == nil {
		return func() bool { return true }
	}
	return s.stuck()
}

// stream opens an event stream, which must be answered with 200, and reads its preamble.
func (g *gateway) stream(path string, headers ...string) *events {
	g.t.Helper()
	s := g.open(path, headers...)
	if s.response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(s.body)
		g.t.Fatalf("GET %s: %s: %s", path, s.response.Status, body)
	}
	if f := s.frame(); !f.comment {
		g.t.Fatalf("the first frame is %q", f.raw)
	}
	if f := s.frame(); f.retry == 0 {
		g.t.Fatalf("the second frame is %q", f.raw)
	}
	return s
}

func (g *gateway) open(path string, headers ...string) *events {
	g.t.Helper()
	s, err := g.dial(path, headers...)
	if err != nil {
		g.t.Fatalf("GET %s: %v", path, err)
	}
	return s
}

// dial is open for clients in goroutines of their own, which must not end the test.
func (g *gateway) dial(path string, headers ...string) (*events, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	closed := func() { cancel(nil) }
	g.t.Cleanup(closed)
	stuck := func() (stop func() bool) {
		return time.AfterFunc(g.patience, func() { cancel(fmt.Errorf("nothing came for %v", g.patience)) }).Stop
	}
	r := g.newRequest(ctx, http.MethodGet, path, append([]string{"Accept: text/event-stream"}, headers...))
	if r.Header.Get("Accept-Encoding") == "" {
		r.Header.Set("Accept-Encoding", []string{"identity", "gzip", "zstd"}[g.opened.Add(1)%3])
	}
	defer stuck()()
	response, err := g.client.Do(r)
	if err != nil {
		return nil, err
	}
	g.t.Cleanup(func() { response.Body.Close() })
	return &events{t: g.t, response: response, body: bufio.NewReaderSize(plainly(g.t, response), 4<<10), close: closed, stuck: stuck}, nil
}

// plainly decodes a body as it comes. Its end is io.EOF only if the body is complete as HTTP and as its coding want it.
func plainly(t testing.TB, response *http.Response) io.Reader {
	var from io.Reader
	var err error
	body := &codedBody{body: response.Body}
	switch coding := response.Header.Get("Content-Encoding"); coding {
	case "":
		return response.Body
	case "gzip":
		var member *gzip.Reader
		if member, err = gzip.NewReader(body); err == nil {
			member.Multistream(false) // many decoders stop behind the first
			from, body.decoder = body, member
		}
	case "zstd":
		var frames *zstd.Decoder
		if frames, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20)); err == nil {
			t.Cleanup(frames.Close)
			from, body.decoder = body, frames
		}
	default:
		err = fmt.Errorf("nobody asked for %q", coding)
	}
	if err != nil {
		t.Fatalf("the answer's coding: %v", err)
	}
	return from
}

// codedBody is a body for its decoder, and what that makes of it for everybody else.
type codedBody struct {
	body    io.Reader
	decoder io.Reader
	inside  bool // the decoder reads
}

func (c *codedBody) Read(p []byte) (n int, err error) {
	if c.decoder == nil || c.inside {
		if n, err = c.body.Read(p); err == io.ErrUnexpectedEOF {
			err = fmt.Errorf("it was cut off: %w", err) // between two frames, Zstandard's decoder would take it for their end
		}
		return n, err
	}
	c.inside = true
	defer func() { c.inside = false }()
	if n, err = c.decoder.Read(p); err != io.EOF {
		return n, err
	}
	if rest, broken := io.ReadAll(c.body); broken != nil || len(rest) > 0 {
		return n, fmt.Errorf("behind the end of what was encoded are %d bytes: %w", len(rest), broken)
	}
	return n, io.EOF
}

// read reads the next frame; io.EOF after the last.
func (s *events) read() (frame, error) {
	defer s.within()()
	var raw strings.Builder
	for {
		line, err := s.body.ReadString('\n')
		raw.WriteString(line)
		if err != nil {
			if raw.Len() > 0 && errors.Is(err, io.EOF) {
				err = fmt.Errorf("the stream ended inside a frame: %q", raw.String())
			}
			return frame{}, err
		}
		if line == "\n" {
			if strings.Contains(raw.String(), apitest.SecretDetail) {
				return frame{}, fmt.Errorf("a client is told of the inside: %q", raw.String())
			}
			f, err := parseFrame(raw.String())
			if f.id != "" {
				s.lastID = f.id
			}
			return f, err
		}
	}
}

func (s *events) frame() frame {
	s.t.Helper()
	f, err := s.read()
	if err != nil {
		s.t.Fatalf("reading a frame: %v", err)
	}
	return f
}

// next is the next event, comments and bookmarks aside.
func (s *events) next() frame {
	s.t.Helper()
	defer s.within()() // bookmarks do not prolong it
	for {
		if f := s.event(); !strings.HasSuffix(f.event, "bookmark") {
			return f
		}
	}
}

// event reads the next event, which may be a bookmark.
func (s *events) event() frame {
	s.t.Helper()
	defer s.within()() // comments do not prolong it
	for {
		if f := s.frame(); f.event != "" {
			return f
		}
	}
}

// expect reads the next events, which must be these, in the form of frame.String. It returns the last.
func (s *events) expect(want ...string) (last frame) {
	s.t.Helper()
	var got []string
	for range want {
		last = s.next()
		got = append(got, last.String())
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("got the events\n\t%s\nnot\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	return last
}

// until reads up to an event of a name, and returns it.
func (s *events) until(name string) frame {
	s.t.Helper()
	defer s.within()() // other events do not prolong it
	for {
		if f := s.frame(); f.event == name {
			return f
		}
	}
}

// end reads what is left, comments aside, up to the end of the stream, which must come at the end of a frame.
func (s *events) end() (left []frame) {
	s.t.Helper()
	for {
		f, err := s.read()
		if err == io.EOF {
			return left
		}
		if err != nil {
			s.t.Fatalf("reading to the end: %v", err)
		}
		if !f.comment {
			left = append(left, f)
		}
	}
}

// noise is a text of so many bytes in which no coding finds anything, so that it fills a client's
// buffers however it is sent.
func noise(bytes int) string {
	random := make([]byte, (bytes*3+3)/4)
	_, _ = rand.Read(random) // never fails
	return base64.RawURLEncoding.EncodeToString(random)[:bytes]
}
