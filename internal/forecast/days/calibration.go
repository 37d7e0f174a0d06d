package days

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Calibration compares what is said with what comes on days of one kind.
type Calibration struct {
	Name string
	Run  func() *Tally
}

// Calibrations are those of all Shapes, in a queue that is strict and in one that is not.
func Calibrations() (all []Calibration) {
	for _, shape := range Shapes {
		for _, strict := range []bool{false, true} {
			load := 0.85
			if strict { // which leaves room free
				load = 0.65
			}
			all = append(all, Calibration{fmt.Sprintf("%s, strict %t", shape.Name, strict), func() *Tally {
				var tally Tally
				for seed := range uint64(2) {
					Replay(shape.Jobs(rand.New(rand.NewPCG(seed, 0)), load), Queue{Room, strict}, seed, &tally)
				}
				return &tally
			}})
		}
	}
	return all
}

// An 80 % interval is right that holds in so many of a hundred cases.
const lowest, highest = 75, 85

// Wrong is why intervals are not as sure as is said, or say no more than how long jobs waited lately; nil: they are right.
func (c *Tally) Wrong() (err error) {
	if share := c.Percent(c.Within); share < lowest || share > highest {
		err = fmt.Errorf("%.1f%% of starts are within their interval", share)
	}
	if c.Widths(0.5) >= c.PlainWidths(0.5)*4/5 {
		err = errors.Join(err, errors.New("intervals are hardly narrower than those by waits alone"))
	}
	if c.Nothing > c.Said()/20 {
		err = errors.Join(err, fmt.Errorf("of %d starts nothing was said", c.Nothing))
	}
	return err
}

func (c *Tally) String() string {
	minutes := func(d time.Duration) string { return fmt.Sprintf("%.0f min", d.Minutes()) }
	return fmt.Sprintf("of %4d: %.0f%% within, %.0f%% sooner, %.0f%% later; waits: median %s, p90 %s; width: median %s; by waits alone: %.0f%% within, width %s",
		c.Said(), c.Percent(c.Within), c.Percent(c.Sooner), c.Percent(c.Later), minutes(c.Waits(0.5)), minutes(c.Waits(0.9)), minutes(c.Widths(0.5)),
		c.Percent(c.Plainly), minutes(c.PlainWidths(0.5)))
}
