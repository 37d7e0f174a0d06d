package http

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/balance"
)

// TestScaleUpSpreadsStreamsAndLosesNothing: of two replicas that become eight, after five minutes none has a tenth more
// streams than the mean, and each client was told each change once and in order, whatever replicas it was at.
func TestScaleUpSpreadsStreamsAndLosesNothing(t *testing.T) {
	const clients = 240
	inBubbleOf(t, 8, func(t *testing.T, replicas []*gateway) {
		replicas[0].api.Put("pods", "team-b/earlier") // or positions would be older than all that the API server has
		ctx, cancel := context.WithCancel(context.Background())
		var running, reading sync.WaitGroup
		defer running.Wait()
		defer cancel()
		var ready atomic.Int64
		ready.Store(2)
		loads := func(context.Context) (all []balance.Load) {
			for _, g := range replicas[:ready.Load()] {
				all = append(all, g.server.Load())
			}
			return all
		}
		for _, g := range replicas {
			b := balance.New(balance.Options{Self: g.server.Load().Instance, Ask: loads, Move: g.server.Move, Registerer: prometheus.NewRegistry(), Log: g.server.log})
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
			if float64(n) > 1.1*mean+2 { // TestScaleUpIsLevelInFiveMinutes has more of them
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
