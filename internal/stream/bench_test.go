package stream

import (
	"fmt"
	"sync"
	"testing"
)

// BenchmarkAppend shows that the writer's cost does not grow with the number of readers that wait for other
// namespaces.
func BenchmarkAppend(b *testing.B) {
	for _, readers := range []int{0, 1_000, 10_000} {
		b.Run(fmt.Sprintf("%d readers elsewhere", readers), func(b *testing.B) {
			topic := newTestTopic(Options{Events: 4096, Bytes: 1 << 30})
			defer run(topic)()
			for i := range readers {
				c := topic.From(topic.Head(), Namespaces(fmt.Sprint("n", i)))
				c.Arm(NewWakeChannel())
				defer c.Disarm()
			}
			object := &item{namespace: "busy"}
			version := uint64(100)
			b.ReportAllocs()
			for b.Loop() {
				version++
				topic.Append(version, Change[*item]{Object: object})
			}
		})
	}
	b.Run("1000 readers here", func(b *testing.B) {
		topic := newTestTopic(Options{Events: 4096, Bytes: 1 << 30})
		for range 1000 {
			c := topic.From(topic.Head(), Namespaces("busy"))
			c.Arm(NewWakeChannel())
			defer c.Disarm()
		}
		object := &item{namespace: "busy"}
		version := uint64(100)
		b.ReportAllocs()
		for b.Loop() {
			version++
			topic.Append(version, Change[*item]{Object: object})
		}
	})
}

// BenchmarkNext measures one reader's cost per event, in batches of 100.
func BenchmarkNext(b *testing.B) {
	for _, bench := range []struct {
		name       string
		namespaces NamespaceSet
	}{{"all", AllNamespaces()}, {"one", Namespaces("n0")}, {"three of ten", Namespaces("n0", "n1", "n2")}} {
		b.Run(bench.name, func(b *testing.B) {
			topic := newTestTopic(Options{Events: 4096, Bytes: 1 << 30})
			for version := uint64(101); version <= 4100; version++ {
				topic.Append(version, added(fmt.Sprint("n", version%10), version))
			}
			start, err := topic.Resume(UpTo(100), bench.namespaces)
			if err != nil {
				b.Fatal(err)
			}
			batch := make([]*Event[*item], 0, 100)
			events := 0
			b.ReportAllocs()
			for b.Loop() {
				c := *start
				for {
					read, _, err := c.Next(batch, nil)
					if err != nil {
						b.Fatal(err)
					}
					events += len(read)
					if len(read) < cap(batch) {
						break
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
}

// BenchmarkFanOut measures one event that wakes a thousand readers: each reads it and waits again.
func BenchmarkFanOut(b *testing.B) {
	topic := newTestTopic(Options{Events: 4096, Bytes: 1 << 30})
	defer run(topic)()
	var told, ended sync.WaitGroup
	done := make(chan struct{})
	for range 1000 {
		told.Add(1)
		c, w := topic.From(topic.Head(), Namespaces("busy")), NewWakeChannel()
		ended.Go(func() {
			defer c.Disarm()
			batch := make([]*Event[*item], 0, 16)
			for {
				for c.Arm(w) {
					told.Done()
					select {
					case <-w.C:
					case <-done:
						return
					}
				}
				if _, _, err := c.Next(batch, nil); err != nil {
					panic(err)
				}
			}
		})
	}
	object, version := &item{namespace: "busy"}, uint64(100)
	told.Wait()
	b.ReportAllocs()
	for b.Loop() {
		version++
		told.Add(1000)
		topic.Append(version, Change[*item]{Object: object})
		told.Wait()
	}
	close(done)
	ended.Wait()
}
