package jobs

// Tally counts how the pods of a job ended, beside its attempts: a pod that fails while others run
// on, or is made anew, is no new attempt.
type Tally struct {
	Failures    int // pods that ended badly, preempted ones among them; not those that somebody, or their controller, deleted
	Preemptions int // pods that were preempted for others of higher priority
}

// TallyOf counts the ends of runs.
func TallyOf(runs []*Run) (t Tally) {
	for _, r := range runs {
		if r.EndedBadly() && r.Scheduled != 0 {
			t.Failures++
			if r.Reason == Preempted {
				t.Preemptions++
			}
		}
	}
	return t
}
