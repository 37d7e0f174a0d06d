package app

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// streamBytes is what an open stream takes (docs/operations.md, "Sizes").
const streamBytes = 9 << 10

// memory compares what the gateway may come to hold with the memory that it has (GOMEMLIMIT). Rings fill only when much
// changes, so a limit that is too small shows late, and at a bad time.
type memory struct {
	estimate func() int64
	limit    func() int64
	log      *slog.Logger
	exceeds  bool // this was told
}

func newMemory(g *assembly) *memory {
	m := &memory{estimate: g.mayHold, limit: memoryLimit, log: g.log}
	g.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kubecast_memory_estimate_bytes",
		Help: "What objects, rings with ten further versions of each object (none is fuller than it may be), and open streams may come to occupy, without what Go needs to collect garbage; to be compared with go_gc_gomemlimit_bytes.",
	}, func() float64 { return float64(m.estimate()) }))
	return m
}

// mayHold is the estimate.
func (g *assembly) mayHold() (bytes int64) {
	for _, kinds := range g.clusters.kinds() {
		bytes += kinds.MayHold()
	}
	return bytes + int64(g.server.Load().Streams)*streamBytes
}

func memoryLimit() int64 { return debug.SetMemoryLimit(-1) }

// memoryEvery is the interval at which they are compared.
const memoryEvery = 15 * time.Second

// Run compares them until the context ends.
func (m *memory) Run(ctx context.Context) error {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			m.compare()
		}
	}
}

func (m *memory) compare() {
	limit := m.limit()
	if limit == math.MaxInt64 {
		return
	}
	estimate := m.estimate()
	switch exceeds := estimate > limit; {
	case exceeds && !m.exceeds:
		m.log.Warn("memory may not suffice once the rings are full: raise the limit, or lower ring.bytes, ring.events or kinds.atMost",
			"estimate", estimate, "limit", limit)
	case !exceeds && m.exceeds:
		m.log.Info("memory suffices again", "estimate", estimate, "limit", limit)
	}
	m.exceeds = estimate > limit
}
