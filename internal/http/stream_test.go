package http

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/stream"
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
	if f := s.next(); f.String() != "deleted web" || f.id != id(version) || f.field("metadata", "resourceVersion") != fmt.Sprint(version) {
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

// TestResumeIsExclusive: strictly after the position, whichever way it is sent.
func TestResumeIsExclusive(t *testing.T) {
	g := newGateway(t, cached(stream.Options{Events: 1000, Bytes: 1 << 20, Age: time.Hour}, "pods"))
	g.watches("pods", 1)
	first := g.api.Put("pods", "team-a/one")
	second := g.api.Put("pods", "team-a/two")
	third := g.api.Put("pods", "team-a/three")
	g.stream("/api/v1/pods?resourceVersion="+fmt.Sprint(first)).expect("added two", "added three")
	for name, open := range map[string]func(position string) *events{
		"header": func(p string) *events { return g.stream("/api/v1/pods", "Last-Event-ID: "+p) },
		"query":  func(p string) *events { return g.stream("/api/v1/pods?lastEventId=" + p) },
		"snake":  func(p string) *events { return g.stream("/api/v1/pods?last_event_id=" + p) },
		"header before query": func(p string) *events {
			return g.stream("/api/v1/pods?lastEventId="+id(third), "Last-Event-ID: "+p)
		},
		"position before resourceVersion": func(p string) *events {
			return g.stream("/api/v1/pods?resourceVersion="+fmt.Sprint(third), "Last-Event-ID: "+p)
		},
		"spaces around": func(p string) *events { return g.stream("/api/v1/pods?lastEventId=+" + p + "+") },
	} {
		s := open(id(first))
		if f := s.expect("added two"); f.id != id(second) {
			t.Errorf("%s: %q", name, f.raw)
		}
		s.expect("added three")
	}
}

// TestWatchesMayChangeBetweenConnections: those that the position does not name begin with a snapshot, those that are
// not asked for any more are forgotten, and neither is a reset.
func TestWatchesMayChangeBetweenConnections(t *testing.T) {
	g := newGateway(t, cached(stream.Options{Events: 1000, Bytes: 1 << 20, Age: time.Hour}, "pods", "jobs.batch"))
	g.watches("pods", 1)
	g.watches("jobs", 1)
	g.api.Put("jobs", "team-a/train")
	version := g.api.Put("pods", "team-a/web")
	g.eventually("the pod is cached", func() bool { return strings.Contains(g.get("/api/v1/pods").body, "web") })
	g.eventually("the job is cached", func() bool { return strings.Contains(g.get("/apis/batch/v1/jobs").body, "train") })
	position := fmt.Sprintf("Last-Event-ID: %s.pods-%d.gone-5", systemEpoch, version)

	s := g.stream("/stream?pods=/api/v1/pods&jobs=/apis/batch/v1/jobs", position)
	s.expect("jobs.added train", "jobs.synced")
	g.api.Put("pods", "team-a/new")
	f := s.expect("pods.added new")
	if strings.Contains(f.id, "gone") {
		t.Errorf("a watch that is not there: %q", f.raw)
	}
	// Positions of the other sort of stream, of this cluster, name nothing here.
	g.stream("/api/v1/namespaces/team-a/pods", position).expect("added new", "added web", "synced")
	g.stream("/stream?pods=/api/v1/pods", "Last-Event-ID: "+id(version)).expect("pods.added new", "pods.added web", "pods.synced")
	g.stream("/api/v1/pods", "Last-Event-ID: "+id(0)).expect("added new", "added web", "synced")
	g.stream("/stream?jobs=/apis/batch/v1/jobs", "Last-Event-ID: "+systemEpoch).expect("jobs.added train", "jobs.synced")
}

// TestEveryUnusablePositionIsAReset, never a 4xx: an EventSource that gets one never comes back.
func TestEveryUnusablePositionIsAReset(t *testing.T) {
	g := newGateway(t)
	g.api.Put("pods", "team-a/web")
	for _, test := range []struct{ position, reason string }{
		{id(5), "expired"},
		{"otherone.1001", "epoch"},
		{"otherone.0", "epoch"},
		{"otherone", "epoch"},
		{id(1 << 40), "ahead"},
		{"garbage!", "unreadable"},
		{"42", "epoch"},
		{systemEpoch + ".01", "unreadable"},
		{systemEpoch + ".-5", "unreadable"},
		{systemEpoch + ".pods-5.pods-6", "unreadable"},
		{systemEpoch + ".99999999999999999999", "unreadable"},
		{strings.Repeat("a", 5000), "unreadable"},
		{"\xff\xfe", "unreadable"},
		{"a\u0000b", "unreadable"},
		{"x\r\nevent: evil\r\ndata: 1\r\n", "unreadable"},
		{`"quotes"`, "unreadable"},
	} {
		s := g.stream("/api/v1/pods?lastEventId=" + escape(test.position))
		if f := s.expect("reset " + test.reason); f.id != id(0) {
			t.Errorf("%q: a reset's id is no position yet: %q", test.position, f.raw)
		}
		s.expect("added web", "synced")
		if !strings.ContainsAny(test.position, "\x00\r\n") {
			g.stream("/api/v1/pods", "Last-Event-ID: "+test.position).expect("reset "+test.reason, "added web", "synced")
		}
	}
}

// TestAllResetsComeBeforeTheFirstSnapshot: the ids of a snapshot leave out the watches that are still to be reset, so a
// client that came back with one would never hear of it.
func TestAllResetsComeBeforeTheFirstSnapshot(t *testing.T) {
	g := newGateway(t)
	g.api.Put("pods", "team-a/web")
	s := g.stream("/stream?a=/api/v1/pods&b=/api/v1/pods&c=/api/v1/pods", "Last-Event-ID: "+systemEpoch+".a-5.c-5")
	s.expect("a.reset expired", "c.reset expired", "a.added web", "a.synced", "b.added web", "b.synced", "c.added web", "c.synced")
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

// TestRelistThatIsCutOffIsToldAgain: the events of a relist carry the position from before it beside the list's, and
// only its end moves on; else a client cut off in the middle would never get the rest.
func TestRelistThatIsCutOffIsToldAgain(t *testing.T) {
	const pods = 3 * batchSize
	inBubble(t, func(t *testing.T, g *gateway) {
		for i := range pods {
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%03d", i))
		}
		s := g.stream("/api/v1/pods")
		before := s.until("synced").id
		g.api.Fail("pods", http.StatusServiceUnavailable)
		g.api.DropWatches("pods")
		s.until("stale")
		for i := range pods {
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%03d", i), "status.phase=Running")
		}
		g.api.Delete("pods", "team-a/pod-000")
		g.api.Put("pods", "team-a/new")
		g.api.Compact("pods")
		g.api.Fail("pods", 0)

		told := map[string]int{}
		for len(told) < pods+1 {
			f := s.next()
			if f.event == "live" {
				continue
			}
			told[f.String()]++
			if f.id != before+"-"+strconv.FormatUint(g.api.Version(), 10) {
				t.Fatalf("in the middle of a relist the id is not %s, and the list's version: %q", before, f.raw)
			}
			if len(told) == pods/2 {
				cut := g.stream("/api/v1/pods", "Last-Event-ID: "+f.id)
				again := 0
				for ; cut.frame().event != "bookmark"; again++ {
				}
				if again != pods+1 {
					t.Errorf("who was cut off in the middle gets %d events of %d", again, pods+1)
				}
			}
		}
		if told["deleted pod-000"] != 1 || told["added new"] != 1 || told["modified pod-001"] != 1 {
			t.Error("the difference was not told")
		}
		for {
			if f := s.frame(); f.event == "bookmark" {
				if want := id(g.api.Version()); f.id != want {
					t.Errorf("the relist's end is %q, not %s", f.raw, want)
				}
				return
			}
		}
	})
}

// TestOvertakenClientIsResetAsSlow and not left with a hole.
func TestOvertakenClientIsResetAsSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream("/api/v1/pods")
		s.expect("synced")
		// Nothing is read: the pipe holds nothing, so the session stands in its first write.
		for i := range 50 {
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%d", i))
			g.eventually("it is cached", func() bool { return len(g.kinds.All()) == 1 && g.kinds.All()[0].Snapshot().Len() == i+1 })
		}
		s.expect("added pod-0", "reset slow")
		count := 0
		for ; s.next().event == "added"; count++ {
		}
		if count != 50 {
			t.Errorf("the snapshot after the reset has %d objects", count)
		}
	}, cached(stream.Options{Events: 10, Bytes: 1 << 20, Age: time.Hour}))
}

