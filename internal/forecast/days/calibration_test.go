//go:build !race

package days

import "testing"

// Whoever is told that a job starts within an interval finds it true as often as it is said: neither
// more often, since then it could be narrower, nor less. And it says more than how long jobs waited
// lately does: intervals are narrower. The table is printed; bench/queues prints it, too.
//
// Each replay computes by itself, in which the race detector has nothing to find, and with it takes four times the processor.
// So scripts/test.sh runs this without.
func TestStartsComeWithinTheirIntervalAsOftenAsIsSaid(t *testing.T) {
	for _, c := range Calibrations() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			tally := c.Run()
			t.Log(tally)
			if err := tally.Wrong(); err != nil {
				t.Error(err)
			}
		})
	}
}
