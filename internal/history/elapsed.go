package history

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
// job has succeeded without a version of it that said that it runs.
func (j *Job) Waited() *Elapsed {
	_, succeeded := j.Spent[Succeeded]
	until := j.Started
	if until == 0 {
		until = j.Ended
	}
	if until == 0 {
		until = j.Deleted
	}
	switch {
	case j.BeganLate, j.Started == 0 && (succeeded || j.State == Succeeded):
		return nil
	case until == 0:
		return &Elapsed{Since: j.Created}
	}
	return &Elapsed{Over: time.Duration(max(0, until-j.Created)) * time.Millisecond}
}

// Ran is how long a job was Running, all its runs together; nil: it never was.
func (j *Job) Ran() *Elapsed {
	if j.Started == 0 {
		return nil
	}
	ran := &Elapsed{Over: j.Spent[Running]}
	if j.State == Running {
		ran.Since = j.Since
	}
	return ran
}

// beganLate reports whether it is not known when the waiting of a job ended: with this transition,
// or one before.
func beganLate(was *Job, to State, seen Seen) bool {
	first := to == Running || to.Ended() || to == Deleted
	switch {
	case was == nil:
		return first && (seen.Late || seen.Replayed && seen.At == 0)
	case was.Started != 0, !first, was.Ended != 0 && to != Running:
		return was.BeganLate
	}
	return seen.Late || seen.Replayed && seen.At == 0
}