// TestVersionsThatWentBackResetEverybody: positions from before an etcd restore mean nothing any more.
func TestVersionsThatWentBackResetEverybody(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for i := range 20 {
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%02d", i))
		}
		s := g.stream("/api/v1/pods")
		old := s.until("synced").id
		g.api.Rewind(900)
		if f := s.until("reset"); f.field("reason") != "epoch" || !strings.HasSuffix(f.id, ".0") {
			t.Errorf("%q", f.raw)
		}
		f := s.until("synced")
		if f.field("count") != "20" || f.field("resourceVersion") != "900" {
			t.Errorf("%q", f.raw)
		}
		g.eventually("the cluster has another epoch", func() bool {
			epoch, err := g.kinds.Cluster().Epoch(t.Context())
			return err == nil && epoch != systemEpoch
		})
		g.stream("/api/v1/pods", "Last-Event-ID: "+old).expect("reset epoch")
	})
}

// TestFreshnessIsTold: a client sees whether what it sees is still true.
func TestFreshnessIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream("/stream?p=/api/v1/pods&j=/apis/batch/v1/jobs")
		s.expect("j.synced", "p.synced")
		g.api.Fail("pods", http.StatusInternalServerError)
		g.api.DropWatches("pods")
		f := s.expect("p.stale unreachable")
		since, err := time.Parse(time.RFC3339Nano, f.field("since"))
		if err != nil || time.Since(since) > time.Minute {
			t.Errorf("%q", f.raw)
		}
		// Who comes now is told, too.
		g.stream("/api/v1/pods").expect("synced", "stale unreachable")
		g.api.Fail("pods", 0)
		s.expect("p.live live")
	})
}
