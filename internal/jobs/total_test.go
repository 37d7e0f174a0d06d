package jobs

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
)

// Whatever runs are added to a total, taken out as they were and added as they are, in whatever
// order, and however large they are: it is what they come to, also when it was kept as text in
// between. Nothing is lost by large numbers beside small ones.
func TestTotalsAreWhatTheirRunsComeTo(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 7))
		var runs []*Run
		total := &Total{}
		const began, now = 1_800_000_000_000, 1_800_300_000_000
		for range 300 {
			r := &Run{Requests: map[string]string{
				"cpu": []string{"1m", "1500m", "4000", "9E"}[random.IntN(4)], "memory": []string{"1", "1Gi", "64Ti", "8E"}[random.IntN(4)], "x/gpu": []string{"0", "8", "many"}[random.IntN(3)],
			}}
			if i := random.IntN(2 * (len(runs) + 1)); i < len(runs) {
				was := runs[i]
				total.Remove(was)
				changed := *was
				r, runs[i] = &changed, &changed
			} else {
				runs = append(runs, r)
			}
			if r.Scheduled == 0 && random.IntN(3) > 0 {
				r.Scheduled = began + Time(random.Int64N(100_000_000))
			}
			if random.IntN(3) == 0 {
				r.Ended, r.Reason = max(r.Scheduled, began)+Time(random.Int64N(100_000_000)), []string{Completed, OOMKilled, Preempted, Removed, "OutOfcpu"}[random.IntN(5)]
			}
			total.Add(r)
			text, err := json.Marshal(total)
			if err != nil {
				t.Fatal(err)
			}
			total = &Total{}
			if err := json.Unmarshal(text, total); err != nil {
				t.Fatal(err)
			}
		}
		got, want := total.Use(now), HoursOf(HoldsOf(runs, now))
		if got.Tally != TallyOf(runs) || got.Runs != int64(len(runs)) {
			t.Errorf("%d: %+v, not %+v", seed, got.Tally, TallyOf(runs))
		}
		for _, of := range [][2]float64{{got.Hours.CPUs, want.CPUs}, {got.Hours.Memory, want.Memory}, {got.Hours.GPUs, want.GPUs}} {
			if math.Abs(of[0]-of[1]) > 1e-9*of[1] {
				t.Errorf("%d: %v, not %v", seed, of[0], of[1])
			}
		}
		for _, r := range runs {
			if held := r.Held(now); held.From != 0 && (held.From < total.First || held.To > total.Until(now)) {
				t.Errorf("%d: %+v is not within %v and %v", seed, held, total.First, total.Until(now))
			}
			total.Remove(r)
		}
		if empty := total.Use(now); empty != (Use{}) {
			t.Errorf("%d: %+v is left of nothing", seed, empty)
		}
	}
}
