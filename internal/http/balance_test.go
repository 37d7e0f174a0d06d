package http

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/balance"
)

// TestScaleUpSpreadsStreamsAndLosesNothing: of two replicas that become eight, after five minutes none has more
// streams than chance makes of the mean, and each client was told each change once and in order, whatever replicas it was at.
func TestScaleUpSpreadsStreamsAndLosesNothing(t *testing.T) {
	const clients = 480
	inBubbleOf(t, 8, func(t *testing.T, replicas []*gateway) {
		replicas[0].api.Put("pods", "team-b/earlier") // or positions would be older than all that the API server has
		ctx, cancel := context.WithCancel(context.Background())
		var running, reading sync.WaitGroup
		defer running.Wait()
		defer cancel()
		var ready atomic.Int64
		ready.Store(2)
		loads := func(context.Context) (all []balance.Load, complete bool) {
			for _, g := range replicas[:ready.Load()] {
				all = append(all, g.server.Load())
			}
			return all, true
		}
		for _, g := range replicas {
			b := balance.New(balance.Options{Self: g.server.Load().Instance, Ask: loads, Move: g.server.Move, Returned: g.server.Returned, Registerer: prometheus.NewRegistry(), Log: g.server.log})
			running.Go(func() { _ = b.Run(ctx) })
		}
		var opened sync.WaitGroup
		opened.Add(clients)
		told := make([][]string, clients)
		var moves atomic.Int64
		for i := range clients {
			reading.Go(func() {
				synced := sync.OnceFunc(opened.Done)
				defer synced()
				g, position := replicas[i%2], ""
				for {
					s := g.stream("/api/v1/namespaces/team-a/pods", "Last-Event-ID: "+position, "Accept-Encoding: ")
					for over := false; !over; {
						f := s.next()
						switch f.event {
						case "synced":
							synced()
						case "added", "modified":
							told[i] = append(told[i], f.field("metadata", "name"))
							if f.field("metadata", "name") == "last" {
								s.close()
								return
							}
						case "reset":
							if position != "" {
								t.Errorf("client %d is told %q", i, f.raw)
							}
						case "goodbye":
							over = true
							if f.String() != "goodbye age" {
								t.Errorf("client %d is told %q", i, f.raw)
							}
						}
					}
					position = s.lastID
					s.close()
					moves.Add(1)
					pass(100*time.Millisecond + rand.N(400*time.Millisecond))
					g = replicas[rand.IntN(int(ready.Load()))]
				}
			})
		}
		opened.Wait()
		ready.Store(8)
		for n := range 20 {
			pass(15 * time.Second)
			replicas[0].api.Put("pods", fmt.Sprintf("team-a/pod-%d", n))
		}
		pass(time.Second)
		mean := float64(clients) / 8
		var counts []int
		for _, g := range replicas {
			counts = append(counts, g.server.Load().Streams)
		}
		for _, n := range counts {
			if float64(n) > mean+4*math.Sqrt(mean) { // TestScaleUpIsLevelInFiveMinutes has more of them
				t.Errorf("after five minutes: %d", counts)
				break
			}
		}
		if n := moves.Load(); n < clients/2 || n > clients*3/2 {
			t.Errorf("%d clients were moved %d times", clients, n)
		}
		cancel() // those that end now come back before the last change
		pass(time.Minute)
		replicas[0].api.Put("pods", "team-a/last")
		reading.Wait()
		var want []string
		for n := range 20 {
			want = append(want, fmt.Sprintf("pod-%d", n))
		}
		want = append(want, "last")
		for i, got := range told {
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Fatalf("client %d was told %s", i, got)
			}
		}
	})
}

