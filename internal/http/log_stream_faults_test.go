package http

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestWhatIsThereIsNotToldBeforeThePodsAreKnown of an owner that has others in between: these come
// by a watch of their own.
func TestWhatIsThereIsNotToldBeforeThePodsAreKnown(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		g.api.Put("jobs", "a/train", "metadata.uid=u")
		g.api.Put("deployments", "a/between", "metadata.uid=u", ownedBy("Job", "batch/v1", "train"))
		k.ownedPod("a/web", ownedBy("Deployment", "apps/v1", "between"))
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one", "two", "three")
		const path = "/logs/apis/batch/v1/namespaces/a/jobs/train?tailLines=2"
		s := g.stream(path + "&follow=false")
		s.says("started web/main#0", "web/main two", "web/main three", "synced", "goodbye gone")
	}, between)
}

// slowLogs has the kubelet send answers in pieces, with rests.
func (k *kubelet) slowLogs(lines int, rest time.Duration) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("follow") == "" {
			k.ServeHTTP(w, r)
			return
		}
		k.ServeHTTP(&restingWriter{ResponseWriter: w, lines: lines, rest: rest, over: r.Context().Done()}, r)
	})
	k.instead.Store(&answer)
}

type restingWriter struct {
	http.ResponseWriter
	lines int
	rest  time.Duration
	over  <-chan struct{}
}

func (w *restingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *restingWriter) Write(p []byte) (int, error) {
	n := 0
	for piece := range slices.Chunk(strings.SplitAfter(string(p), "\n"), w.lines) {
		text := strings.Join(piece, "")
		if _, err := io.WriteString(w.ResponseWriter, text); err != nil {
			return n, err
		}
		n += len(text)
		if text != "" {
			_ = http.NewResponseController(w.ResponseWriter).Flush()
			select {
			case <-time.After(w.rest):
			case <-w.over:
				return n, io.ErrClosedPipe
			}
		}
	}
	return n, nil
}

// TestWhatComesSlowlyIsNotCutAsIfItWereAll for a client that does not follow.
func TestWhatComesSlowlyIsNotCutAsIfItWereAll(t *testing.T) {
	for _, rest := range []time.Duration{100 * time.Millisecond, time.Second} {
		withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
			g := all[0]
			k.starts("a/web", "main")
			const lines = 3000
			for i := range lines {
				k.writes("a/web", "main", strconv.Itoa(i))
			}
			k.slowLogs(100, rest)
			a := g.get("/logs/api/v1/namespaces/a/pods/web?follow=false&tailLines=100000", "Accept: text/plain")
			if got := strings.Count(a.body, "\n"); got != lines {
				t.Errorf("%v: %d lines of %d, and it looks complete", rest, got, lines)
			}
		})
	}
}

// TestEachIDNamesAllContainersOfTheOneBefore while a client that has come back is told of the first of them.
func TestEachIDNamesAllContainersOfTheOneBefore(t *testing.T) {
	withKubelet(t, 2, func(t *testing.T, k *kubelet, all []*gateway) {
		const path = "/logs/api/v1/namespaces/a/pods"
		for _, pod := range []string{"a/one", "a/two"} {
			k.starts(pod, "main")
			k.writes(pod, "main", "before")
		}
		s := all[0].stream(path)
		s.until("synced")
		k.exits("a/one", "main", 1)
		s.until("ended")
		s.close()
		k.starts("a/one", "main")
		back := all[1].stream(path, "Last-Event-ID: "+s.lastID)
		for { // cut behind each event that there is
			f := back.next()
			again := all[0].stream(path, "Last-Event-ID: "+f.id)
			k.writes("a/two", "main", "after "+f.id)
			for {
				said := saidOf(again.next())
				if said == "two/main before" {
					t.Fatalf("told again behind %s", f.raw)
				}
				if said == "two/main after "+f.id {
					break
				}
			}
			again.close()
			if f.event == "started" {
				break
			}
		}
	})
}

