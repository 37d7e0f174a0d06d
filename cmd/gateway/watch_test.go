package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/r3labs/sse/v2"
)

// server answers each connection by its number, from 0 on, and ends the watch when there are no answers left.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	at       []time.Time
}

// serveStreams starts a gateway whose n-th connection is answered by the n-th function.
func serveStreams(t *testing.T, stop func(), answers ...func(http.ResponseWriter)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		n := len(s.requests)
		s.requests, s.at = append(s.requests, r), append(s.at, time.Now())
		s.mu.Unlock()
		if n >= len(answers) {
			stop()
			return
		}
		answers[n](w)
	}))
	t.Cleanup(func() {
		s.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return s
}

func stream(frames string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": kubecast\n\nretry: 30\n\n"+frames)
	}
}

func refuse(code int, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

const (
	added   = "event: added\nid: e.5\ndata: {\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"web\"},\"status\":{\"phase\":\"Running\"}}\n\n"
	goodbye = "event: goodbye\nid: e.7\ndata: {\"reason\":\"drain\"}\n\n"
)

// runWatch runs gateway watch until it ends by itself or the server has no more answers.
func runWatch(t *testing.T, out io.Writer, args []string, answers ...func(http.ResponseWriter)) (*server, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := serveStreams(t, cancel, answers...)
	err := run(ctx, append(append([]string{"watch", "--server", s.URL}, args...), "/api/v1/pods?labelSelector=a"), out)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, err
}

// The watch resumes with the position of the last complete event, no sooner than the server says, and with a fresh
// token.
func TestWatchResumes(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(tokens, []byte(token+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
	write("first")
	var out bytes.Buffer
	s, err := runWatch(t, &out, []string{"--token-file", tokens},
		stream(added+goodbye),
		func(w http.ResponseWriter) {
			write("second")
			stream("event: added\nid: e.99\ndata: {\"cut")(w)
		},
		refuse(503, "overloaded"),
		refuse(429, ""),
		stream("event: synced\nid: e.8\ndata: {\"count\":1}\n\n"),
	)
	if err != nil {
		t.Fatal(err)
	}
	var ids, bearers []string
	for i, r := range s.requests {
		ids = append(ids, r.Header.Get("Last-Event-ID"))
		bearers = append(bearers, r.Header.Get("Authorization"))
		if r.URL.Path != "/api/v1/pods" || r.URL.RawQuery != "labelSelector=a" || r.Header.Get("Accept") != "text/event-stream" {
			t.Errorf("%v %v", r.URL, r.Header)
		}
		if i > 0 && s.at[i].Sub(s.at[i-1]) < 30*time.Millisecond {
			t.Errorf("back after %v, sooner than the server says", s.at[i].Sub(s.at[i-1]))
		}
	}
	if got, want := fmt.Sprint(ids), "[ e.7 e.7 e.7 e.7 e.8]"; got != want {
		t.Errorf("positions %v, not %v", got, want)
	}
	if got, want := fmt.Sprint(bearers), "[Bearer first Bearer first Bearer second Bearer second Bearer second Bearer second]"; got != want {
		t.Errorf("tokens %v, not %v", got, want)
	}
	want := regexp.MustCompile(`^\d\d:\d\d:\d\d  added      Pod a/web Running
\d\d:\d\d:\d\d  goodbye    {"reason":"drain"}
\d\d:\d\d:\d\d  synced     {"count":1}
$`)
	if !want.MatchString(out.String()) {
		t.Errorf("printed:\n%s", out.String())
	}
}

func TestWatchPrintsJSON(t *testing.T) {
	var out bytes.Buffer
	if _, err := runWatch(t, &out, []string{"-o", "json", "--token", "x"}, stream(added+goodbye)); err != nil {
		t.Fatal(err)
	}
	want := `{"event":"added","id":"e.5","data":{"kind":"Pod","metadata":{"namespace":"a","name":"web"},"status":{"phase":"Running"}}}
{"event":"goodbye","id":"e.7","data":{"reason":"drain"}}
`
	if out.String() != want {
		t.Errorf("printed:\n%s", out.String())
	}
}

// The watch ends when it is refused for good, and prints the server's message.
func TestWatchEndsWhenRefusedForGood(t *testing.T) {
	for _, test := range []struct {
		code       int
		body, want string
	}{
		{401, `{"kind":"Status","message":"token expired"}`, "401 Unauthorized: token expired"},
		{403, `{"kind":"Status","message":"pods is forbidden"}`, "403 Forbidden: pods is forbidden"},
		{400, `{"title":"Bad Request","detail":"no watch is named"}`, "400 Bad Request: no watch is named"},
		{404, "<html>not JSON", "404 Not Found"},
		{204, "", "204 No Content"},
		{200, "no stream", "200 OK"},
	} {
		s, err := runWatch(t, io.Discard, nil, refuse(test.code, test.body))
		if err == nil || err.Error() != test.want || len(s.requests) != 1 {
			t.Errorf("%d: %v after %d requests", test.code, err, len(s.requests))
		}
	}
}

func TestWatchTrustsWhomItIsTold(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stream(added)(w)
	}))
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	watch := func(ctx context.Context, out io.Writer) error {
		return watch(ctx, []string{"--server", s.URL, "-ca", ca, "/api/v1/pods"}, out)
	}
	if err := watch(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "-ca: open "+ca) {
		t.Errorf("without the file: %v", err)
	}
	write := func(text []byte) {
		if err := os.WriteFile(ca, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("no certificate"))
	if err := watch(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "there is no certificate in it") {
		t.Errorf("of a file without a certificate: %v", err)
	}
	write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := watch(ctx, told(func(string) { cancel() })); err != nil || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("with the server's certificate: %v, %v", err, ctx.Err())
	}
}

