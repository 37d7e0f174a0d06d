package http

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/stream"
)

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

// The watch that is furthest behind is told first. A client whose connections are short would never be told of the
// others, as long as the first has news.
func TestTheWatchThatIsFurthestBehindComesFirst(t *testing.T) {
	g := newGateway(t, cached(stream.Options{Events: 1000, Bytes: 1 << 20, Age: time.Hour}, "pods", "jobs.batch"))
	g.watches("pods", 1)
	before := g.api.Put("pods", "team-a/first")
	g.api.Put("pods", "team-a/second")
	after := g.api.Put("pods", "team-a/third")
	g.api.Put("pods", "team-a/fourth")
	one, another, other := fmt.Sprintf(".one-%d", after), fmt.Sprintf(".another-%d", after), fmt.Sprintf(".other-%d", before)
	for query, position := range map[string]string{"one=%[1]s&other=%[1]s": one + other, "other=%[1]s&one=%[1]s": one + other, "one=%[1]s&another=%[1]s&other=%[1]s": one + another + other} {
		s := g.stream("/stream?"+fmt.Sprintf(query, "/api/v1/pods"), "Last-Event-ID: "+systemEpoch+position)
		s.expect("other.added second", "other.added third", "other.added fourth")
		s.close()
	}
}

// TestWhatWasMissedComesBeforeTheFirstBookmark of each watch: from there on a client is up to date, and says so.
func TestWhatWasMissedComesBeforeTheFirstBookmark(t *testing.T) {
	const missed = 5000
	g := newGateway(t, cached(stream.Options{Events: 2 * missed, Bytes: 64 << 20, Age: time.Hour}, "pods", "jobs.batch"))
	path := "/stream?pods=/api/v1/pods&jobs=/apis/batch/v1/jobs"
	s := g.stream(path)
	s.until("jobs.synced") // watches are told by their names
	position := s.until("pods.synced").id
	s.close()
	for n := range missed {
		g.api.Put("pods", fmt.Sprintf("team-a/pod-%d", n))
	}
	g.api.Put("jobs", "team-a/train")
	g.eventually("the job is cached", func() bool { return strings.Contains(g.get("/apis/batch/v1/jobs").body, "train") })
	g.eventually("the pods are cached", func() bool {
		return strings.Contains(g.get("/api/v1/namespaces/team-a/pods/"+fmt.Sprintf("pod-%d", missed-1)).body, "uid")
	})
	s = g.stream(path, "Last-Event-ID: "+position)
	told := map[string]int{}
	for bookmarks := 0; bookmarks < 2; {
		switch f := s.frame(); f.event {
		case "pods.bookmark":
			bookmarks++
			if told["pods.added"] != missed {
				t.Errorf("the first bookmark comes behind %d of %d pods", told["pods.added"], missed)
			}
		case "jobs.bookmark":
			bookmarks++
			if told["jobs.added"] != 1 {
				t.Error("the first bookmark comes before the job")
			}
		default:
			told[f.event]++
		}
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
		{strings.Repeat("a", 9000), "unreadable"},
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

// TestPositionBeforeTheRingIsCaughtUp from the API server: a restart of the gateway is no event for its clients.
func TestPositionBeforeTheRingIsCaughtUp(t *testing.T) {
	g := newGateway(t)
	g.api.Put("pods", "team-a/one")
	seen := g.api.Put("pods", "team-a/gone", "metadata.labels.app=web")
	g.api.Put("pods", "team-b/other", "metadata.labels.app=web")
	g.api.Put("pods", "team-a/one", "metadata.labels.app=web")
	g.api.Delete("pods", "team-a/gone")
	last := g.api.Put("pods", "team-a/new", "metadata.labels.app=web")
	s := g.stream("/api/v1/namespaces/team-a/pods?labelSelector=app%3Dweb", "Last-Event-ID: "+id(seen))
	if f := s.expect("modified one", "deleted gone", "added new"); f.id != id(last) {
		t.Errorf("%q", f.raw)
	}
	g.api.Put("pods", "team-a/live", "metadata.labels.app=web")
	s.expect("added live")
}

// TestPositionAheadIsBelievedIfTheAPIServerIsThere: another replica may have told it, if only with a bookmark.
func TestPositionAheadIsBelievedIfTheAPIServerIsThere(t *testing.T) {
	g := newGateway(t)
	g.stream("/api/v1/pods").expect("synced")
	ahead := g.api.Put("nodes", "node-1") // which nobody tells the watch of pods
	s := g.stream("/api/v1/pods", "Last-Event-ID: "+id(ahead))
	g.eventually("both wait", func() bool { return g.readers("pods") == 2 })
	g.api.Put("pods", "team-a/web")
	s.expect("added web")
	g.stream("/api/v1/pods", "Last-Event-ID: "+id(ahead+100)).expect("reset ahead", "added web", "synced")
}

// TestWatchesAreAuthorizedSideBySide: the client of many watches does not wait for each of them in turn.
func TestWatchesAreAuthorizedSideBySide(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.access.set(func(a *fakeAuth) {
			a.decide = func(auth.Identity, auth.Request) (bool, error) {
				pass(3 * time.Second)
				return true, nil
			}
		})
		began := time.Now()
		g.stream("/stream?a=/api/v1/pods&b=/api/v1/nodes&c=/apis/batch/v1/jobs&d=/api/v1/namespaces&e=/api/v1/secrets")
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
