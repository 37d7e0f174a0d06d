// Package days makes days of jobs, and compares what forecasts say of their starts with what comes. It is for tests and
// benchmarks.
package days

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Job is one of a Day. Times are seconds.
type Job struct {
	id, class              string
	size, submitted, lasts float64
	priority               int
	started                float64 // -1: not yet
	leaves                 float64 // it is given up after waiting for so long
	began                  float64 // of a recorded job: when it started; else -1
}

// Shape is how jobs come to a queue with Room.
type Shape struct {
	Name string
	Jobs func(random *rand.Rand, load float64) []Job // in the order in which they come
}

// Room is what the queue of Shapes has.
const Room = 64.0

const (
	days   = 28
	warmup = 4 // days, of which nothing is counted
	day    = 24 * 3600.0
)

// team is whose jobs are alike.
type team struct {
	median, spread float64 // of run times: seconds, logarithm
	sizes          []float64
}

var teams = []team{
	{600, 0.8, []float64{1, 1, 2}}, {3600, 1.2, []float64{1, 4, 8}}, {4 * 3600, 0.7, []float64{8, 16}}, {1800, 1.6, []float64{1, 2, 8, 32}}, {300, 0.5, []float64{1}},
}

func (tm team) job(random *rand.Rand, n, of int, at float64) Job {
	lasts := tm.median * math.Exp(tm.spread*random.NormFloat64())
	j := Job{id: fmt.Sprint(n), class: fmt.Sprint(of), size: tm.sizes[random.IntN(len(tm.sizes))], submitted: at, lasts: min(lasts, 2*day), started: -1, began: -1, leaves: math.Inf(1)}
	if random.IntN(10) == 0 {
		j.priority = 1
	}
	if random.IntN(20) == 0 {
		j.leaves = 600 + random.Float64()*day/2
	}
	return j
}

// arriving makes jobs at a rate that is such a share of what the queue can do, times a factor by the time.
func arriving(random *rand.Rand, load float64, factor func(at float64) float64, together int) (all []Job) {
	work := 0.0 // of one job, on average
	for _, tm := range teams {
		size := 0.0
		for _, s := range tm.sizes {
			size += s / float64(len(tm.sizes))
		}
		work += size * tm.median * math.Exp(tm.spread*tm.spread/2) / float64(len(teams))
	}
	rate := load * Room / work / float64(together)
	for at := 0.0; at < days*day; {
		at += random.ExpFloat64() / (rate * 3)
		if random.Float64()*3 > factor(at) { // thinned
			continue
		}
		of := random.IntN(len(teams))
		for range 1 + random.IntN(2*together-1) {
			all = append(all, teams[of].job(random, len(all), of, at))
		}
	}
	return all
}

// Shapes are three of them: at a steady rate, by day and night, and in arrays.
var Shapes = []Shape{
	{"steady", func(r *rand.Rand, load float64) []Job {
		return arriving(r, load, func(float64) float64 { return 1 }, 1)
	}},
	{"by day", func(r *rand.Rand, load float64) []Job {
		return arriving(r, load, func(at float64) float64 { return 1 + 0.9*math.Sin(2*math.Pi*at/day) }, 1)
	}},
	{"arrays", func(r *rand.Rand, load float64) []Job {
		return arriving(r, load, func(float64) float64 { return 1 }, 20)
	}},
}
