//go:build linux

package main

import "time"

// sizes are the sizes of the workloads.
type sizes struct {
	steady, busy, burst, logs, secured rates
	idle                               idleSize
	slow                               slowSize
	stalled                            stalledSize
	storm                              stormSize
}

// rates is a workload of events at a rate, or in a burst.
type rates struct {
	title   string
	rate    float64 // per second; 0: all at once
	clients int
	events  int
	warmUp  time.Duration
}

type idleSize struct {
	clients int
	settle  time.Duration // the time before memory is read: longer than the heartbeat
}

type slowSize struct {
	clients int
	rate    float64
	pause   time.Duration
}

type stalledSize struct {
	stalled int
	rate    float64
	events  int           // measured
	fill    time.Duration // the time in which the stalled clients' buffers fill
	rounds  int
}

type stormSize struct {
	clients int
	away    time.Duration // between the kill and the restart
	within  time.Duration // all come back
}

var full = sizes{
	steady:  rates{"20 events/s × 1,000 clients", 20, 1000, 240, 2 * time.Second},
	busy:    rates{"500 events/s × 200 clients", 500, 200, 6000, 2 * time.Second},
	burst:   rates{"a burst of 5,000 events to 500 clients", 0, 500, 5000, time.Second},
	logs:    rates{"100 lines/s × 1,000 viewers", 100, 1000, 1200, 2 * time.Second},
	secured: rates{"20 events/s × 500 clients", 20, 500, 160, 2 * time.Second},
	idle:    idleSize{10000, 20 * time.Second},
	slow:    slowSize{500, 500, time.Minute},
	stalled: stalledSize{100, 500, 4000, 5 * time.Second, 3},
	storm:   stormSize{2000, 2 * time.Second, time.Second},
}

var small = sizes{
	steady:  rates{"20 events/s × 50 clients", 20, 50, 20, 200 * time.Millisecond},
	busy:    rates{"500 events/s × 20 clients", 500, 20, 500, 200 * time.Millisecond},
	burst:   rates{"a burst of 300 events to 20 clients", 0, 20, 300, 100 * time.Millisecond},
	logs:    rates{"100 lines/s × 50 viewers", 100, 50, 100, 200 * time.Millisecond},
	secured: rates{"20 events/s × 50 clients", 20, 50, 20, 200 * time.Millisecond},
	idle:    idleSize{200, 500 * time.Millisecond},
	slow:    slowSize{20, 500, 2 * time.Second},
	stalled: stalledSize{5, 500, 300, time.Second, 1},
	storm:   stormSize{50, 200 * time.Millisecond, 200 * time.Millisecond},
}