// TestMovedClientLeavesItsConnection: over HTTP/2 it would come back by the one that it has, and so here, although others may
// go on by that.
func TestMovedClientLeavesItsConnection(t *testing.T) {
	inEachTLSBubble(t, func(t *testing.T, g *gateway) {
		type end struct {
			s    *events
			left []frame
		}
		ends := make(chan end, 2)
		for range 2 {
			s := g.stream("/api/v1/pods")
			s.expect("synced")
			go func() { ends <- end{s, s.end()} }()
		}
		pass(30 * time.Second)
		if n := g.server.Move(1, time.Millisecond); n != 1 {
			t.Fatalf("%d streams are moved", n)
		}
		moved := <-ends
		if last := moved.left[len(moved.left)-1]; last.String() != "goodbye age" {
			t.Errorf("%q", last.raw)
		}
		g.api.Put("pods", "team-a/web")
		connections := g.connections()
		if moved.s.version() == 2 {
			back := g.stream("/api/v1/pods", "Last-Event-ID: "+moved.s.lastID).end()
			last := back[len(back)-1]
			if last.String() != "goodbye age" || last.id != moved.s.lastID || lastRetry(back) > 500*time.Millisecond || lastRetry(back) == 0 {
				t.Errorf("who comes back by the same connection is told %q", last.raw)
			}
		}
		again := g.stream("/api/v1/pods", "Last-Event-ID: "+moved.s.lastID)
		again.expect("added web")
		if version := again.version(); version == 2 && g.connections() != connections+1 {
			t.Errorf("%d connections, %d before", g.connections(), connections)
		}
		g.eventually("it is known to have come back", func() bool { return g.server.Returned() == 1 })
		select {
		case other := <-ends:
			t.Errorf("the other stream has ended: %q", other.left)
		default:
			g.server.Move(2, time.Millisecond)
			told := slices.DeleteFunc((<-ends).left, func(f frame) bool { return f.event == "bookmark" })
			if told[0].String() != "added web" {
				t.Errorf("the other stream is told %q", told)
			}
		}
	})
}

// inEachTLSBubble is inBubble over TLS with either version of HTTP.
func inEachTLSBubble(t *testing.T, test func(*testing.T, *gateway)) {
	t.Helper()
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP%d", version), func(t *testing.T) { inBubble(t, test, overTLS(t, version)) })
	}
}

// connections is how many net/http has.
func (g *gateway) connections() int {
	g.server.connections.mu.Lock()
	defer g.server.connections.mu.Unlock()
	return len(g.server.connections.open)
}

// TestMovedWatchLeavesItsConnection: client-go goes on with a watch at 429, and does not list again.
func TestMovedWatchLeavesItsConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		version := g.api.Put("pods", "team-a/web")
		g.get("/api/v1/pods")
		path := fmt.Sprintf("/api/v1/pods?watch=true&resourceVersion=%d", version)
		w := g.watch(path)
		g.eventually("it is open", func() bool { return g.server.Load().Streams == 1 })
		pass(30 * time.Second)
		g.server.Move(1, time.Millisecond)
		if last := w.next(); last.Exists() {
			t.Errorf("%s", last)
		}
		if a := g.get(path); a.code != 429 || a.header.Get("Retry-After") == "" {
			t.Errorf("%d %v", a.code, a.header)
		}
		g.api.Put("pods", "team-a/more")
		g.watch(path).expect("ADDED more")
	}, overTLS(t, 2))
}

// TestStreamThatHasJustBegunIsNotMoved: within its first snapshot it has no position by which to go on, and client-go lists
// again where a watch ends that is less than a second old.
func TestStreamThatHasJustBegunIsNotMoved(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		var reading sync.WaitGroup
		defer reading.Wait()
		defer g.drain()
		open := func(streams int) {
			for range streams {
				s := g.stream("/api/v1/pods")
				s.expect("synced")
				reading.Go(func() { s.end() })
			}
		}
		open(3)
		if n := g.server.Move(5, time.Second); n != 0 {
			t.Errorf("%d are moved that have just begun", n)
		}
		pass(29 * time.Second)
		if n := g.server.Move(5, time.Second); n != 0 {
			t.Errorf("%d are moved after 29 s", n)
		}
		pass(2 * time.Second)
		open(2)
		if n := g.server.Move(5, time.Second); n != 3 {
			t.Errorf("of 3 old streams and 2 new ones, %d are moved", n)
		}
		pass(2 * time.Second)
		if n := g.server.Load().Streams; n != 2 {
			t.Errorf("%d are left", n)
		}
		pass(30 * time.Second)
		if n := g.server.Move(5, time.Second); n != 2 {
			t.Errorf("%d are moved once they are old", n)
		}
	})
}