// TestLinesThatWereMissedComeBeforeTheFirstBookmark, as the changes of a watch do.
func TestLinesThatWereMissedComeBeforeTheFirstBookmark(t *testing.T) {
	withKubelet(t, 2, func(t *testing.T, k *kubelet, all []*gateway) {
		const path, missed = "/logs/api/v1/namespaces/a/pods", 2000
		for _, pod := range []string{"a/one", "a/two"} {
			k.starts(pod, "main")
			k.writes(pod, "main", "before")
		}
		s := all[0].stream(path)
		s.until("synced")
		s.close()
		for n := range missed {
			k.writes("a/two", "main", fmt.Sprint(n))
		}
		back, lines := all[1].stream(path, "Last-Event-ID: "+s.lastID), 0
		for f := back.frame(); f.event != "bookmark"; f = back.frame() {
			if f.event == "line" {
				lines++
			}
		}
		if lines != missed {
			t.Errorf("the first bookmark comes behind %d of %d lines", lines, missed)
		}
	})
}

// TestLimitLeavesThePositionAsItWas for a client that comes back to a replica that has no room.
func TestLimitLeavesThePositionAsItWas(t *testing.T) {
	withKubelet(t, 2, func(t *testing.T, k *kubelet, all []*gateway) {
		const path = "/logs/api/v1/namespaces/a/pods?labelSelector=!other"
		for _, pod := range []string{"a/one", "a/two"} {
			k.starts(pod, "main")
			k.writes(pod, "main", "before")
		}
		s := all[0].stream(path)
		s.until("synced")
		id := s.lastID
		s.close()
		k.starts("b/other", "main")
		other := all[1].stream("/logs/api/v1/namespaces/b/pods/other")
		other.until("synced")
		back := all[1].stream(path, "Last-Event-ID: "+id)
		if back.until("goodbye").field("reason") != "limit" {
			t.Fatal("it had room")
		}
		again := all[0].stream(path, "Last-Event-ID: "+back.lastID)
		k.writes("a/two", "main", "after")
		again.says("two/main after")
	}, options(func(o *Options) { o.Limits.Logs = LogLimits{Total: 2, PerUser: 10} }))
}

// TestNodeThatStartsAnewDoesNotEndItsLogs: its kubelet does not know its pods for a moment, and says 404.
func TestNodeThatStartsAnewDoesNotEndItsLogs(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one")
		s := g.stream("/logs/api/v1/namespaces/a/pods/web")
		s.says("started web/main#0", "web/main one", "synced")
		var pod *fakePod
		k.change(func() { pod = k.pods["a/web"]; delete(k.pods, "a/web") })
		k.breakAll()
		time.Sleep(2 * time.Second)
		k.change(func() { k.pods["a/web"] = pod })
		k.writes("a/web", "main", "two")
		s.says("web/main two")
	})
}

// TestOwnersThatOwnEachOtherTakeNoLongerThanTheyAreMany, since anybody may make such.
func TestOwnersThatOwnEachOtherTakeNoLongerThanTheyAreMany(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		var names []string
		for i := range 60 {
			names = append(names, fmt.Sprint("x-", i))
		}
		for _, name := range names {
			g.api.Put("deployments", "a/"+name, "metadata.uid=u", ownedBy("Deployment", "apps/v1", names...))
		}
		k.ownedPod("a/web", ownedBy("Deployment", "apps/v1", names...))
		k.starts("a/web", "main")
		s := g.stream("/logs/apis/batch/v1/namespaces/a/jobs/train")
		s.says("synced")
		pass(time.Second)
	}, between)
}

// TestRunThatWasReplacedWhileNobodyReadIsMissing, although the next one is there.
func TestRunThatWasReplacedWhileNobodyReadIsMissing(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		const path = "/logs/api/v1/namespaces/a/pods/web"
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one")
		s := all[0].stream(path)
		s.until("synced")
		s.close()
		pass(time.Minute) // nobody follows it any more
		k.writes("a/web", "main", "missed")
		for range 2 {
			k.exits("a/web", "main", 1)
			k.starts("a/web", "main")
		}
		pass(time.Second) // until the gateway knows of both; of the first alone it would be read, and not missing
		back := all[0].stream(path, "Last-Event-ID: "+s.lastID)
		back.says("reset expired web", "started web/main#1")
	})
}

