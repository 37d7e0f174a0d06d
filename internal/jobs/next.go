package jobs

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxMessage = 1024 // bytes of a message or reason that are kept
	maxName    = 256  // bytes of an owner or queue; a longer one is none
)

// Next is what seeing an object does to its job. It returns the job as it is from then on, and the
// transition. If the job stays as it was, both are nil. If only what is counted of it grew, there
// is a job and no transition. The job before is nil if it was never seen.
//
// The deletion of a job that was never seen says nothing. It is a deletion that is told again, which happens to events
// that share their version with others.
func Next(was *Job, seen Seen) (*Job, *Transition) {
	to := seen.State
	switch {
	case seen.Deleted && was == nil:
		return nil, nil
	case seen.Deleted:
		to = Deleted
		seen.Said = Said{Owner: was.Owner, Queue: was.Queue, Progress: was.Progress} // what it said last was about the state before
	case to == "" && was == nil:
		to = Submitted
	}
	if was != nil && (to == "" || to == was.State) {
		return counted(was, seen.Counts), nil
	}
	if was != nil && seen.Owner == "" {
		seen.Owner = was.Owner // it may have been found elsewhere than in the object
	}
	next := &Job{
		ObjectID: identity(was, seen), Owner: Name(seen.Owner), Queue: Name(seen.Queue), Requests: requests(seen.Requests),
		State: to, Reason: text(seen.Reason), Message: text(seen.Message), Progress: seen.Progress, Counts: seen.Counts,
		Attempt: 1, Version: seen.Version, Created: seen.Created,
	}
	t := &Transition{
		ObjectID: next.ObjectID, Version: seen.Version, To: to, Late: seen.Late,
		Reason: next.Reason, Message: next.Message, Owner: next.Owner, Queue: next.Queue,
	}
	next.Since = since(was, to, seen)
	next.Active = next.Active && to.Waits() && to != Retrying // what begins with this transition is counted with it
	if was == nil {
		next.Due = false
	} else {
		t.From, next.NamespaceUID, next.Parent = was.State, was.NamespaceUID, was.Parent
		next.follow(was, seen.Kept)
	}
	next.BeganLate, next.StoppedLate = beganLate(was, next, seen), stoppedLate(was, seen)
	switch to {
	case Running:
		if next.Started == 0 {
			next.Started = next.Since
		}
	case Succeeded, Failed, Cancelled:
		next.Ended = next.Since
	case Deleted:
		next.Deleted = next.Since
	}
	t.NamespaceUID, t.At, t.Observed, t.Created, t.Attempt = next.NamespaceUID, next.Since, max(seen.Observed, next.Since), next.Created, next.Attempt
	return next, t
}

// counted is the job with greater numbers of failures and restarts; nil if neither grew. What is
// done counts only while the job is held, since its controller may tell after the suspension what
// was done before it. Otherwise it has no consequences between transitions, and a job of many
// completions would be written at each of them.
//
// A job that is Retrying may begin anew, and fail, any number of times before a version of it says
// that it runs. Each is an attempt.
func counted(was *Job, now Counts) *Job {
	if !was.State.Held() {
		now.Done = 0
	}
	now.Active = now.Active && was.State.Waits()
	now.Due = was.Due && !now.Active
	if now.Failures <= was.Failures && now.Restarts <= was.Restarts && now.Done <= was.Done && now.Active == was.Active && now.Unmade == was.Unmade {
		return nil
	}
	next := *was
	next.Counts = was.Counts.beyond(now)
	if was.Due && !now.Due || was.State == Retrying && now.Active && !was.Active && was.Done == 0 {
		next.Attempt++
	}
	return &next
}

// Progressed is the job after an object has said how much of it is done; nil if that is what was
// known. It is no transition.
func Progressed(was *Job, now Progress) *Job {
	if was.Progress == now {
		return nil
	}
	next := *was
	next.Progress = now
	return &next
}

// follow takes over what remains of the job before. Kept says whether it goes on where it was.
func (j *Job) follow(was *Job, kept bool) {
	j.Counts = was.Counts.beyond(j.Counts)
	j.Created, j.Started, j.Attempt, j.Reasons = was.Created, was.Started, was.Attempt, was.Reasons
	if j.Reason == "" && j.State.Waits() && was.State.Waits() && was.explained() { // others explain why it waits, and will say when that is over
		j.Reason, j.Message = was.Reason, was.Message
	}
	if j.RanUntil = was.RanUntil; was.State == Running {
		j.RanUntil = j.Since
	}
	if j.State == Deleted {
		j.Ended = was.Ended
		if was.State.Ended() {
			j.Cause = was.Cause
		}
	}
	if len(j.Requests) == 0 {
		j.Requests = was.Requests
	}
	begins := opensAgain(was, j.State, kept || was.Done > 0)
	j.Due = begins && j.Due && j.State == Pending
	if begins && !j.Due || was.Due && (j.State == Running || j.State == Retrying || j.State == Succeeded) {
		j.Attempt++
	}
	j.Spent = make(map[State]time.Duration, len(was.Spent)+1)
	maps.Copy(j.Spent, was.Spent)
	j.Spent[was.State] += time.Duration(j.Since-was.Since) * time.Millisecond
}

