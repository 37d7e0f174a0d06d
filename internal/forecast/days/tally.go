package days

import (
	"slices"
	"time"
)

// Tally counts what came of forecasts. The zero value has counted nothing.
type Tally struct {
	Within, Sooner, Later int
	Nothing               int // starts of which nothing was said
	// Plainly are those that would be within what goes by how long the queue's jobs waited lately, and by nothing else.
	Plainly int

	waits, widths, plainWidths []float64 // seconds
	lately                     []float64
}

// KeptWaits is how many of the last waits count as lately.
const KeptWaits = 256

func (c *Tally) count(j *Job, said *look, now float64) {
	waited := seconds(now - said.at)
	lately := slices.Sorted(slices.Values(c.lately))
	if c.lately = append(c.lately, waited.Seconds()); len(c.lately) > KeptWaits {
		c.lately = c.lately[1:]
	}
	if j.submitted < warmup*day {
		return
	}
	if said.interval == nil {
		c.Nothing++
		return
	}
	c.waits = append(c.waits, waited.Seconds())
	c.widths = append(c.widths, (said.interval.To - said.interval.From).Seconds())
	switch {
	case waited < said.interval.From:
		c.Sooner++
	case waited > said.interval.To:
		c.Later++
	default:
		c.Within++
	}
	from, to := quantile(lately, 0.1), quantile(lately, 0.9)
	if from <= waited.Seconds() && waited.Seconds() <= to {
		c.Plainly++
	}
	c.plainWidths = append(c.plainWidths, to-from)
}

// Said is of how many starts something was said.
func (c *Tally) Said() int { return len(c.waits) }

// Percent is a count's share of what was said.
func (c *Tally) Percent(count int) float64 { return 100 * float64(count) / float64(max(1, c.Said())) }

// Waits, Widths and PlainWidths are quantiles of how long jobs waited from the forecast on, how wide their intervals were, and how
// wide they would be that go by waits alone.
func (c *Tally) Waits(share float64) time.Duration { return of(c.waits, share) }

// Widths is said above.
func (c *Tally) Widths(share float64) time.Duration { return of(c.widths, share) }

// PlainWidths is said above.
func (c *Tally) PlainWidths(share float64) time.Duration { return of(c.plainWidths, share) }

func of(values []float64, share float64) time.Duration {
	return seconds(quantile(slices.Sorted(slices.Values(values)), share))
}

// quantile is the value that a share of sorted values do not exceed; 0 if there are none.
func quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(share*float64(len(sorted)-1))]
}
