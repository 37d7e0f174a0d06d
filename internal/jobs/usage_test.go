package jobs

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A job that ran through a thousand steps is added to some twenty sums, and charged for these; each
// step has what it would have had by itself.
func TestAJobOfManyStepsIsLittleWorkAndCountsInEach(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	span := Span{From: 1_000_000, Until: 1_000_000 + 999*60_000 + 7, Step: time.Minute}
	u, groups := NewUsage(span), map[int]bool{}
	want := make([]float64, span.Steps())
	for range 300 {
		from := span.From + Time(random.Int64N(int64(span.Until-span.From)))
		run := Interval{from - 500, from + Time(random.Int64N(40_000_000))}
		if changed := u.Add(Lived{Key: "k", Created: 1, HasRun: true, Holds: []Hold{{run, Amounts{CPUs: 2}}}}); changed > 22 {
			t.Errorf("%d sums are changed", changed)
		}
		for step := range want {
			begin, end := span.begin(step), min(span.begin(step+1), span.Until)
			if within := min(run.To, end) - max(run.From, begin); within > 0 {
				want[step] += 2 * float64(within) / 3_600_000
				groups[step] = true
			}
		}
	}
	if n, _ := u.Size(); n != len(groups) {
		t.Errorf("%d groups, want %d", n, len(groups))
	}
	got := make([]float64, len(want))
	for _, used := range u.Sum() {
		got[span.step(used.From)] = used.Hours.CPUs
	}
	for step := range want {
		if math.Abs(got[step]-want[step]) > 1e-9 {
			t.Fatalf("step %d: %v, want %v", step, got[step], want[step])
		}
	}
}
