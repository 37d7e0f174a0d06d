package jobs

import (
	"encoding/json"
	"time"
)

// Elapsed is a time that went by, and since when it goes on; the zero Since: it is over. It says the
// same whenever it is read.
type Elapsed struct {
	Over  time.Duration
	Since Time
}

// At is how long it is by a time.
func (e Elapsed) At(now Time) time.Duration {
	if e.Since == 0 {
		return e.Over
	}
	return e.Over + time.Duration(max(0, now-e.Since))*time.Millisecond
}

// MarshalJSON writes seconds, and since when it goes on, or null.
func (e Elapsed) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Seconds float64 `json:"seconds"`
		Since   Time    `json:"since"`
	}{e.Over.Round(time.Millisecond).Seconds(), e.Since})
}

// Waited is how long a job waited: from its creation until it first ran; if it never did, until it
// ended or was deleted. Nil: that is not known, since what ended the waiting was found late, or the
// job ran without a version of it that said so.
func (j *Job) Waited() *Elapsed {
	until := j.Started
	if until == 0 {
		until = j.Ended
	}
	if until == 0 {
		until = j.Deleted
	}
	switch {
	case j.ranUntold():
		return nil
	case until == 0:
		return &Elapsed{Since: j.Created}
	case j.BeganLate:
		return nil
	}
	return &Elapsed{Over: time.Duration(max(0, until-j.Created)) * time.Millisecond}
}

// Ran is how long a job was Running, all its runs together; nil: it never was, or the end of a run
// was not seen.
func (j *Job) Ran() *Elapsed {
	if j.Started == 0 || j.StoppedLate {
		return nil
	}
	ran := &Elapsed{Over: j.Spent[Running]}
	if j.State == Running {
		ran.Since = j.Since
	}
	return ran
}

// ranUntold reports whether a job ran, though no version of it has said so until now: it has
// succeeded, or is tried again after something of it failed.
func (j *Job) ranUntold() bool {
	return j.Started == 0 && (j.hasBeen(Succeeded) || j.hasBeen(Retrying) && j.Failures+j.Restarts > 0)
}

func (j *Job) hasBeen(state State) bool {
	_, spent := j.Spent[state]
	return spent || j.State == state
}

// beganLate reports whether it is not known when the waiting of a job ended: with its transition to
// what it is next, or one before. An end that was found late stays so if it is opened again: the
// job may have run before.
func beganLate(was, next *Job, seen Seen) bool {
	switch to := next.State; {
	case was != nil && (was.BeganLate || was.Started != 0):
		return was.BeganLate
	case was != nil && was.ranUntold() && to == Running:
		return true
	case to == Failed && next.Failures > 0 && !next.pastDeadline(): // else its pods failed because they were taken away
		return true
	case to == Running, (to.Ended() || to == Deleted) && (was == nil || was.Ended == 0):
		return seen.undated()
	}
	return false
}

// stoppedLate reports whether it is not known when a run of a job ended: with this transition, or one before.
func stoppedLate(was *Job, seen Seen) bool {
	return was != nil && (was.StoppedLate || was.State == Running && seen.At == 0 && seen.undated())
}

// undated reports whether what is seen happened at a time that is not known.
func (s *Seen) undated() bool { return s.Late || s.Replayed && s.At == 0 }