// told is called for what is written.
type told func(string)

func (f told) Write(p []byte) (int, error) { f(string(p)); return len(p), nil }

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// The watch ends when its output is closed, although the stream goes on.
func TestWatchEndsWhenNobodyReads(t *testing.T) {
	served := make(chan struct{})
	defer close(served)
	_, err := runWatch(t, brokenPipe{}, nil, func(w http.ResponseWriter) {
		stream(added)(w)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-served:
		case <-time.After(2 * time.Minute):
			t.Error("it goes on")
		}
	})
	if err == nil || err.Error() != "broken pipe" {
		t.Error(err)
	}
}

func TestWatchPrintsTransitions(t *testing.T) {
	var out bytes.Buffer
	transition := func(from, to string) string {
		return "event: transition\nid: e.h-1\ndata: {\"seq\":\"1\",\"resource\":\"jobs.batch\",\"namespace\":\"a\",\"name\":\"train\",\"from\":" + from + ",\"to\":\"" + to + "\",\"reason\":\"R\"}\n\n"
	}
	if _, err := runWatch(t, &out, nil, stream(transition("null", "Pending")+transition(`"Pending"`, "Failed"))); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "  transition  jobs.batch a/train · → Pending R\n") || !strings.Contains(got, "jobs.batch a/train Pending → Failed R\n") {
		t.Errorf("%s", got)
	}
}

// What is told of a queue is read by people: who waits where and until when, and of strangers no more than that.
func TestWatchPrintsWhoWaitsAndUntilWhen(t *testing.T) {
	now := time.Now()
	at := func(in time.Duration) string { return now.Add(in).Format(time.RFC3339Nano) }
	var out strings.Builder
	data := `{"namespace":"team-a","name":"gpu","waiting":4,"running":1,"jobs":[
		{"position":1,"clusterPosition":3,"namespace":"team-a","name":"train","owner":"ann","starts":{"from":"` + at(10*time.Minute+time.Second) + `","to":"` + at(84*time.Minute) + `","confidence":0.8}},
		{"position":2,"hidden":true},
		{"position":null,"clusterPosition":null,"namespace":"team-a","name":"e\u001b[2Jvil","owner":"","starts":null},
		{"position":4,"clusterPosition":9,"namespace":"team-a","name":"late","owner":"","starts":{"from":"` + at(-time.Hour) + `","to":"` + at(-time.Minute) + `","confidence":0.8}}]}`
	if err := printLine(&out, &sse.Event{Event: []byte("w.queue"), Data: []byte(data)}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		_, text, _ := strings.Cut(line, "w.queue")
		got = append(got, strings.TrimSpace(text))
	}
	want := []string{
		"team-a/gpu  4 waiting, 1 running",
		"1 (3 in the cluster)  team-a/train  ann  starts in 10m to 1h24m (80 % sure)",
		"2  (somebody else's)",
		"-  team-a/e[2Jvil",
		"4 (9 in the cluster)  team-a/late  starts later than expected (80 % sure)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("printed\n%q, want\n%q", got, want)
	}
	out.Reset()
	if err := printLine(&out, &sse.Event{Event: []byte("queue"), Data: []byte(`{"items":[{"namespace":"a","name":"x","waiting":1},{"name":"all","running":2}]}`)}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 2 || !strings.Contains(out.String(), "a/x  1 waiting, 0 running") || !strings.Contains(out.String(), "  all  0 waiting, 2 running") {
		t.Errorf("of a list: %q", out.String())
	}
}

// The text of an object may come from a stranger, and must not control the terminal.
func TestObjectsCannotSpeakToTheTerminal(t *testing.T) {
	var out bytes.Buffer
	_, err := runWatch(t, &out, nil, stream(
		"event: added\nid: e.1\ndata: {\"metadata\":{\"name\":\"x\\u001b]0;evil\\u0007\"},\"status\":{\"phase\":\"\\u009b2J\\r\\nfake\"}}\n\n"+
			"event: added\nid: e.2\ndata: {\"x\":\"\u009b2J\x7f\"}\n\n"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\x07\r\x7f\u009b") || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%q", out.String())
	}
}

func TestStreamURLs(t *testing.T) {
	for _, test := range []struct{ server, path, want string }{
		{"http://x:1", "/api/v1/pods", "http://x:1/api/v1/pods"},
		{"https://x/", "/stream?a=/api/v1/pods", "https://x/stream?a=/api/v1/pods"},
		{"https://x/behind/a/prefix/", "/api", "https://x/behind/a/prefix/api"},
	} {
		if got, err := streamURL(test.server, test.path); err != nil || got != test.want {
			t.Errorf("%+v: %s, %v", test, got, err)
		}
	}
}
