// Package backoff owns how long somebody waits before something that failed is tried again, and that the same error is
// logged once.
//
// What it promises: the first wait is between a half and the whole of First; each further one is
// twice that, up to Most. The random part keeps those that failed together, such as the replicas
// when a database ends, from coming back together.
package backoff

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Backoff is the waits between the attempts of one loop. It is for one goroutine.
type Backoff struct {
	first, most time.Duration
	steps       wait.Backoff
}

// New returns the waits from first to most, both positive.
func New(first, most time.Duration) *Backoff {
	b := &Backoff{first: first, most: most}
	b.Reset()
	return b
}

// Reset makes the next wait the first one: an attempt has got somewhere.
func (b *Backoff) Reset() {
	b.steps = wait.Backoff{Duration: b.first / 2, Factor: 2, Jitter: 1, Steps: math.MaxInt, Cap: b.most / 2}
}

// AtMost makes the next wait no longer than d, and those after it longer again.
func (b *Backoff) AtMost(d time.Duration) {
	b.steps.Duration, b.steps.Steps = min(b.steps.Duration, d/2), math.MaxInt
}

// Next is how long to wait now.
func (b *Backoff) Next() time.Duration { return b.steps.Step() }

// Wait waits. It returns false if the context ends first.
func (b *Backoff) Wait(ctx context.Context) bool { return Pause(ctx, b.Next()) }

// Pause waits for d. It returns false if the context ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