// opensAgain reports whether a transition begins another attempt: a start of all the work. That is
// so behind an end; and behind a failure, and behind a suspension of a job that somebody had begun
// with, unless it goes on with what it has achieved. A job that is suspended, given up or deleted
// meanwhile begins nothing. One that succeeds must have begun.
func opensAgain(was *Job, to State, kept bool) bool {
	starts := to == Pending || to == Running || to == Retrying
	switch was.State {
	case Succeeded, Failed, Cancelled:
		return !to.Ended() && to != Deleted
	case Retrying:
		return !kept && !was.Active && (starts || to == Submitted || to == Succeeded)
	case Queued, Suspended:
		return !kept && !was.Active && starts && was.begun()
	}
	return false
}

// begun reports whether pods of the job were waiting or running before. They may have been made as
// it was suspended, and be told only when they failed.
func (j *Job) begun() bool {
	if j.Failures > 0 || j.Unmade {
		return j.Failures > 0
	}
	for _, state := range []State{Pending, Running, Retrying} {
		if _, was := j.Spent[state]; was {
			return true
		}
	}
	return false
}

// since is when a job came to its state: when it was seen, so that all times of a job are of one
// clock, whatever those clocks say by which controllers and kubelets write. Only what was seen
// after the fact is dated by what the object claims. No claim counts that is later than when it was
// seen. Nothing is before the transition before it, nor before the job was there. Every object
// claims its own creation, which is the API server's time.
func since(was *Job, to State, seen Seen) Time {
	at := seen.Observed
	switch {
	case to == Deleted: // an object that is gone claims nothing
	case seen.At != 0 && (seen.Late || seen.Replayed):
		at = min(seen.At, seen.Observed)
	case to == Submitted && was == nil && seen.Created != 0:
		at = seen.Created
	}
	if was != nil {
		return max(at, was.Since)
	}
	return max(at, seen.Created)
}

// identity is copied once for each job. A part of an object's text would keep all of that text in memory.
func identity(was *Job, seen Seen) ObjectID {
	if was != nil {
		return was.ObjectID
	}
	return ObjectID{UID: strings.Clone(seen.UID), Namespace: strings.Clone(seen.Namespace), Name: strings.Clone(seen.Name)}
}

// text is a reason or message in the form in which it is kept.
func text(s string) string { return bounded(s, maxMessage) }

// bounded is a text that all databases accept, of at most so many bytes.
func bounded(s string, most int) string {
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		s = s[:min(len(s), 2*most)] // this is enough, however invalid bytes are replaced below
		s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	}
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return strings.Clone(s) // or it would keep the whole object
}

// cut is a text as bounded makes it. One that is longer ends with "…", after the last whole part of the list that it is.
func cut(s string, most int) string {
	text := bounded(s, most+utf8.UTFMax)
	if len(text) <= most {
		return text
	}
	text = bounded(text, most-len("…"))
	for _, between := range []string{"; ", ", "} { // the parts of what Karpenter says have commas themselves
		if at := strings.LastIndex(text, between); at > most/2 {
			return text[:at] + "…"
		}
	}
	return text + "…"
}

// Name is a text by which jobs are compared and permitted. A text that would have to be changed to be kept becomes "",
// since it might otherwise become somebody else's name.
func Name(s string) string {
	if len(s) > maxName || text(s) != s {
		return ""
	}
	return strings.Clone(s)
}

// requests leaves out names that Kubernetes would not accept for a resource, and what is too much:
// first what is zero, then what counts for no hours. Whoever makes pods may request nothing of ever
// so many resources that no node has, and must not hide in that what the pods hold.
func requests(all map[string]string) map[string]string {
	var ranks [3][]string
	for name, quantity := range all {
		rank := 0
		switch {
		case len(all) <= maxRequests: // there is room for all of them
		case quantity == "0":
			rank = 2
		case amountsOf(map[string]string{name: quantity}) == (Amounts{}):
			rank = 1
		}
		ranks[rank] = append(ranks[rank], name)
	}
	kept := make(map[string]string, min(len(all), maxRequests))
	for _, names := range ranks {
		slices.Sort(names) // so that they are the same each time
		for _, name := range names {
			if r := Name(name); r != "" && len(kept) < maxRequests {
				kept[r] = text(all[name])
			}
		}
	}
	return kept
}

// maxRequests bounds the resources that are kept of a job.
const maxRequests = 64
