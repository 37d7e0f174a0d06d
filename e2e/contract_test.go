package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A stream begins as proxies and browsers need it (rule 1): with headers, a comment and a retry before any event.
func TestStreamBeginsAsPromised(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	retries := map[string]bool{}
	for _, path := range []string{"/api/v1/nodes", "/stream?nodes=/api/v1/nodes", "/clusters/default/api/v1/nodes", "/api/v1/nodes?watch=true",
		"/api/v1/nodes", "/api/v1/nodes", "/api/v1/nodes", "/api/v1/nodes"} {
		stream := s.open(t, g, path, nil)
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
			if got := stream.response.Header.Get(name); got != want {
				t.Errorf("%s: %s: %q, not %q", path, name, got, want)
			}
		}
		if comment := stream.mustNext(t); comment.comment == "" || comment.event != "" {
			t.Errorf("%s: the first frame is %+v", path, comment)
		}
		retry := stream.mustNext(t)
		if ms, err := strconv.Atoi(retry.retry); err != nil || ms < 2000 || ms > 4000 || retry.event != "" {
			t.Errorf("%s: the second frame is %+v", path, retry)
		}
		retries[retry.retry] = true
		stream.close()
	}
	if len(retries) < 2 {
		t.Errorf("retry is not spread: %v", retries)
	}
}

// HEAD sends a stream's headers and ends. OPTIONS is answered for every caller, and allows only the configured
// origins.
func TestHeadAndOptions(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.startGateway(t, gatewayOptions{config: "cors: {origins: [\"https://portal.example.org\"]}\n"})
	g.waitReady(t)
	for _, path := range []string{"/api/v1/nodes", "/stream?nodes=/api/v1/nodes"} {
		header := bearer(s.viewer(t))
		header.Set("Accept", "text/event-stream")
		a, err := fetch(http.MethodHead, g.url+path, header)
		if err != nil || a.code != http.StatusOK || a.body != "" || a.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("HEAD %s: %d %v %q, %v", path, a.code, a.header, a.body, err)
		}
	}
	for origin, allowed := range map[string]string{"https://portal.example.org": "https://portal.example.org", "https://evil.example.org": "", "": ""} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
			header.Set("Access-Control-Request-Method", http.MethodGet)
		}
		a, err := fetch(http.MethodOptions, g.url+"/api/v1/nodes", header)
		if err != nil || a.code != http.StatusNoContent || a.header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("OPTIONS: %d %v, %v", a.code, a.header, err)
		}
		if got := a.header.Get("Access-Control-Allow-Origin"); got != allowed {
			t.Errorf("%q: Access-Control-Allow-Origin: %q", origin, got)
		}
		headers := strings.ToLower(a.header.Get("Access-Control-Allow-Headers"))
		if allowed != "" && (!strings.Contains(headers, "authorization") || !strings.Contains(headers, "last-event-id")) {
			t.Errorf("Access-Control-Allow-Headers: %q", headers)
		}
	}
}

// A quiet stream has heartbeats, however rare the client asks for them to be. No client can ask for a flood of them.
func TestQuietStreamHasAHeartbeat(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "quiet")
	path := (scope{kind: configMapsKind, namespace: "quiet", labelSelector: "app=a"}).path()
	for _, heartbeat := range []string{"5s", "1ms"} { // the second has the same effect as the first
		stream := s.open(t, g, path+"&heartbeat="+heartbeat, nil)
		stream.mustEvent(t, "synced")
		began := time.Now()
		for n := 0; n < 2; n++ {
			read := stream.mustNext(t)
			if read.event != "" && read.ofTheStream() { // an API server that is short of time ends watches; the stream is quiet from then on
				began, n = time.Now(), -1
				continue
			}
			if read.comment == "" || read.event != "" || read.retry != "" {
				t.Errorf("heartbeat %d of %s is %+v", n, heartbeat, read)
			}
		}
		// The first comes after half of the interval at least, the second a whole one later.
		if took := time.Since(began); took < 5*time.Second {
			t.Errorf("two heartbeats of %s came within %s", heartbeat, took)
		}
		stream.close()
	}
}

