package main

import (
	"errors"
	"log/slog"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// heapShare is the part of the container's memory that Go may take before it collects garbage with more effort. The
// rest is for the kernel's socket buffers, which count as the container's memory, too; there are many connections.
const heapShare = 0.8

// limitMemory tells Go's garbage collector how much memory the container has (cgroup v1 and v2), unless GOMEMLIMIT is
// set.
func limitMemory(log *slog.Logger) {
	limit, err := memlimit.Set(memlimit.WithRatio(heapShare), memlimit.WithProvider(memlimit.FromCgroup))
	switch {
	case errors.Is(err, memlimit.ErrNoLimit), errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported):
	case err != nil:
		log.Warn("the container's memory limit cannot be read; set GOMEMLIMIT", "error", err)
	case limit < math.MaxInt64:
		log.Info("memory", "limit", limit)
	}
}
