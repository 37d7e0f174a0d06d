package http

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkLivePages has 1,000 live pages of 50 questions about 20,000 pods, of which 100 change in
// a second. It tells how long after its change an object on a page is told; the API server and the
// clients are in the same process.
func BenchmarkLivePages(b *testing.B) {
	const pods, clients, rate = 20000, 1000, 100
	random := rand.New(rand.NewPCG(1, 1))
	g := newGateway(b, options(func(o *Options) { o.Stream.MaxAge = 24 * time.Hour }))
	put := func(i int) {
		g.api.Put("pods", fmt.Sprintf("team-%d/web-%x-%d", i%10, uint32(i)*2654435761, i), fmt.Sprintf("metadata.labels.app=app-%d", i%3),
			fmt.Sprintf("metadata.annotations.at=%d", time.Now().UnixNano()), fmt.Sprintf("spec.n:=%d", random.IntN(1e6)),
			"status.phase="+[]string{"Running", "Pending", "Failed"}[random.IntN(3)], "spec.pad="+strings.Repeat("x", 2000))
	}
	for i := range pods {
		put(i)
	}
	orders := []string{"-spec.n", "status.phase,spec.n", "-metadata.annotations.at", "spec.n", "metadata.name"}
	var mu sync.Mutex
	var took []time.Duration
	measuring, pages := false, 0
	for i := range clients {
		question := i % 50
		conn, r := g.raw(fmt.Sprintf("GET /api/v1/namespaces/team-%d/pods?limit=50&conflate=10ms&sort=%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nAccept: text/event-stream\r\n\r\n",
			question%10, orders[question/10]))
		if err := conn.SetDeadline(time.Time{}); err != nil {
			b.Fatal(err)
		}
		go func() { // ends with the connection
			for {
				line, err := r.ReadBytes('\n')
				if err != nil {
					return
				}
				mu.Lock()
				if bytes.HasPrefix(line, []byte("event: page")) {
					pages++
				}
				if _, at, is := bytes.Cut(line, []byte(`"at":"`)); is && measuring {
					text, _, _ := bytes.Cut(at, []byte(`"`))
					// What moves on to the page because another one has left it has changed long before.
					if at, err := strconv.ParseInt(string(text), 10, 64); err == nil && time.Since(time.Unix(0, at)) < 5*time.Second {
						took = append(took, time.Since(time.Unix(0, at)))
					}
				}
				mu.Unlock()
			}
		}()
	}
	g.eventually("all have their page", func() bool { mu.Lock(); defer mu.Unlock(); return pages >= clients })
	time.Sleep(6 * time.Second)
	mu.Lock()
	measuring = true
	mu.Unlock()
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	for b.Loop() {
		<-tick.C
		put(random.IntN(pods))
	}
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(took)
	if len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "ms-median")
		b.ReportMetric(float64(took[len(took)*999/1000].Microseconds())/1e3, "ms-p99.9")
		b.ReportMetric(float64(len(took))/float64(b.N), "told/change")
	}
}