// A stream ends at its age, with a bookmark from which its client goes on without a snapshot.
func TestStreamEndsAtItsAge(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.startGateway(t, gatewayOptions{config: "stream: {maxAge: 3s}\n"})
	g.waitReady(t)
	began := time.Now()
	stream := s.open(t, g, "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-00", nil)
	stream.mustEvent(t, "added")
	stream.mustEvent(t, "synced")
	end := stream.mustEnd(t)
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("it ended after %s", took)
	}
	if len(end) < 2 || end[len(end)-1].reason(t) != "age" || end[len(end)-2].event != "bookmark" || end[len(end)-2].id != end[len(end)-1].id {
		t.Fatalf("the end is %+v", end)
	}
	bookmark := end[len(end)-2]
	p, err := parsePosition(bookmark.id, single())
	if want := fmt.Sprintf(`{"resourceVersion":"%d"}`, p.versions[""]); err != nil || bookmark.data != want {
		t.Errorf("the bookmark is %+v", bookmark)
	}
	again := s.open(t, g, "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-00", http.Header{"Last-Event-Id": {bookmark.id}})
	for _, read := range again.mustEnd(t) {
		if read.event != "bookmark" && read.event != "goodbye" && read.event != "modified" { // a node may change
			t.Errorf("after its bookmark a client is told %+v", read)
		}
	}
}

// A stream too many is not answered with an error, but with a stream that says so.
func TestTooManyStreamsAreToldToComeAgain(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.startGateway(t, gatewayOptions{config: "stream: {perUser: 2}\n"})
	g.waitReady(t)
	first, second := s.open(t, g, "/api/v1/nodes", nil), s.open(t, g, "/api/v1/nodes", nil)
	id := first.find(t, "synced").id
	second.find(t, "synced")
	third := s.open(t, g, "/api/v1/nodes", http.Header{"Last-Event-Id": {id}})
	if end := third.mustEnd(t); len(end) != 1 || end[0].event != "goodbye" || end[0].reason(t) != "limit" || end[0].id != id {
		t.Errorf("the third stream is told %+v", end)
	}
	if !strings.Contains(third.raw.String(), "\nretry: ") {
		t.Errorf("the third stream is not told when to come again: %q", third.raw.String())
	}
	other, err := s.token("somebody-else", "platform")
	if err != nil {
		t.Fatal(err)
	}
	openAs(t, g, other, "/api/v1/nodes", nil).find(t, "synced")
	first.close()
	eventually(t, "there is room again", func() error {
		again := s.open(t, g, "/api/v1/nodes", nil)
		defer again.close()
		for {
			read, err := again.next()
			switch {
			case err != nil:
				return err
			case read.event == "goodbye":
				return fmt.Errorf("%+v", read)
			case read.event == "synced":
				return nil
			}
		}
	})
}

// Each write has only whole frames (rule 2). So a proxy or a kill can end a connection within a frame only if bytes
// are lost that were sent.
func TestChunksAreWholeFrames(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "whole-a", "whole-b")
	finish := s.startChurn(t, &churn{namespaces: []string{"whole-a", "whole-b"}, test: "whole", random: seed(t), pause: 2 * time.Millisecond})
	connection, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(eventuallyWithin)); err != nil {
		t.Fatal(err)
	}
	request := fmt.Sprintf("GET /api/v1/pods HTTP/1.1\r\nHost: gateway\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n", s.viewer(t))
	if _, err := io.WriteString(connection, request); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(connection)
	for line := ""; line != "\r\n"; {
		if line, err = reader.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	for frames := 0; frames < 100; {
		chunk, err := readChunk(reader)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasSuffix(chunk, []byte("\n\n")) {
			t.Fatalf("a chunk ends within a frame: %q", chunk[max(0, len(chunk)-80):])
		}
		frames += bytes.Count(chunk, []byte("\n\n"))
	}
	finish()
}

func readChunk(reader *bufio.Reader) ([]byte, error) {
	line, err := reader.ReadString('\n')
	if err != nil {
		return nil, err
	}
	size, err := strconv.ParseInt(strings.TrimRight(line, "\r\n"), 16, 32)
	if err != nil {
		return nil, fmt.Errorf("%q is no head of a chunk: %w", line, err)
	}
	chunk := make([]byte, size+2)
	if _, err := io.ReadFull(reader, chunk); err != nil {
		return nil, err
	}
	return chunk[:size], nil
}

// /clusters reports the states of the clusters.
func TestClustersAreListed(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	a := g.get(t, s.viewer(t), "/clusters")
	var answer struct {
		Clusters []struct {
			Name    string
			Default bool
			State   string
		}
	}
	if err := json.Unmarshal([]byte(a.body), &answer); err != nil || len(answer.Clusters) != 1 ||
		answer.Clusters[0].Name != "default" || !answer.Clusters[0].Default || answer.Clusters[0].State != "live" {
		t.Errorf("%v: %d %s", err, a.code, a.body)
	}
	if a := g.get(t, "", "/clusters"); a.code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", a.code)
	}
}