// TestStreamIsNotMovedWithinItsFirstSnapshot, however long its client takes for that: it would begin anew, elsewhere.
func TestStreamIsNotMovedWithinItsFirstSnapshot(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for i := range 8 {
			g.api.Put("pods", fmt.Sprintf("team-a/%d", i), "spec.pad="+noise(64<<10))
		}
		slow := g.stream("/stream?p=/api/v1/pods&n=/api/v1/nodes") // it has read its greeting, and no object yet
		pass(time.Minute)
		if n := g.server.Move(1, time.Second); n != 0 {
			t.Error("a stream is moved within its first snapshot")
		}
		slow.until("p.synced")
		var reading sync.WaitGroup
		defer reading.Wait()
		reading.Go(func() { slow.end() })
		pass(time.Minute)
		if n := g.server.Move(1, time.Second); n != 1 {
			t.Error("a stream is not moved behind its first snapshot")
		}
	}, options(func(o *Options) { o.Stream.WriteTimeout = 10 * time.Minute }))
}

// TestMovedStreamsAreChosenAtRandom: who opens many has not only those of others moved.
func TestMovedStreamsAreChosenAtRandom(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		var reading sync.WaitGroup
		defer reading.Wait()
		defer g.drain()
		for _, user := range []string{"alice", "bob"} {
			for range 40 {
				s := g.stream("/api/v1/pods", "Authorization: Bearer "+user)
				s.expect("synced")
				reading.Go(func() { s.end() })
			}
			pass(time.Minute)
		}
		if n := g.server.Move(40, time.Second); n != 40 {
			t.Errorf("%d are moved", n)
		}
		pass(time.Minute)
		log := g.log.String()
		ended := [2]int{strings.Count(log, "user=alice reason=age"), strings.Count(log, "user=bob reason=age")}
		if ended[0]+ended[1] != 40 || min(ended[0], ended[1]) < 6 {
			t.Errorf("of 40 streams of either, %d were moved", ended)
		}
	})
}

// TestClientsThatComeBackAreCounted, and nobody else.
func TestClientsThatComeBackAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "team-a/web")
		var open []*events
		for range 10 {
			s := g.stream("/api/v1/pods", "X-Forwarded-For: 10.0.0."+fmt.Sprint(len(open)+1))
			s.until("synced")
			open = append(open, s)
		}
		var reading sync.WaitGroup
		for _, s := range open {
			reading.Go(func() { s.end() })
		}
		pass(30 * time.Second)
		g.server.Move(10, time.Second)
		reading.Wait()
		for i, s := range open[:4] {
			g.stream("/api/v1/pods", "Last-Event-ID: "+s.lastID, "X-Forwarded-For: 10.0.0."+fmt.Sprint(i+1))
		}
		g.stream("/api/v1/pods", "Last-Event-ID: "+open[0].lastID, "X-Forwarded-For: 10.0.0.1") // was counted
		g.stream("/api/v1/pods", "Last-Event-ID: "+open[0].lastID, "X-Forwarded-For: 10.0.0.99")
		g.stream("/api/v1/pods", "X-Forwarded-For: 10.0.0.9")
		g.stream("/api/v1/namespaces/team-a/pods", "Last-Event-ID: "+open[8].lastID, "X-Forwarded-For: 10.0.0.9")
		pass(time.Second)
		if n := g.server.Returned(); n != 4 {
			t.Errorf("%d have come back", n)
		}
	})
}
