//go:build linux

package figures

import (
	"testing"
	"time"
)

func TestBucketsAreContiguousAndNarrow(t *testing.T) {
	last := -1
	for n := uint64(0); n < 1<<20; n++ {
		b := bucket(n)
		if b != last && b != last+1 {
			t.Fatalf("bucket(%d) = %d after %d", n, b, last)
		}
		if u := uint64(upper(b)); u < n || n > 64 && u > n+n/32 {
			t.Fatalf("upper(bucket(%d)) = %d", n, u)
		}
		last = b
	}
}

func TestQuantile(t *testing.T) {
	var h Histogram
	if got := h.Quantile(0.5); got != 0 {
		t.Errorf("of none: %v", got)
	}
	for i := range 1000 {
		h.Add(time.Duration(i+1) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second} {
		if got := h.Quantile(q); got < want || got > want+want/32 {
			t.Errorf("Quantile(%v) = %v, want %v", q, got, want)
		}
	}
}

func TestMergedIsAsIfCountedTogether(t *testing.T) {
	var a, b, both Histogram
	for i := range 1000 {
		d := time.Duration(i*i) * time.Microsecond
		both.Add(d)
		if i%3 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	a.Merge(b)
	if a.N != both.N || a.Max != both.Max || a.Quantile(0.9) != both.Quantile(0.9) || a.Quantile(0.1) != both.Quantile(0.1) {
		t.Errorf("%v is not %v", a, both)
	}
}
