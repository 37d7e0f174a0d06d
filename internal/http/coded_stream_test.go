package http

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// A stream that is compressed tells the same as one that is not, also to programs that share no
// code with the gateway, over HTTP/1.1 and 2, with a snapshot or from a position. Nothing waits for
// what comes after it, and what ends by plan is complete as its coding wants it. (Most tests of
// streams ask for one coding after the other; see open.)
func TestCompressedStreamsAreThoseThatAreNot(t *testing.T) {
	for _, test := range []struct {
		version int
		resumed bool
	}{{1, false}, {1, true}, {2, false}, {2, true}} {
		t.Run(fmt.Sprintf("HTTP%d,resumed=%t", test.version, test.resumed), func(t *testing.T) {
			g := newGateway(t, manyPods(200), cached(streamOptions(), "pods"), options(func(o *Options) { o.Drain = 200 * time.Millisecond }))
			g.eventually("pods are there", func() bool { return len(g.list("/api/v1/pods?fields=metadata.name").Items) == 200 })
			if test.version == 2 {
				protocols := &http.Protocols{}
				protocols.SetUnencryptedHTTP2(true)
				transport := &http.Transport{DisableCompression: true, Protocols: protocols}
				t.Cleanup(transport.CloseIdleConnections)
				g.client = &http.Client{Transport: transport}
			}
			position := ""
			if test.resumed {
				s := g.stream("/api/v1/pods")
				for s.frame().event != "synced" {
				}
				position = s.lastID
				for n := range 20 {
					g.api.Put("pods", fmt.Sprintf("team-a/missed-%d", n), "spec.text="+strings.Repeat("words ", 20))
				}
			}
			var received []*recorded
			for _, coding := range []string{"", "gzip", "zstd", "zstd", "gzip", "zstd", "gzip"} {
				r := g.record(test.version, coding, position)
				received = append(received, r)
				if test.resumed { // one after the other, so that all but the first two of each coding are told what was compressed before
					g.eventually("what was missed is told as "+coding, func() bool { return strings.Contains(r.now(), `"name":"missed-19"`) })
				}
			}
			if !test.resumed { // else what is a change for one is part of the snapshot for another
				for _, r := range received {
					g.eventually("the state is told as "+r.coding, func() bool { return strings.Contains(r.now(), "event: synced\n") })
				}
			}
			random := rand.New(rand.NewPCG(1, 2))
			for n := range 60 {
				name := fmt.Sprintf("team-a/pod-%d", random.IntN(100))
				g.api.Put("pods", name, fmt.Sprintf("spec.n:=%d", n), "spec.text="+strings.Repeat(fmt.Sprint("words ", n%3), random.IntN(300)))
				if n%7 == 6 {
					g.api.Delete("pods", name)
				}
			}
			g.api.Put("pods", "team-a/last")
			for _, r := range received {
				g.eventually("the last change is told as "+r.coding, func() bool { return strings.Contains(r.now(), `"name":"last"`) })
			}
			g.drain()
			var plain []string
			size := 0
			for i, r := range received {
				<-r.ended
				if r.err != nil {
					t.Fatalf("%s: %v", r.coding, r.err)
				}
				body := decoded(t, r.coding, string(r.bytes))
				told := changesIn(body)
				if !strings.Contains(body, "event: goodbye\n") || len(told) < 50 {
					t.Fatalf("as %s, %d changes and then %q", r.coding, len(told), body[max(0, len(body)-200):])
				}
				if i == 0 {
					plain, size = told, len(r.bytes)
				} else if fmt.Sprint(told) != fmt.Sprint(plain) {
					t.Errorf("as %s it is another stream", r.coding)
				} else if len(r.bytes) > size/3 {
					t.Errorf("%d bytes became %d as %s", size, len(r.bytes), r.coding)
				}
			}
			if g.metric("kubecast_coded_bytes_before_total", "shared") == 0 {
				t.Error("nothing was compressed once for several clients")
			}
		})
	}
}

// recorded is a stream's body as it came over the line.
type recorded struct {
	coding string
	ended  chan struct{}
	err    error
	mu     sync.Mutex
	bytes  []byte
}

func (g *gateway) record(version int, coding, position string) *recorded {
	g.t.Helper()
	headers := []string{"Accept: text/event-stream", "Accept-Encoding: " + coding}
	if position != "" {
		headers = append(headers, "Last-Event-ID: "+position)
	}
	response, err := g.client.Do(g.newRequest(g.t.Context(), http.MethodGet, "/api/v1/pods", headers))
	if err != nil {
		g.t.Fatal(err)
	}
	if response.ProtoMajor != version || response.Header.Get("Content-Encoding") != coding || !strings.Contains(response.Header.Get("Vary"), "Accept-Encoding") {
		g.t.Fatalf("%s %v", response.Proto, response.Header)
	}
	r := &recorded{coding: coding, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		defer response.Body.Close()
		space := make([]byte, 4<<10)
		for {
			n, err := response.Body.Read(space)
			r.mu.Lock()
			r.bytes = append(r.bytes, space[:n]...)
			r.mu.Unlock()
			if err != nil {
				if err != io.EOF {
					r.err = err
				}
				return
			}
		}
	}()
	return r
}

// now is what can be read of what has come.
func (r *recorded) now() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bytes) == 0 { // a decoder wants a header
		return ""
	}
	header := http.Header{}
	if r.coding != "" {
		header.Set("Content-Encoding", r.coding)
	}
	plain, _ := io.ReadAll(plainly(ignored{}, &http.Response{Header: header, Body: io.NopCloser(strings.NewReader(string(r.bytes)))}))
	return string(plain)
}

// ignored is a test of what is not complete yet.
type ignored struct{ testing.TB }

func (ignored) Cleanup(func())        {}
func (ignored) Fatalf(string, ...any) {}

// changesIn are the frames of a stream but for those that come by the clock.
func changesIn(body string) (frames []string) {
	for _, raw := range strings.SplitAfter(body, "\n\n") {
		if strings.HasPrefix(raw, "event: ") && !strings.HasPrefix(raw, "event: bookmark") && !strings.HasPrefix(raw, "event: goodbye") {
			frames = append(frames, raw)
		}
	}
	return frames
}
