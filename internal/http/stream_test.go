package http

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/apitest"
)

// systemEpoch is the epoch of the fake API server, computed apart from the code under test: sha256 of the uid of
// kube-system, the first 40 bits, in base32.
const systemEpoch = "mzx7ntfk"

func id(version uint64) string { return systemEpoch + "." + strconv.FormatUint(version, 10) }

// TestStreamBeginsAtOnce: the status, the headers and the preamble are sent before anything is known of the kind, or
// proxies and browsers would take the connection for dead.
func TestStreamBeginsAtOnce(t *testing.T) {
	g := newGateway(t, before(func(api *apitest.API) { api.Hang("pods") }))
	s := g.open("/api/v1/pods")
	if s.response.StatusCode != http.StatusOK {
		t.Fatal(s.response.Status)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no",
		"X-Content-Type-Options": "nosniff",
	} {
		if got := s.response.Header.Get(name); got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
	if s.response.ContentLength != -1 {
		t.Error("the stream has a length")
	}
	preamble := make([]byte, len(": kubecast\n\nretry: 1234\n\n"))
	if _, err := io.ReadFull(s.body, preamble); err != nil {
		t.Fatal(err)
	}
	rest, ok := strings.CutPrefix(string(preamble), ": kubecast\n\nretry: ")
	retry, err := strconv.Atoi(strings.TrimSuffix(rest, "\n\n"))
	if !ok || err != nil || retry < 2000 || retry > 4000 {
		t.Errorf("the preamble is %q", preamble)
	}
	g.api.Fail("pods", 0)
	s.expect("synced")
}

func TestIDsBeforeAndAfterSynced(t *testing.T) {
	g := newGateway(t)
	version := g.api.Put("pods", "team-a/web")
	s := g.stream("/api/v1/namespaces/team-a/pods")
	if f := s.next(); f.String() != "added web" || f.id != id(0) {
		t.Errorf("in the snapshot: %q", f.raw)
	}
	f := s.next()
	if want := fmt.Sprintf(`{"resourceVersion":"%d","count":1}`, version); f.event != "synced" || f.id != id(version) || f.data != want {
		t.Errorf("at its end: %q", f.raw)
	}
	version = g.api.Put("pods", "team-a/web", "status.phase=Running")
	if f := s.next(); f.String() != "modified web" || f.id != id(version) || f.field("status", "phase") != "Running" {
		t.Errorf("live: %q", f.raw)
	}
	version = g.api.Delete("pods", "team-a/web")
	if f := s.next(); f.String() != "deleted web" || f.id != id(version-1)+fmt.Sprint("-", version) || f.field("metadata", "resourceVersion") != fmt.Sprint(version) {
		t.Errorf("live: %q", f.raw)
	}
}

// TestNoIDClaimsAWatchThatIsNotSynced: an id that named a watch before its snapshot is complete would let a client that
// is cut off there resume without the rest.
func TestNoIDClaimsAWatchThatIsNotSynced(t *testing.T) {
	g := newGateway(t)
	g.api.Put("jobs", "team-a/train")
	version := g.api.Put("pods", "team-a/web")
	s := g.stream("/stream?a=/apis/batch/v1/jobs&b=/api/v1/pods&c=/api/v1/nodes")
	want := func(f frame, event, id string) {
		t.Helper()
		if f.event != event || f.id != id {
			t.Errorf("got %q, not %s with id %s", f.raw, event, id)
		}
	}
	a := fmt.Sprintf("%s.a-%d", systemEpoch, version)
	b := fmt.Sprintf("%s.b-%d", a, version)
	want(s.next(), "a.added", systemEpoch)
	want(s.next(), "a.synced", a)
	want(s.next(), "b.added", a)
	want(s.next(), "b.synced", b)
	want(s.next(), "c.synced", fmt.Sprintf("%s.c-%d", b, version))
	g.api.Put("nodes", "node-1")
	want(s.next(), "c.added", fmt.Sprintf("%s.c-%d", b, version+1))
	g.api.Put("jobs", "team-a/train", "spec.suspend:=true")
	want(s.next(), "a.modified", fmt.Sprintf("%s.a-%d.b-%d.c-%d", systemEpoch, version+2, version, version+1))
}

func TestWithoutASnapshotThereIsNoSynced(t *testing.T) {
	g := newGateway(t)
	g.api.Put("pods", "team-a/old")
	for _, path := range []string{"/api/v1/pods?sendInitialEvents=false", "/stream?sendInitialEvents=false&p=/api/v1/pods"} {
		s := g.stream(path)
		g.eventually("the stream waits", func() bool { return g.readers("pods") == 1 })
		version := g.api.Put("pods", "team-a/new")
		if f := s.next(); !strings.HasSuffix(f.event, "added") || f.field("metadata", "resourceVersion") != fmt.Sprint(version) {
			t.Errorf("%s: %q", path, f.raw)
		}
		g.api.Delete("pods", "team-a/new")
		s.next()
		s.close()
		g.eventually("the stream has left", func() bool { return g.readers("pods") == 0 })
	}
}

// TestEnteringAndLeavingASelector: an object that ceases to match is told as deleted, as it last matched.
func TestEnteringAndLeavingASelector(t *testing.T) {
	g := newGateway(t)
	g.api.Put("pods", "team-a/web", "metadata.labels.app=web", "status.phase=Pending")
	g.api.Put("pods", "team-a/db", "metadata.labels.app=db", "status.phase=Pending")
	label := g.stream("/api/v1/pods?labelSelector=app%3Dweb")
	field := g.stream("/api/v1/pods?fieldSelector=status.phase%3DPending,metadata.name!%3Ddb")
	both := g.stream("/stream?p=" + escape("/api/v1/namespaces/team-a/pods?labelSelector=app=web&fieldSelector=status.phase=Pending"))
	label.expect("added web", "synced")
	field.expect("added web", "synced")
	both.expect("p.added web", "p.synced")

	g.api.Put("pods", "team-a/db", "metadata.labels.app=web", "status.phase=Pending")
	label.expect("added db")
	both.expect("p.added db")

	version := g.api.Put("pods", "team-a/web", "metadata.labels.app=web", "status.phase=Running")
	label.expect("modified web")
	for _, f := range []frame{field.expect("deleted web"), both.expect("p.deleted web")} {
		if f.field("status", "phase") != "Pending" || f.field("metadata", "resourceVersion") != fmt.Sprint(version) {
			t.Errorf("not as it last matched, with the version of the event: %q", f.raw)
		}
	}
	g.api.Put("pods", "team-a/web", "metadata.labels.app=none")
	label.expect("deleted web")
	g.api.Delete("pods", "team-a/web")
	g.api.Put("pods", "team-a/last", "metadata.labels.app=web", "status.phase=Pending")
	label.expect("added last")
	field.expect("added last")
	both.expect("p.added last")
}

func TestStreamOfOneObject(t *testing.T) {
	g := newGateway(t)
	g.api.Put("pods", "team-a/web")
	g.api.Put("pods", "team-b/web")
	s := g.stream("/api/v1/namespaces/team-a/pods/web")
	if f := s.expect("added web"); f.field("metadata", "namespace") != "team-a" {
		t.Errorf("%q", f.raw)
	}
	if f := s.expect("synced"); f.field("count") != "1" {
		t.Errorf("%q", f.raw)
	}
	g.api.Put("pods", "team-a/other")
	g.api.Delete("pods", "team-b/web")
	g.api.Delete("pods", "team-a/web")
	s.expect("deleted web")
	g.api.Put("pods", "team-a/web")
	s.expect("added web")

	absent := g.stream("/api/v1/namespaces/team-a/pods/absent")
	if f := absent.expect("synced"); f.field("count") != "0" {
		t.Errorf("%q", f.raw)
	}
	g.api.Put("pods", "team-a/absent")
	absent.expect("added absent")
}
