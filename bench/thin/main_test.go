//go:build linux

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/pods"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// The test binary also serves as the benchmark's children.
func TestMain(m *testing.M) { process.TestMain(m, main) }

// Each workload runs in a small size, and the gateway delivers each change once.
func TestWorkloadsRunAndNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	var out strings.Builder
	err := run([]string{"-quick"}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
}

// What compresses a single event says how little of its bytes may be left: what a stream tells at
// once is a piece of its own.
func BenchmarkOneEvent(b *testing.B) {
	var events [][]byte
	for i := range 300 {
		events = append(events, fmt.Appendf(nil, "event: modified\nid: 123456789.0.abcdef.%d\ndata: %s\n\n", 10_000+i, pods.Pod(61*i, 1000, mark.Mark{})))
	}
	measure := func(name string, encode func(dst, event []byte) []byte) {
		b.Run(name, func(b *testing.B) {
			var coded []byte
			var before, after, i int
			for b.Loop() {
				event := events[i%len(events)]
				coded = encode(coded[:0], event)
				before, after, i = before+len(event), after+len(coded), i+1
			}
			b.ReportMetric(float64(before)/float64(i), "before/op")
			b.ReportMetric(float64(after)/float64(i), "after/op")
		})
	}
	for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBetterCompression, zstd.SpeedBestCompression} {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(false))
		if err != nil {
			b.Fatal(err)
		}
		measure("zstd/"+level.String(), func(dst, event []byte) []byte { return w.EncodeAll(event, dst) })
	}
	for _, level := range []int{1, 6, 9} {
		var out bytes.Buffer
		w, err := flate.NewWriter(&out, level)
		if err != nil {
			b.Fatal(err)
		}
		measure(fmt.Sprintf("deflate/%d", level), func(dst, event []byte) []byte {
			out.Reset()
			w.Reset(&out)
			_, _ = w.Write(event) // cannot fail: it writes to memory
			_ = w.Flush()         // likewise
			return append(dst, out.Bytes()...)
		})
	}
}
