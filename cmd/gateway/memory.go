package main

import (
	"errors"
	"log/slog"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// heapShare is how much of the memory that the container is given Go may take before it collects with more effort. The kernel
// counts what connections have not taken yet, too, and there are many of them.
const heapShare = 0.8

// limitMemory tells Go's garbage collector how much memory the container is given (cgroup v1 and v2), unless GOMEMLIMIT does.
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
