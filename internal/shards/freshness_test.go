package shards

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/kubecast/kubecast/internal/cores"
)

// TestAMergedWatchIsStaleWhileACoreIs, and live once all that cores had missed is told, and not only come.
func TestAMergedWatchIsStaleWhileACoreIs(t *testing.T) {
	pod := func(version int) string {
		return fmt.Sprintf(`{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"%d"}}}`, version)
	}
	stale, live := fmt.Sprintf(`{"type":%q,"object":{"reason":"unreachable"}}`, cores.Stale), fmt.Sprintf(`{"type":%q,"object":{"reason":"live"}}`, cores.Live)
	var told bytes.Buffer
	m := &merger{to: &told, bookmarked: 10, queues: make([]queue, 2), most: 1 << 20}
	for k := range m.queues {
		m.queues[k] = queue{passed: 10, complete: 10, reach: make(chan uint64, 1), room: semaphore.NewWeighted(m.most)}
	}
	for i, step := range []struct {
		shard int
		comes string
		told  string // what an edge is told upon it, but bookmarks
	}{
		{0, stale, "STALE"},
		{1, stale, ""}, // it is said already
		{1, pod(12), ""},
		{0, live, ""}, // the other one is not
		{0, pod(14), "MODIFIED 12"},
		{1, live, "LIVE"},
		{1, stale, "STALE"},
		{1, pod(18), "MODIFIED 14"},
		{1, live, ""}, // what it had missed waits for the other one
		{0, pod(16), "MODIFIED 16"},
		{0, pod(20), "MODIFIED 18, LIVE"},
		{1, stale, "STALE"},
		{1, pod(24), "MODIFIED 20"},
		{1, live, ""},
		{1, stale, ""}, // before that was told
		{0, pod(26), "MODIFIED 24"},
		{1, live, "LIVE"},
	} {
		e, err := newDecoder(strings.NewReader(step.comes)).next()
		if err != nil {
			t.Fatal(err)
		}
		if e.waits() && !m.queues[step.shard].room.TryAcquire(m.weight(e)) {
			t.Fatal("there is no room")
		}
		if err := m.take(step.shard, e); err != nil {
			t.Fatal(err)
		}
		if err := m.tell(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(told.String()) {
			e, err := newDecoder(strings.NewReader(line)).next()
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, e.kind); e.version > 0 {
				got[len(got)-1] += fmt.Sprint(" ", e.version)
			}
		}
		told.Reset()
		got = slices.DeleteFunc(got, func(text string) bool { return strings.HasPrefix(text, "BOOKMARK") })
		if text := strings.Join(got, ", "); text != step.told {
			t.Errorf("step %d: %q, not %q", i, text, step.told)
		}
	}
	if held := len(m.queues[0].events) + len(m.queues[1].events); held != m.held {
		t.Errorf("%d events wait, and are counted as %d", held, m.held)
	}
	for k := range m.queues {
		free := m.most
		for _, e := range m.queues[k].events {
			free -= m.weight(e)
		}
		if !m.queues[k].room.TryAcquire(free) {
			t.Errorf("shard %d has lost room", k)
		}
	}
}
