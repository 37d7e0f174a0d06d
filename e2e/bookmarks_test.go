package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/e2e/harness"
)

// Each watch has a bookmark at least every minute (rule 6), however quiet it is or busy the others are. So a client
// that is cut off comes back with a position that the gateway, or the API server, still knows. Two bookmarks show
// that they go on.
func TestEachWatchHasABookmarkEveryMinute(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "minute-busy", "minute-quiet")
	g := s.sharedGateway(t)
	c := &churn{namespaces: []string{"minute-busy"}, test: "minute", random: seed(t), pause: 100 * time.Millisecond}
	finish := s.startChurn(t, c)
	watches := several("busy", "filtered", "quiet")
	path := "/stream" + query(
		"busy", scope{kind: podsKind, namespace: "minute-busy"}.path(),
		"filtered", scope{kind: podsKind, namespace: "minute-busy", labelSelector: "app=nobody"}.path(),
		"quiet", scope{kind: configMapsKind, namespace: "minute-quiet", labelSelector: "app=nobody"}.path(),
	)

	const minute, late = time.Minute, 15 * time.Second // a busy machine may be late
	ctx, cancel := context.WithTimeout(context.Background(), 2*(minute+late))
	defer cancel()
	stream, err := openFrames(ctx, g.url+path, bearer(s.viewer(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.close()
	seen, newest, at := map[string]int{}, map[string]time.Time{}, map[string]uint64{}
	for seen["busy"] < 2 || seen["filtered"] < 2 || seen["quiet"] < 2 {
		read, err := stream.next()
		if err != nil {
			t.Fatalf("%v after the bookmarks %v:\n%s", err, seen, harness.Tail(stream.raw.String(), 12))
		}
		watch, event, _ := strings.Cut(read.event, ".")
		if event != "synced" && event != "bookmark" {
			continue
		}
		p, err := parsePosition(read.id, watches)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf(`"resourceVersion":"%d"`, p.versions[watch]); !strings.Contains(read.data, want) {
			t.Errorf("%s of %s has the data %s, and the id %s", event, watch, read.data, read.id)
		}
		if event == "bookmark" {
			seen[watch]++
			if pause := time.Since(newest[watch]); pause > minute+late {
				t.Errorf("bookmark %d of %s came after %s", seen[watch], watch, pause)
			}
			// Changes in the namespace move also the position of the watch whose selector excludes them.
			if watch != "quiet" && p.versions[watch] <= at[watch] {
				t.Errorf("bookmark %d of %s is at version %d, and so was the one before", seen[watch], watch, at[watch])
			}
		}
		newest[watch], at[watch] = time.Now(), p.versions[watch]
	}
	finish()
}
