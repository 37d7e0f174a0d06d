package jobs

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestHoursAreWhatPodsHeldAndWhileTheyHeldIt(t *testing.T) {
	const hour = 3600_000
	gpu := func(names ...string) (all []Device) {
		for _, name := range names {
			all = append(all, Device{"gpu.example.org", "node", name})
		}
		return all
	}
	for name, test := range map[string]struct {
		runs []*Run
		want Amounts
	}{
		"it ran":                       {[]*Run{{Scheduled: hour, Started: 2 * hour, Ended: 3 * hour, Requests: map[string]string{"cpu": "1500m", "memory": "2Gi", "amd.com/gpu": "4"}}}, Amounts{3, 4, 8}},
		"it runs":                      {[]*Run{{Scheduled: 6 * hour, Requests: map[string]string{"cpu": "1"}}}, Amounts{4, 0, 0}},
		"it waits":                     {[]*Run{{Created: 6 * hour, Requests: map[string]string{"cpu": "1"}}}, Amounts{}},
		"it ended, and never ran":      {[]*Run{{Ended: 6 * hour, Requests: map[string]string{"cpu": "1"}}}, Amounts{}},
		"nobody can count it":          {[]*Run{{Scheduled: hour, Ended: 2 * hour, Requests: map[string]string{"cpu": "many", "memory": "-5Gi"}}}, Amounts{}},
		"its node refused it":          {[]*Run{{Scheduled: hour, Ended: 2 * hour, Reason: "OutOfcpu", Requests: map[string]string{"cpu": "64"}}, {Scheduled: hour, Ended: 2 * hour, Reason: "UnexpectedAdmissionError", Devices: gpu("0")}}, Amounts{}},
		"more than a node has":         {[]*Run{{Scheduled: hour, Requests: map[string]string{"cpu": "9E", "memory": "9E", "a/gpu": "9E"}}, {Scheduled: hour, Requests: map[string]string{"cpu": "8193", "memory": "65Ti", "a/gpu": "64", "b/gpu": "65"}}}, Amounts{}},
		"as much as a node has":        {[]*Run{{Scheduled: hour, Ended: 2 * hour, Requests: map[string]string{"cpu": "8192", "memory": "64Ti", "a/gpu": "64", "b/gpu": "64"}}}, Amounts{8192, 64 << 10, 128}},
		"more than a node has of one":  {[]*Run{{Scheduled: hour, Ended: 2 * hour, Requests: map[string]string{"cpu": "4", "memory": "1Ei"}}}, Amounts{CPUs: 4}},
		"devices":                      {[]*Run{{Scheduled: hour, Ended: 3 * hour, Devices: gpu("0", "1")}}, Amounts{0, 0, 4}},
		"no GPUs":                      {[]*Run{{Scheduled: hour, Ended: 3 * hour, Devices: []Device{{"dra.net", "node", "eth1"}}}}, Amounts{}},
		"devices that two share":       {[]*Run{{Scheduled: 2 * hour, Ended: 5 * hour, Devices: gpu("0")}, {Scheduled: hour, Ended: 3 * hour, Devices: gpu("0", "1")}}, Amounts{0, 0, 6}},
		"devices, one after the other": {[]*Run{{Scheduled: hour, Ended: 2 * hour, Devices: gpu("0")}, {Scheduled: 3 * hour, Ended: 4 * hour, Devices: gpu("0")}}, Amounts{0, 0, 2}},
		"one within another's":         {[]*Run{{Scheduled: hour, Ended: 9 * hour, Devices: gpu("0")}, {Scheduled: 2 * hour, Ended: 3 * hour, Devices: gpu("0")}, {Scheduled: 4 * hour, Ended: 5 * hour, Devices: gpu("0")}}, Amounts{0, 0, 8}},
	} {
		if hours := HoursOf(HoldsOf(test.runs, 10*hour)); math.Abs(hours.CPUs-test.want.CPUs)+math.Abs(hours.Memory-test.want.Memory)+math.Abs(hours.GPUs-test.want.GPUs) > 1e-9 {
			t.Errorf("%s: %+v, not %+v", name, hours, test.want)
		}
	}
}

// Quantities may be so large, or small, that to read them takes hours, or that no JSON can say what
// they come to. One pod must not be enough that nobody is told any usage.
func TestQuantitiesBeyondAllNumbersAreCounted(t *testing.T) {
	for _, text := range []string{"1e400", "1e-2000000000", "1E+2000000000", ".5e2000000000", strings.Repeat("9", 1000)} {
		hours := HoursOf(HoldsOf([]*Run{{Scheduled: 1, Ended: 1 << 50, Requests: map[string]string{"cpu": text, "memory": text, "x/gpu": text}}}, 1<<51))
		if sum := hours.CPUs + hours.Memory + hours.GPUs; math.IsInf(sum, 0) || math.IsNaN(sum) {
			t.Errorf("%.20s: %+v", text, hours)
		}
	}
	for _, text := range []string{`{"requests":{"cpu":"250m","memory":"1e3","x/gpu":"2E"}}`, "1e12", "1e-3"} {
		if !Countable(text) {
			t.Errorf("%s does not count", text)
		}
	}
}

func TestHoursOfPartsAreThoseOfTheWhole(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		var whole []*Run
		var parts Amounts
		for range 20 {
			r := &Run{Scheduled: Time(random.Int64N(1e9)), Requests: map[string]string{"cpu": "250m", "nvidia.com/gpu": "1"}}
			if random.IntN(3) > 0 {
				r.Ended = r.Scheduled + Time(random.Int64N(1e9))
			}
			whole = append(whole, r)
			hours := HoursOf(HoldsOf([]*Run{r}, 3e9))
			parts.CPUs, parts.GPUs = parts.CPUs+hours.CPUs, parts.GPUs+hours.GPUs
		}
		if hours := HoursOf(HoldsOf(whole, 3e9)); math.Abs(hours.CPUs-parts.CPUs) > 1e-6 || math.Abs(hours.GPUs-parts.GPUs) > 1e-6 {
			t.Errorf("%+v, not %+v", hours, parts)
		}
	}
}
