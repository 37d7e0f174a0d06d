package main

import (
	"bytes"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"
)

// GOMEMLIMIT wins over the container's limit. Without a container limit there is no warning.
func TestMemoryLimitIsTheOperatorsIfThereIsOne(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	limitMemory(logger)
	if strings.Contains(log.String(), "level=WARN") {
		t.Error(log.String())
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	debug.SetMemoryLimit(math.MaxInt64 / 2)
	limitMemory(logger)
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64/2 {
		t.Errorf("the limit is %d", limit)
	}
}
