package jobs

import (
	"math"
	"math/big"
	"time"
)

// Use is what a job has used up to a time, and how its pods have ended.
type Use struct {
	Tally
	Hours Amounts // times hours
	Runs  int64
}

// Total is what a job's runs come to, without them: as many as a job may have, it is one row. Runs
// are added in any order. One that has changed is taken out as it was, and added as it is. All of
// it are whole numbers of any size, so nothing is lost on the way.
type Total struct {
	Runs        int64 `json:"runs"`
	Failures    int64 `json:"failures,omitempty"` // as Tally's
	Preemptions int64 `json:"preemptions,omitempty"`
	Devices     int64 `json:"devices,omitempty"` // GPUs that runs were given by claims; one that several were given counts with each
	Holding     int64 `json:"holding,omitempty"` // runs that hold a node and have not ended
	// First and Last are bounds: no run was bound to its node before First (0: none was bound), and
	// none that has ended did so after Last.
	First Time `json:"first,omitempty"`
	Last  Time `json:"last,omitempty"`

	Ended   product `json:"ended"`   // what runs that have ended requested, times how long they held it
	Rate    product `json:"rate"`    // what runs that have not ended hold
	Instant product `json:"instant"` // the same, times when they were bound
}

// product is of resources, in thousandths of a CPU or GPU and in bytes, and maybe of milliseconds.
type product struct {
	CPU    big.Int `json:"cpu"`
	Memory big.Int `json:"memory"`
	GPU    big.Int `json:"gpu"`
}

const (
	thousandth = 1000
	gibibyte   = 1 << 30
)

// whole is an amount in parts of which a unit has so many.
func whole(amount, parts float64) int64 { return int64(math.Round(amount * parts)) }

// add adds amounts times a number.
func (p *product) add(a Amounts, times int64) {
	for _, each := range []struct {
		sum    *big.Int
		amount int64
	}{{&p.CPU, whole(a.CPUs, thousandth)}, {&p.Memory, whole(a.Memory, gibibyte)}, {&p.GPU, whole(a.GPUs, thousandth)}} {
		if each.amount != 0 {
			each.sum.Add(each.sum, new(big.Int).Mul(big.NewInt(each.amount), big.NewInt(times)))
		}
	}
}

// Add adds a run.
func (t *Total) Add(r *Run) { t.count(r, 1) }

// Remove takes a run out that was added as it is.
func (t *Total) Remove(r *Run) { t.count(r, -1) }

func (t *Total) count(r *Run, sign int64) {
	tally := TallyOf([]*Run{r})
	t.Runs += sign
	t.Failures += sign * int64(tally.Failures)
	t.Preemptions += sign * int64(tally.Preemptions)
	devices := GPUsOf(r.Devices)
	t.Devices += sign * int64(devices)
	if !r.held() {
		return
	}
	if t.First == 0 || r.Scheduled < t.First {
		t.First = r.Scheduled
	}
	holds := AmountsOfPod(r.Requests)
	holds.GPUs += float64(devices)
	if !r.Terminal() {
		t.Holding += sign
		t.Rate.add(holds, sign)
		t.Instant.add(holds, sign*int64(r.Scheduled))
		return
	}
	t.Last = max(t.Last, r.Ended)
	if length := r.Ended - r.Scheduled; length > 0 {
		t.Ended.add(holds, sign*int64(length))
	}
}

// Until is after all that the runs hold, up to now.
func (t *Total) Until(now Time) Time {
	if t.Holding > 0 {
		return max(t.Last, now)
	}
	return t.Last
}

// Use is what the job has used up to now. Of a device that several runs were given, it counts each.
func (t *Total) Use(now Time) Use {
	hours := func(ended, rate, instant *big.Int, parts float64) float64 {
		sum := new(big.Int).Mul(rate, big.NewInt(int64(now)))
		if sum.Sub(sum, instant); sum.Sign() < 0 { // they were bound after now
			sum.SetInt64(0)
		}
		sum.Add(sum, ended)
		n, _ := new(big.Float).SetInt(sum).Float64()
		return n / parts / float64(time.Hour/time.Millisecond)
	}
	return Use{
		Tally: Tally{Failures: int(t.Failures), Preemptions: int(t.Preemptions)}, Runs: t.Runs,
		Hours: Amounts{
			CPUs:   hours(&t.Ended.CPU, &t.Rate.CPU, &t.Instant.CPU, thousandth),
			Memory: hours(&t.Ended.Memory, &t.Rate.Memory, &t.Instant.Memory, gibibyte),
			GPUs:   hours(&t.Ended.GPU, &t.Rate.GPU, &t.Instant.GPU, thousandth),
		},
	}
}
