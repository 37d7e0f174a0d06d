package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string) *Log {
	t.Helper()
	l, err := Open(path, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// run runs a log; the returned function stops it.
func run(t *testing.T, l *Log) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func event(n int) *Event {
	return &Event{RequestID: fmt.Sprint(n), Stage: StageComplete, Verb: "list", User: &User{Username: "alice"}, Path: "/api/v1/pods"}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ids returns the request ids of a log. Each line must be JSON.
func ids(t *testing.T, text string) (found []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e struct{ AuditID string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("%v: %q", err, line)
		}
		found = append(found, e.AuditID)
	}
	return found
}

func TestEventIsAnAuditEventOfKubernetes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	e := Event{
		RequestID: "id", Stage: StageStarted, Path: "/api/v1/pods", Verb: "watch", User: &User{Username: "alice\n", Groups: []string{"a", "b"}},
		Address: "1.2.3.4", UserAgent: "curl", Object: &Object{Resource: "jobs", Namespace: "n", APIGroup: "batch", APIVersion: "v1"},
		Code: 200, Received: at, At: at.Add(time.Second), Annotations: map[string]string{"authorization.k8s.io/decision": "allow"},
	}
	const want = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"id","stage":"ResponseStarted","requestURI":"/api/v1/pods",` +
		`"verb":"watch","user":{"username":"alice\n","groups":["a","b"]},"sourceIPs":["1.2.3.4"],"userAgent":"curl",` +
		`"objectRef":{"resource":"jobs","namespace":"n","apiGroup":"batch","apiVersion":"v1"},"responseStatus":{"code":200},` +
		`"requestReceivedTimestamp":"2026-01-02T03:04:05.678901Z","stageTimestamp":"2026-01-02T03:04:06.678901Z",` +
		`"annotations":{"authorization.k8s.io/decision":"allow"}}` + "\n"
	if got, err := e.line(); string(got) != want || err != nil {
		t.Errorf("%s%v, not\n%s", got, err, want)
	}
}

func TestEverythingIsWrittenBeforeTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(`{"auditID":"before"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, path)
	end := run(t, l)
	const n = 3000
	for i := range n {
		l.Record(event(i))
	}
	end()
	if got := ids(t, read(t, path)); len(got) != n+1 || got[0] != "before" || got[1] != "0" || got[n] != fmt.Sprint(n-1) {
		t.Errorf("%d lines", len(got))
	}
	if written := testutil.ToFloat64(l.written); written != n {
		t.Errorf("%v are counted", written)
	}
}

// The log goes on in a new file after a rotation, be the old one moved away without a successor, or truncated.
func TestLogGoesOnInANewFileAfterRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, path)
	batch := l.flush(nil, event(1))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	batch = l.flush(batch[:0], event(2))
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	l.flush(batch[:0], event(3))
	l.close()
	if first, second := ids(t, read(t, path+".1")), ids(t, read(t, path)); fmt.Sprint(first, second) != "[1] [3]" {
		t.Errorf("%v in the old file, %v in the new one", first, second)
	}
}

// full is an output like a disk that is full after some bytes.
type full struct {
	bytes.Buffer
	room int
}

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), f.room)
	f.room -= n
	f.Buffer.Write(p[:n])
	if n < len(p) {
		return n, os.ErrInvalid
	}
	return n, nil
}

func TestFullDiskIsCountedAndNoLineIsTornForLong(t *testing.T) {
	l := open(t, "")
	disk := &full{room: 100}
	l.out = disk
	batch := l.flush(nil, event(1))
	batch = l.flush(batch[:0], event(2))
	disk.room = 1 << 20
	batch = l.flush(batch[:0], event(3))
	disk.room = 0
	l.flush(batch[:0], event(4))
	torn, whole, _ := strings.Cut(disk.String(), "\n")
	if len(torn) != 100 || fmt.Sprint(ids(t, whole)) != "[3]" {
		t.Errorf("%s", disk.String())
	}
	if written, lost := testutil.ToFloat64(l.written), testutil.ToFloat64(l.lost); written != 1 || lost != 3 {
		t.Errorf("written %v, lost %v", written, lost)
	}
}

// stuck is a pipe that nobody reads.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) {
	<-s
	return len(p), nil
}

// A pipe that nothing reads delays neither Record nor the end of Run. Strangers run out of room before users do.
func TestPipeThatNobodyReadsHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, "")
		pipe := make(stuck)
		l.out = pipe
		end := run(t, l)
		began := time.Now()
		l.Record(event(0))
		synctest.Wait() // it is blocked in Write
		for i := range queued {
			stranger := event(i)
			stranger.User = nil
			l.Record(stranger)
		}
		if lost := testutil.ToFloat64(l.lost); lost != queued/2 {
			t.Errorf("strangers: %v lost", lost)
		}
		for i := range queued {
			l.Record(event(i))
		}
		if lost := testutil.ToFloat64(l.lost); lost != queued {
			t.Errorf("all: %v lost", lost)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("recording took %v", took)
		}
		end()
		if took := time.Since(began); took != atTheEnd {
			t.Errorf("the end took %v", took)
		}
		close(pipe)
		synctest.Wait()
	})
}

func TestFileThatCannotBeOpenedIsAFault(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "none", "audit.log"), prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "audit.file") {
		t.Error(err)
	}
}
