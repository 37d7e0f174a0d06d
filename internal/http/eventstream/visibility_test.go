package eventstream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	identityInEvent = regexp.MustCompile(`"name":"([^"]+)","namespace":"([^"]+)".*"uid":"([^"]+)"`)
	uidInEvent      = regexp.MustCompile(`"uid":"([^"]+)"`) // all that patches name
)

// TestOnlyStreamsThatShowTheSameAreToldTogether: there are three of each sort, which differ in one thing from those of
// another, as in what their user may see. Each is told what it shows, in its own form, and nothing else.
func TestOnlyStreamsThatShowTheSameAreToldTogether(t *testing.T) {
	r := runFor(t, scopes{
		"ann": {Namespaces: []string{"team-a"}},
		"bob": {Namespaces: []string{"team-b"}, Names: map[string][]string{"team-a": {"last-a", "pod-1"}}},
	}, func(c net.Conn) net.Conn { return c })
	labels := map[string]string{"team-a/pod-1": "db", "team-a/pod-2": "web", "team-b/pod-1": "web", "team-a/last-a": "web", "team-b/last": "web"}
	teamA, teamB := []string{"team-a/pod-1", "team-a/pod-2", "team-a/last-a"}, []string{"team-b/pod-1", "team-b/last"}
	all := append(slices.Clone(teamA), teamB...)
	lacks := func(text string) func(string) bool {
		return func(event string) bool { return !strings.Contains(event, text) }
	}
	sorts := []struct {
		user, path, query, coding string
		shows                     []string
		form                      func(event string) bool // nil: any
	}{
		{shows: all},
		{coding: "gzip", shows: all},
		{coding: "zstd", shows: all},
		{user: "ann", shows: teamA},
		{user: "bob", shows: append([]string{"team-a/pod-1", "team-a/last-a"}, teamB...)},
		{path: "/api/v1/namespaces/team-a/pods", shows: teamA},
		{path: "/api/v1/namespaces/team-b/pods", shows: teamB},
		{user: "bob", path: "/api/v1/namespaces/team-a/pods", shows: []string{"team-a/pod-1", "team-a/last-a"}},
		{query: "?labelSelector=app%3Dweb", shows: all[1:]},
		{query: "?fieldSelector=metadata.name%21%3Dpod-1", shows: []string{"team-a/pod-2", "team-a/last-a", "team-b/last"}},
		{query: "?fields=metadata.labels", shows: all, form: lacks(`"spec"`)},
		{query: "?deltas=merge-patch", shows: all, form: lacks("event: modified\n")},
	}
	var listening sync.WaitGroup
	var listeners []*listener
	const each = 3
	for i := range each * len(sorts) {
		s := sorts[i%len(sorts)]
		l := &listener{
			r: r, random: rand.New(rand.NewPCG(1, 1)), user: s.user, path: s.path, query: s.query, coding: s.coding, steady: true,
			began: make(chan struct{}), ended: make(chan struct{}),
		}
		if !slices.Contains(s.shows, "team-b/last") {
			l.until = "last-a"
		}
		listeners = append(listeners, l)
		listening.Go(l.run)
	}
	for _, l := range listeners {
		<-l.began
	}
	var changed []string
	put := func(key string) {
		r.api.Put("pods", key, "metadata.labels.app="+labels[key], fmt.Sprint("spec.step=", len(changed)))
		changed = append(changed, key)
	}
	change := func() {
		for _, key := range []string{"team-a/pod-1", "team-b/pod-1", "team-a/pod-2"} {
			put(key)
		}
	}
	for end := time.Now().Add(patience); r.hub.Stats().Together != len(listeners); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d streams are told together, not %d", r.hub.Stats().Together, len(listeners))
		}
		change()
	}
	before := len(changed)
	for range 20 {
		change()
	}
	put("team-a/last-a")
	put("team-b/last")
	r.awaitEnds(listeners)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r.hub.Drain(ctx)
	listening.Wait()
	keys := map[string]string{} // by uid
	for _, l := range listeners {
		for _, event := range l.told {
			if of := identityInEvent.FindStringSubmatch(event); of != nil {
				keys[of[3]] = of[2] + "/" + of[1]
			}
		}
	}
	for i, l := range listeners {
		s, first := sorts[i%len(sorts)], listeners[i%len(sorts)]
		var want, got []string
		for _, key := range changed[before:] {
			if slices.Contains(s.shows, key) {
				want = append(want, key)
			}
		}
		for _, event := range l.told {
			of := uidInEvent.FindStringSubmatch(event)
			if strings.HasPrefix(event, "event: stale\n") || strings.HasPrefix(event, "event: live\n") {
				continue // it began before the watch stood
			}
			key := keys[of[1]]
			if got = append(got, key); s.form != nil && !s.form(event) {
				t.Errorf("%+v is told %s", s, event)
			}
			if !slices.Contains(s.shows, key) {
				t.Errorf("%+v is told of %s", s, key)
			}
		}
		if l.err != nil || len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) {
			t.Errorf("%+v: %v; is told of %v, not %v", s, l.err, got, want)
		}
		if i >= len(sorts) && !slices.Equal(l.told[max(0, len(l.told)-len(want)):], first.told[max(0, len(first.told)-len(want)):]) {
			t.Errorf("two of %+v are told different things", s)
		}
	}
}
