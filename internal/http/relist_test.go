package http

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/stream"
)

// TestRelistThatIsCutOffIsToldAgain: the events of a relist carry the position from before it beside the list's, and
// only its end moves on; else a client cut off in the middle would never get the rest.
func TestRelistThatIsCutOffIsToldAgain(t *testing.T) {
	const pods = 3 * eventstream.BatchSize
	inBubble(t, func(t *testing.T, g *gateway) {
		for i := range pods {
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%03d", i))
		}
		s := g.stream("/api/v1/pods")
		before := s.until("synced").id
		g.api.Fail("pods", http.StatusServiceUnavailable)
		g.api.CutWatches("pods")
		s.until("stale")
		for i := range pods {
			g.api.Put("pods", fmt.Sprintf("team-a/pod-%03d", i), "status.phase=Running")
		}
		g.api.Delete("pods", "team-a/pod-000")
		g.api.Put("pods", "team-a/new")
		g.api.Compact()
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
				for f := cut.frame(); f.id != id(g.api.Version()); f = cut.frame() {
					if f.event != "bookmark" && f.event != "live" && f.event != "stale" { // it may begin before the watch has proved itself
						again++
					}
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
		g.api.Renumber(900)
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

// TestHistoryThatBeginsAnewWhileAPlaceIsSoughtResets: a client that waits to be caught up when the
// cluster is restored knows of what never was there in the other history.
func TestHistoryThatBeginsAnewWhileAPlaceIsSoughtResets(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "team-a/old")
		seen := g.api.Put("pods", "team-a/older")
		g.api.Put("pods", "team-a/new")
		g.stream("/api/v1/pods").until("synced")
		g.api.Hang("pods")
		// The first is being caught up, and the other waits for the next flight.
		first := g.stream("/api/v1/pods", "Last-Event-ID: "+id(seen))
		pass(time.Second)
		second := g.stream("/api/v1/pods", "Last-Event-ID: "+id(seen))
		pass(time.Second)
		g.api.Renumber(900)
		g.api.Delete("pods", "team-a/old")
		for g.api.Version() < seen+10 {
			g.api.Put("pods", "team-a/new")
		}
		pass(3 * time.Second) // a list is asked for
		g.api.Fail("pods", 0)
		for name, s := range map[string]*events{"that was being caught up": first, "that waited": second} {
			f := s.next()
			if f.event == "stale" { // it takes long
				f = s.next()
			}
			if f.event != "reset" {
				t.Errorf("a client %s when the cluster was restored is told %q, and keeps what never was there", name, f.raw)
			}
		}
	})
}

// TestFreshnessIsTold: a client sees whether what it sees is still true.
func TestFreshnessIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		s := g.stream("/stream?p=/api/v1/pods&j=/apis/batch/v1/jobs")
		s.expect("j.synced", "p.synced")
		g.api.Fail("pods", http.StatusInternalServerError)
		g.api.CutWatches("pods")
		f := s.expect("p.stale unreachable")
		since, err := time.Parse(time.RFC3339Nano, f.field("since"))
		if err != nil || time.Since(since) > time.Minute {
			t.Errorf("%q", f.raw)
		}
		// A client that comes now is told, too.
		g.stream("/api/v1/pods").expect("synced", "stale unreachable")
		g.api.Fail("pods", 0)
		s.expect("p.live live")
	})
}

// TestAnIDOfANewHistoryNamesNoVersionOfTheOld on a stream of several watches: whoever is cut off
// after the first of them has begun anew would come back with a version of the old history, as if
// it were one of the new, and miss what is in between.
func TestAnIDOfANewHistoryNamesNoVersionOfTheOld(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		const path = "/stream?one=/api/v1/pods&other=/api/v1/pods&two=/apis/batch/v1/jobs"
		g.api.Put("jobs", "team-a/train")
		g.api.Put("pods", "team-a/gone")
		s := g.stream(path)
		s.until("two.synced")
		g.api.Put("pods", "team-a/busy")
		old := s.until("other.added").id
		version := g.api.Version()
		g.api.Renumber(900)
		for g.api.Version() < version { // in the new history, the old version means something else
			g.api.Put("pods", "team-a/new")
		}
		if !strings.Contains(old, fmt.Sprintf("other-%d", version)) {
			t.Fatalf("the old id %s shows nothing", old)
		}
		cut := s.next()
		// Either may be the first. What two is told before has an epoch that is void once the pods begin anew.
		for cut.event != "one.reset" && cut.event != "other.reset" {
			cut = s.next()
		}
		for f, anew := cut, map[string]bool{}; len(anew) < 2; f = s.next() {
			if watch, ok := strings.CutSuffix(f.event, ".synced"); ok {
				anew[watch] = true
			}
			for _, watch := range []string{"one", "other"} {
				position, err := stream.ParsePosition(f.id)
				if claim, names := position.Claims[watch]; err != nil || !anew[watch] && names && claim.Epoch != systemEpoch {
					t.Errorf("%s: id %s", f.event, f.id)
				}
			}
		}
		back := g.stream(path, "Last-Event-ID: "+cut.id)
		for _, watch := range []string{"one.synced", "other.synced"} { // the state, which is what it has missed
			back.until(watch)
		}
	})
}
