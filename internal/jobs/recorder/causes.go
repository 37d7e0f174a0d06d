package recorder

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/rules"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// Why a job came to its state follows from what its controller says, how its pods ended, and what
// its queue says. Each of these is read from another log, and pods may be recorded by another
// replica, which is ahead of this one or behind. So a cause is found out with what the database has
// when a transition is about to be written, and again for some time afterwards.

const (
	// firstReview is how long after a transition its cause is found out again, for the first time.
	// Each time, as much time again passes before the next, until that would be more than
	// lastReview.
	firstReview, lastReview = time.Second, 2 * time.Minute
	// oldReview is how long passes between the first two reviews of a job that came to its state
	// long before the term began.
	oldReview = lastReview / 4
	// oldAfter is how long before its term a recorder may have come to know of a transition,
	// without having found out its cause.
	oldAfter = 10 * time.Minute
	// mostLeft is with how many reviews some are given up when jobs leave their states, or are gone.
	mostLeft = 8192
	// reviewsAtOnce is for how many jobs the database is asked at once.
	reviewsAtOnce = 100
)

// reviewed begins the reviews of a transition. Those of the one before it go on: its job may have
// left the state, or be gone, before the ends of its pods were read.
func (r *Recorder) reviewed(was, job *jobs.Job) {
	if was != nil {
		r.reviews.leave(was)
	}
	if job.HasCause() {
		r.reviews.put(review{job, time.Now().Add(firstReview), firstReview})
	}
}

// reviewAgain begins reviews of a job that was in its state when the term began. Whoever recorded
// that may not have come to find out the cause.
func (r *Recorder) reviewAgain(job *jobs.Job) {
	now := time.Now()
	if r.reviewed(nil, job); job.HasCause() && job.Since < jobs.At(r.opts.Cluster.Time(now.Add(-oldAfter))) {
		r.reviews.put(review{job, now.Add(firstReview), oldReview})
	}
}

// reviewLeft begins reviews of the last transitions to states that jobs have left since, or that
// are gone: whoever recorded them may not have come to find out their causes.
func (r *Recorder) reviewLeft(ctx context.Context) error {
	f := store.Filter{States: []jobs.State{jobs.Failed, jobs.Retrying}} // why a queue took a job back is not known any more
	last, err := r.opts.Database.TransitionsAfter(ctx, r.at, f, r.at.Seq-min(r.at.Seq, mostLeft), r.at.Seq, mostLeft)
	if err != nil || len(last) == 0 {
		return err
	}
	since := last[len(last)-1].Observed - jobs.Time(2*lastReview.Milliseconds())
	for _, t := range last {
		if now := r.living[t.UID]; t.Observed >= since && (now == nil || now.Version != t.Version) {
			job := &jobs.Job{
				ObjectID: t.ObjectID, NamespaceUID: t.NamespaceUID, State: t.To, Since: t.At, Version: t.Version, Reason: t.Reason, Message: t.Message, Cause: t.Cause,
			}
			if t.To.Ended() {
				job.Ended = t.At
			}
			r.reviewed(nil, job)
		}
	}
	return nil
}

// reviewNow has the cause of a job found out at the next look, since something else is known of it.
func (r *Recorder) reviewNow(job *jobs.Job) {
	if at, going := r.reviews.of[transitionOf(job)]; job.HasCause() {
		if !going {
			at.pause = firstReview
		}
		if !going || !job.IsGivenUp() { // else the review knows why it came to wait, and the job that it was given up since
			at.job = job
		}
		at.next = time.Time{}
		r.reviews.put(at)
	}
}

// findCauses finds the causes of a batch's transitions. These and their jobs are this batch's own until it is written.
func (r *Recorder) findCauses(ctx context.Context, b *batch) error {
	objects := b.caused
	b.caused = nil
	var uids []string
	for i, job := range b.after {
		if job.HasCause() && !b.transitions[i].GaveUp() {
			uids = append(uids, job.UID)
		}
	}
	if len(uids) == 0 {
		return nil
	}
	slices.Sort(uids)
	runs, err := r.opts.Database.RunsOfJobs(ctx, r.at, slices.Compact(uids))
	if err != nil {
		return err
	}
	ends := map[string]*jobs.Cause{} // by uid: of jobs that have ended in this batch
	for i, job := range b.after {
		if job.State == jobs.Deleted && ends[job.UID] != nil {
			job.Cause = ends[job.UID]
		}
		if delete(ends, job.UID); !job.HasCause() || b.transitions[i].GaveUp() {
			continue
		}
		circumstances := r.circumstances(job, objects[job.UID])
		cause := jobs.CauseOf(job, runs[job.UID], circumstances)
		b.transitions[i].Cause, job.Cause = cause, cause
		if job.State.Ended() {
			ends[job.UID] = cause
		}
		last := b.changed[job.UID]
		if last.Version == job.Version {
			last.Cause = cause // it may have been counted after its transition
		}
		if why := jobs.EvictionOf(job, circumstances); job.State == jobs.Queued && b.transitions[i].Reason == "" && why.Reason != "" {
			b.transitions[i].Reason, b.transitions[i].Message = why.Reason, why.Message
			if explained := jobs.Explained(last, why); explained != nil && last.Version == job.Version && last.Reason == "" {
				*last = *explained // its queue has been read since the job was, and what is told now is not told again
			}
		}
	}
	return nil
}