// TestRunThatAReplicaHasNotHeardOfIsReadOnceItHas by a client that comes from one which had.
func TestRunThatAReplicaHasNotHeardOfIsReadOnceItHas(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		const path = "/logs/api/v1/namespaces/a/pods/web"
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one")
		s := all[0].stream(path)
		s.until("synced")
		s.close()
		// EPOCH.l-p1-KEY-RUN-…: as if the next run had been begun elsewhere.
		parts := strings.Split(s.lastID, "-")
		ahead := strings.Join(append(parts[:3:3], "2", "0", "0", "0"), "-")
		back := all[0].stream(path, "Last-Event-ID: "+ahead)
		pass(time.Second)
		k.exits("a/web", "main", 1)
		k.starts("a/web", "main")
		k.writes("a/web", "main", "two")
		back.says("web/main two")
	})
}

// TestRunThatWasReplacedWhileItsConnectionWasBrokenIsMissing and has not simply ended.
func TestRunThatWasReplacedWhileItsConnectionWasBrokenIsMissing(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one")
		s := all[0].stream("/logs/api/v1/namespaces/a/pods/web")
		s.says("started web/main#0", "web/main one", "synced")
		away := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		k.instead.Store(&away)
		k.breakAll()
		k.writes("a/web", "main", "missed")
		for range 2 {
			k.exits("a/web", "main", 1)
			k.starts("a/web", "main")
		}
		k.instead.Store(nil)
		for {
			switch said := saidOf(s.next()); {
			case said == "reset expired web":
				return
			case strings.HasPrefix(said, "started web/main#"):
				t.Fatal("nothing says that lines of the first run are missing")
			}
		}
	})
}

// TestLinesOfTheNextRunAreNotToldAsOfTheOneBefore while its node knows that the container was
// started again, and the API server does not.
func TestLinesOfTheNextRunAreNotToldAsOfTheOneBefore(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		k.starts("a/web", "main")
		k.writes("a/web", "main", "one")
		s := all[0].stream("/logs/api/v1/namespaces/a/pods/web")
		s.says("started web/main#0", "web/main one", "synced")
		k.change(func() {
			k.runs[runKey("a/web", "main", 0)].ended = true
			k.pods["a/web"].restarts["main"]++
			k.runs[runKey("a/web", "main", 1)] = &logRun{began: time.Now()}
		})
		k.writes("a/web", "main", "two")
		time.Sleep(time.Second)
		k.report("a/web")
		k.writes("a/web", "main", "three")
		s.says("ended web/main#0 Completed 0", "started web/main#1", "web/main two", "web/main three")
	})
}

// TestEachIDNamesTheLogsThatWereTold, also before they are looked at on a stream that goes on with
// them. A client that is cut there would be told all of them again, and nothing would say so.
func TestEachIDNamesTheLogsThatWereTold(t *testing.T) {
	withKubelet(t, 1, func(t *testing.T, k *kubelet, all []*gateway) {
		g := all[0]
		k.starts("a/web", "main")
		k.writes("a/web", "main", "before")
		g.api.Put("pods", "b/one")
		path := "/stream?a=" + escape("/api/v1/namespaces/b/pods") + "&z=" + escape("/logs/api/v1/namespaces/a/pods/web")
		s := g.stream(path)
		for synced := 0; synced < 2; { // in whichever order
			if strings.HasSuffix(s.next().event, ".synced") {
				synced++
			}
		}
		s.close()
		g.api.Put("pods", "b/two")
		pass(time.Second)
		back := g.stream(path, "Last-Event-ID: "+s.lastID)
		first := back.next()
		back.close()
		again := g.stream(path, "Last-Event-ID: "+first.id)
		k.writes("a/web", "main", "after")
		if f := again.until("z.line"); f.field("text") != "after" {
			t.Errorf("told again behind %s: %s", first.raw, f.raw)
		}
	})
}
