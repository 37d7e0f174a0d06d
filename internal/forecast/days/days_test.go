package days

import (
	"fmt"
	"strings"
	"testing"
)

// Whoever is too sure, or not sure enough, is wrong.
func TestIntervalsThatHoldTooSeldomOrTooOftenAreWrong(t *testing.T) {
	for within, wrong := range map[int]bool{0: true, 74: true, 76: false, 84: false, 86: true} {
		c := &Tally{Within: within}
		for range 100 {
			c.waits, c.widths, c.plainWidths = append(c.waits, 1), append(c.widths, 1), append(c.plainWidths, 2)
		}
		if err := c.Wrong(); (err != nil) != wrong {
			t.Errorf("%d of 100: %v", within, err)
		}
	}
	if (&Tally{Nothing: 1}).Wrong() == nil {
		t.Error("nothing was said, and that is right")
	}
}

// A log is read in its standard form: jobs that never ran are left out, and those of which it is known when they began begin then.
func TestRecordedDaysAreRead(t *testing.T) {
	const log = "; MaxProcs: 4\n\n1 0 10 60 2 -1 -1 2 60 -1 1 7 1 3 1 -1 -1 -1\n2 5 -1 60 2 -1 -1 2 60 -1 1 7 1 3 1 -1 -1 -1\n3 6 1 -1 2 -1 -1 2 60 -1 5 7 1 3 1 -1 -1 -1\n"
	jobs, err := Read(strings.NewReader(log))
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%v %v", jobs, err)
	}
	Replay([]Job{{size: 5, began: -1}}, Queue{Room: 4}, 1, &Tally{}) // it ends
	if got := fmt.Sprint(jobs[0].began, jobs[1].began); got != "10 -1" {
		t.Error(got)
	}
	if _, err := Read(strings.NewReader("1 x")); err == nil {
		t.Error("what is no number is taken for one")
	}
	Replay(jobs, Queue{Room: 4}, 1, &Tally{})
	if jobs[0].started < 10 || jobs[1].started < 5 {
		t.Errorf("they started at %v and %v", jobs[0].started, jobs[1].started)
	}
}
