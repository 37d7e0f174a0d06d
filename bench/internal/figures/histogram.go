//go:build linux

// Package figures collects the figures of benchmarks, and prints them.
package figures

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets that are 1.6 % wide. So a hundred million of them take 20 KiB, and quantiles
// are exact enough for a noisy machine. The zero value is empty.
type Histogram struct {
	Counts []uint32 // by bucket; exported for encoding/gob
	N      uint64
	Max    time.Duration
}

// subBuckets is how many buckets there are between a power of two and the next, as a power of two.
const subBuckets = 6

// Add counts a duration. A negative one counts as 0: a clock was set.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	i := bucket(uint64(d))
	if i >= len(h.Counts) {
		h.Counts = append(h.Counts, make([]uint32, i+1-len(h.Counts))...)
	}
	h.Counts[i]++
	h.N++
	h.Max = max(h.Max, d)
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(other Histogram) {
	if more := len(other.Counts) - len(h.Counts); more > 0 {
		h.Counts = append(h.Counts, make([]uint32, more)...)
	}
	for i, n := range other.Counts {
		h.Counts[i] += n
	}
	h.N += other.N
	h.Max = max(h.Max, other.Max)
}

// Quantile is the duration that a share q of all durations do not exceed; 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(uint64(q*float64(h.N)+0.5), 1)
	for i, n := range h.Counts {
		if uint64(n) >= rank {
			return min(upper(i), h.Max)
		}
		rank -= uint64(n)
	}
	return h.Max
}

func bucket(n uint64) int {
	if n < 1<<subBuckets {
		return int(n)
	}
	shift := bits.Len64(n) - 1 - subBuckets
	return shift<<subBuckets + int(n>>shift)
}

// upper is the largest value that falls into a bucket.
func upper(i int) time.Duration {
	if i < 1<<subBuckets {
		return time.Duration(i)
	}
	shift := i>>subBuckets - 1
	mantissa := i - shift<<subBuckets
	return time.Duration(mantissa+1)<<shift - 1
}
