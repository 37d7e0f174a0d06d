package eventstream

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/visibility"
)

// told are the names of the events that a client is told until it has been told all of some, whatever else comes.
func (r *running) told(from *bufio.Reader, all ...string) (names []string) {
	r.t.Helper()
	for !r.has(names, all) {
		line, err := from.ReadString('\n')
		if err != nil {
			r.t.Fatal(err)
		}
		if name, is := strings.CutPrefix(line, "event: "); is {
			names = append(names, strings.TrimSpace(name))
		}
		if strings.Contains(line, `"name":"last"`) {
			names = append(names, "last")
		}
	}
	return names
}

func (r *running) has(names, all []string) bool {
	return !slices.ContainsFunc(all, func(name string) bool { return !slices.Contains(names, name) })
}

// TestLiveComesBehindWhatAListFound, however long it takes to find out what that is.
func TestLiveComesBehindWhatAListFound(t *testing.T) {
	r := run(t, func(c net.Conn) net.Conn { return c })
	for n := range 2000 {
		r.api.Put("pods", fmt.Sprintf("team-a/p-%d", n))
	}
	told := r.open()
	r.api.Away(true)
	r.api.CutWatches("pods")
	r.told(told, "stale")
	for n := range 300 { // more than a batch
		r.api.Put("pods", fmt.Sprintf("team-a/p-%d", n), "spec.missed=yes")
	}
	r.api.Put("pods", "team-a/last")
	r.api.Compact()
	r.api.Away(false)
	if names := r.told(told, "live", "last"); names[len(names)-1] != "live" {
		t.Errorf("live was told before %q", names[slices.Index(names, "live"):])
	}
}

// TestWhoJoinsABroadcastIsToldThatItsSourceIsStale although the others were told before: what they
// were told in the batch at whose end it joins, it was not.
func TestWhoJoinsABroadcastIsToldThatItsSourceIsStale(t *testing.T) {
	r := run(t, func(c net.Conn) net.Conn { return c })
	clients := []*bufio.Reader{r.open(), r.open()}
	r.awaitTogether(2)
	r.api.Put("pods", "team-a/mark")
	for _, c := range clients {
		r.expect(c, `"name":"mark"`)
	}
	var c *group
	r.soon("the broadcast is known", func() bool {
		for _, ss := range r.hub.open.all() {
			if ss.Take() {
				c = ss.member.group
				ss.rest()
			}
		}
		return c != nil && c.Take() // from here on nobody serves it
	})
	granted, err := r.reach.Open(t.Context(), auth.Identity{}, visibility.Target{Version: "v1", Resource: "pods"}, "watch")
	if err != nil {
		t.Fatal(err)
	}
	defer granted.Release()
	store := granted.Store
	seen := func(version uint64) {
		r.soon("it is cached", func() bool { return store.Topic().Head().Version >= version })
	}
	var version uint64
	for n := range BatchSize {
		version = r.api.Put("pods", fmt.Sprintf("team-a/p-%d", n))
	}
	seen(version)
	clients = append(clients, r.open()) // its snapshot is of where the next batch of the others ends
	r.awaitTogether(3)
	seen(r.api.Put("pods", "team-a/after"))
	r.api.Away(true)
	r.api.CutWatches("pods")
	r.soon("it is stale", func() bool { return !store.Upstream().Live })
	r.soon("the broadcast is woken", func() bool { return !c.Idle() })
	c.enqueue()
	for _, client := range clients {
		r.told(client, "stale")
	}
}

func (r *running) soon(what string, is func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatal("never: " + what)
		}
	}
}
