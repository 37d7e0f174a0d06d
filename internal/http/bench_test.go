package http

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// BenchmarkDelivery appends events to a topic that clients on loopback follow. Its time is that of one event to all of
// them; the figures per delivery include the kernel's and the clients' share.
func BenchmarkDelivery(b *testing.B) {
	for _, clients := range []int{1, 100, 1000} {
		for _, gather := range []int{1, 20} {
			b.Run(fmt.Sprintf("clients=%d/gathered=%d", clients, gather), func(b *testing.B) { deliver(b, clients, gather) })
		}
	}
}

// What is made for each delivery is garbage soon: at ten thousand clients it is more than the events themselves.
func TestADeliveryAllocatesNothing(t *testing.T) {
	result := testing.Benchmark(func(b *testing.B) { deliver(b, 100, 1) })
	// Some 0.9 of them are those of pools, which forget on purpose while races are looked for.
	if perDelivery := result.Extra["allocs/delivery"]; result.N == 0 || perDelivery > 1.4 {
		t.Errorf("%.2f allocations for each delivery, in %d rounds", perDelivery, result.N)
	}
}

func deliver(b *testing.B, clients, gather int) {
	var braces braceCounter
	g := newGateway(b, options(func(o *Options) { o.Stream.MaxAge = 24 * time.Hour }))
	request := "GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nAccept: text/event-stream\r\n\r\n"
	for range clients {
		conn, r := g.raw(request)
		if err := conn.SetDeadline(time.Time{}); err != nil {
			b.Fatal(err)
		}
		go func() { _, _ = io.Copy(&braces, r) }() // ends with the connection
	}
	g.eventually("all of them wait", func() bool { return g.server.streams.Stats().Idle == clients })
	topic := g.kinds.All()[0].Topic()
	g.eventually("all that they were told was read", func() bool { return braces.Load() == int64(clients) }) // synced
	version, expected := uint64(1<<30), braces.Load()
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	b.ReportAllocs()
	for b.Loop() {
		for range gather {
			version++
			o := newPod(b, version)
			topic.Append(version, stream.Change[*cluster.Object]{Type: stream.Modified, Object: o, Old: o})
		}
		expected += 2 * int64(gather*clients)
		for braces.Load() < expected {
			runtime.Gosched()
		}
	}
	runtime.ReadMemStats(&end)
	deliveries := float64(b.N * gather * clients)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/deliveries, "ns/delivery")
	b.ReportMetric(float64(end.Mallocs-start.Mallocs)/deliveries, "allocs/delivery")
}

// braceCounter counts what tells how many events were read, however the reads cut them: the data of each of newPod has
// two opening braces.
type braceCounter struct{ atomic.Int64 }

func (c *braceCounter) Write(p []byte) (int, error) {
	c.Add(int64(bytes.Count(p, []byte("{"))))
	return len(p), nil
}

// newPod is an object of 2 KiB.
func newPod(b *testing.B, version uint64) *cluster.Object {
	o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"namespace":"team-a","name":"web","uid":"u","resourceVersion":"%d"},"spec":%q}`,
		version, strings.Repeat("x", 2<<10)))
	if err != nil {
		b.Fatal(err)
	}
	return o
}