// circumstances are what else is known now of how a job came to its state. The object is a version
// of the job's; nil: none is known.
func (r *Recorder) circumstances(job *jobs.Job, o *cluster.Object) (known jobs.Circumstances) {
	if o != nil {
		known.Deadline = rules.Deadline(o)
	}
	known.NameOf = func(uid string) string { return r.nameFor(job, uid) }
	if job.State == jobs.Queued && r.waits != nil {
		_, known.Evicted = r.opts.Waits.Queueing(r.idOf(job.ObjectID))
		now := r.living[job.UID]
		known.Stays = now != nil && now.Version == job.Version
		known.Queues = r.opts.Waits.ReadsQueues()
	}
	return known
}

// nameFor is the name of another job, for those who are shown a job; "" if they may not be told.
// Whoever may see a job may see others of its kind in its namespace, or at least knows that it is
// shared with these; where other namespaces' jobs are, and what they are called, is nobody else's
// business.
func (r *Recorder) nameFor(job *jobs.Job, uid string) string {
	other := r.living[uid]
	if other == nil || other.Namespace != job.Namespace || other.NamespaceUID != job.NamespaceUID {
		return ""
	}
	return other.Namespace + "/" + other.Name
}

// stays reports whether the cause of a job stays what it was, though this is what is found now.
// What a queue said when it took the job back is not said for ever: it may have let the job in
// since, and taken it back for something else, before the job's controller looked. And who
// preempted the job may be gone. That it has given the job up is said until somebody activates it
// again.
func stays(job *jobs.Job, now *jobs.Cause) bool {
	was := job.Cause
	if now == nil || reflect.DeepEqual(now, was) {
		return true
	}
	if job.State != jobs.Queued || was == nil || was.Pods > 0 {
		return false
	}
	activated := was.Reason == jobs.GivenUp && !job.IsGivenUp()
	return now.Pods > 0 || !activated && (now.Reason != was.Reason || strings.HasPrefix(was.Text, "preempted by "))
}

// review finds out causes again of which it is time to, and writes those that became others. It moves no number.
func (r *Recorder) review(ctx context.Context) error {
	now := time.Now()
	var due []review
	for _, at := range r.reviews.of {
		if !now.Before(at.next) {
			due = append(due, at)
		}
	}
	if len(due) == 0 {
		return nil
	}
	slices.SortFunc(due, func(a, b review) int {
		return cmp.Or(cmp.Compare(b.job.Since, a.job.Since), strings.Compare(a.job.UID, b.job.UID), cmp.Compare(b.job.Version, a.job.Version))
	})
	asked := map[string]bool{}
	uids := turns(func(yield func(uid, namespace string) bool) {
		for _, at := range due {
			if !asked[at.job.UID] && !yield(at.job.UID, at.job.Namespace) {
				return
			}
			asked[at.job.UID] = true
		}
	})
	runs, err := r.opts.Database.RunsOfJobs(ctx, r.at, uids[:min(len(uids), reviewsAtOnce)])
	if err != nil {
		return err
	}
	var b batch
	objects := r.opts.Store.Snapshot()
	for _, at := range due {
		of, there := runs[at.job.UID]
		if !there {
			continue
		}
		if at = at.after(now); at.pause > lastReview {
			r.reviews.drop(transitionOf(at.job))
		} else {
			r.reviews.put(at)
		}
		r.reviewOne(&b, at, of, objects.Get(at.job.Namespace, at.job.Name))
	}
	return r.write(ctx, &b)
}

// reviewOne takes into a batch what is known now of why a job came to a state, if that is not what
// is written. The object has the job's name.
func (r *Recorder) reviewOne(b *batch, at review, runs []*jobs.Run, o *cluster.Object) {
	if o != nil && o.UID() != at.job.UID {
		o = nil
	}
	job := at.job
	now := r.living[job.UID]
	left := now == nil || now.Version != job.Version
	givenUp := !left && now.IsGivenUp() // then the job's cause is that, whatever is found of the transition, until it is activated
	if !left && !givenUp {
		job = now
	}
	switch {
	case o == nil && !left: // its deletion is about to be read
		return
	case givenUp && job.IsGivenUp(): // what the transition says is not known
		return
	case left && job.State == jobs.Queued: // what is said now is of another time
		return
	}
	circumstances := r.circumstances(job, o)
	cause := jobs.CauseOf(job, runs, circumstances)
	if stays(job, cause) || o == nil && cause.Reason == jobs.Deadline { // nothing says the deadline any more
		return
	}
	if left && job.Cause != nil && job.Cause.Pods > 0 && !cause.IsEnd() { // a pod may wait for something else by now
		return
	}
	if left && isSaid(job.Cause) && (cause.TellsTheEndOf(job.Cause) || !cause.IsKnownFor(job, runs)) { // how many ended alike is of another time
		return
	}
	next := *job
	next.Cause = cause
	if !left && !givenUp {
		b.put(&next)
		r.living[next.UID] = &next
	}
	if again, going := r.reviews.of[transitionOf(job)]; going {
		again.job = &next
		r.reviews.put(again)
	}
	known := store.KnownCause{UID: job.UID, Version: job.Version, To: job.State, Ended: job.Ended, Cause: cause}
	if job.State == jobs.Queued { // what its queue said may have been read after the job
		why := jobs.EvictionOf(job, circumstances)
		known.Reason, known.Message = why.Reason, why.Message
	}
	b.causes = append(b.causes, known)
}

// isSaid reports whether a pod has said by its end why a job came to its state. That one was deleted says little: how
// another one ended may just not have been read yet.
func isSaid(cause *jobs.Cause) bool {
	return cause != nil && cause.IsEnd() && cause.Reason != jobs.Removed
}

// after is the next review.
func (at review) after(now time.Time) review { return review{at.job, now.Add(at.pause), 2 * at.pause} }
