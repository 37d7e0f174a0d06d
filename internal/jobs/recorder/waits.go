package recorder

import (
	"context"
	"iter"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/reasons"
	"github.com/kubecast/kubecast/internal/ownerref"
)

const (
	// look is how often the recorder looks at what other objects say of jobs that wait.
	look = time.Second
	// stands is how long something must have been said before it is written: a job that starts at once has not waited.
	stands = time.Second
	// firstPause is the time between the first and the second write of a job's reason. Each later
	// pause is twice as long, up to longestPause, until the job's state changes. So reasons that
	// alternate for ever cost few writes. A reason that differs from the written one only in
	// numbers ("0/12 nodes are available") always waits for longestPause.
	firstPause, longestPause = 5 * time.Second, 10 * time.Minute
)

// waits is what a term knows of why its jobs wait.
type waits struct {
	listener *reasons.Listener
	due      map[string]time.Time // by uid: when to look at what is said of a job
	paces    map[string]pace      // by uid: for jobs whose reason was written while they were in this state
	found    map[string]struct{}  // uids of jobs that a first start found, and at which it has not looked yet
}

// pace is how often a job's reason is written.
type pace struct {
	written time.Time
	pause   time.Duration // until it may be written again
}

// listen begins to listen to what other objects say of jobs. It also looks at what is already known of all living jobs.
func (r *Recorder) listen() {
	if r.opts.Waits == nil || r.lives != nil {
		return
	}
	r.waits = &waits{listener: r.opts.Waits.Listen(), due: map[string]time.Time{}, paces: map[string]pace{}, found: map[string]struct{}{}}
	for _, job := range r.living {
		r.waits.changed(job, time.Now())
	}
}

func (r *Recorder) unlisten() {
	if r.waits != nil {
		r.waits.listener.Close()
		r.waits = nil
	}
}

// changed records that a job came to another state.
func (w *waits) changed(job *jobs.Job, now time.Time) {
	if w == nil {
		return
	}
	delete(w.paces, job.UID)
	delete(w.due, job.UID)
	delete(w.found, job.UID)
	if job.State.Unfinished() {
		w.due[job.UID] = now.Add(stands)
	}
}

// lookSteps is how many objects are looked at in one look, and a few more. Who records waits
// meanwhile, so what one namespace has of them must not hold up the others: what is left over comes
// at the next look.
const lookSteps = 20_000

// looksEach is how often reconsider is called.
func (r *Recorder) looksEach() time.Duration {
	if r.lives != nil {
		return seekEach
	}
	return look
}

// reconsider looks at what other objects say than those that are recorded.
func (r *Recorder) reconsider(ctx context.Context) error {
	if r.lives != nil {
		return r.seekJobs(ctx)
	}
	if err := r.explain(ctx); err != nil {
		return err
	}
	return r.review(ctx)
}

// explain writes why jobs wait, for the jobs of which something else is said than what is written.
// It does not move seq, unless a job was given up, and writes nothing where nothing changes.
func (r *Recorder) explain(ctx context.Context) error {
	var b batch
	now := time.Now()
	r.advance(&b, now)
	if r.waits == nil {
		return r.write(ctx, &b)
	}
	w := r.waits
	for _, changed := range w.listener.Changed() {
		job := r.living[changed.UID]
		if job != nil && job.Namespace == changed.Namespace && job.State.Unfinished() && w.due[job.UID].IsZero() {
			w.due[job.UID] = now.Add(stands)
		}
	}
	steps := 0
	for _, uid := range r.inTurns(r.waits.due, now) {
		if len(b.order) == batchSize || steps > lookSteps {
			break
		}
		steps += r.explainOne(&b, uid, now)
	}
	return r.write(ctx, &b)
}

// inTurns are those of some jobs at which it is time to look, in turns.
func (r *Recorder) inTurns(all map[string]time.Time, now time.Time) []string {
	return turns(func(yield func(uid, namespace string) bool) {
		for uid, due := range all {
			if !now.Before(due) && !yield(uid, r.living[uid].Namespace) {
				return
			}
		}
	})
}

// turns are jobs, which come with their namespaces, in turns: the first of each namespace, then the
// second of each, and so on. So a namespace in which many jobs wait does not delay what is said of
// others'.
func turns(all iter.Seq2[string, string]) (uids []string) {
	of := map[string][]string{} // by namespace
	for uid, in := range all {
		if len(of[in]) < batchSize {
			of[in] = append(of[in], uid)
		}
	}
	for turn := 0; len(of) > 0; turn++ {
		for in, due := range of {
			if turn == len(due) {
				delete(of, in)
				continue
			}
			uids = append(uids, due[turn])
		}
	}
	return uids
}

// explainOne takes into a batch why a job waits, if that is to be written now, and returns what looking cost.
func (r *Recorder) explainOne(b *batch, uid string, now time.Time) (steps int) {
	w, job := r.waits, r.living[uid]
	says := r.opts.Waits.Why
	if job.State == jobs.Running {
		if pace, written := w.paces[uid]; written && now.Before(pace.written.Add(pace.pause)) { // what is said at that time counts
			w.due[uid] = pace.written.Add(pace.pause)
			return 1
		}
		says = r.opts.Waits.WhyInPart
	}
	why, known, steps := says(r.idOf(job.ObjectID))
	if why.Reason == "" && !known {
		w.due[uid] = now.Add(look) // there may be a reason that could not be read yet
		return steps
	}
	seen := jobs.At(r.opts.Cluster.Time(now))
	if why.At == 0 || why.At > seen { // it claims nothing, or what is to come
		why.At = seen
	}
	_, found := w.found[uid]
	delete(w.found, uid)
	next := jobs.Explained(job, why)
	if next == nil {
		delete(w.due, uid)
		return steps
	}
	var gaveUp *jobs.Transition
	if !found { // else it was given up before anybody recorded it
		next, gaveUp = jobs.GaveUp(job, next, why.Version, seen)
	}
	if wait := w.paces[uid].until(job, next); gaveUp == nil && now.Before(wait) {
		w.due[uid] = wait // what is said at that time counts
		return steps
	}
	if gaveUp != nil {
		b.transitions, b.after = append(b.transitions, gaveUp), append(b.after, next)
	}
	b.put(next)
	r.living[uid] = next
	w.paces[uid] = w.paces[uid].next(now)
	delete(w.due, uid)
	r.reviewNow(next)
	return steps
}

// idOf is a job as those know it who say why it waits.
func (r *Recorder) idOf(job jobs.ObjectID) ownerref.ID {
	kind := r.opts.Store.Kind()
	return ownerref.ID{Namespace: job.Namespace, UID: job.UID, Group: kind.Group, Kind: kind.Kind, Name: job.Name}
}

// explainHeld says with its transition why a job is held that had begun: Kueue says in the Workload
// that it is evicted, before it suspends the job. Of what was read later it is not known whether
// that was said then. The transition and the job are their batch's own until that is written.
func (r *Recorder) explainHeld(t *jobs.Transition, job *jobs.Job) {
	begun := t.From == jobs.Pending || t.From == jobs.Running || t.From == jobs.Retrying
	if r.opts.Waits == nil || !t.To.Held() || !begun || t.Reason != "" {
		return
	}
	why, _ := r.opts.Waits.Queueing(r.idOf(job.ObjectID))
	if why.Reason == "" {
		return
	}
	why.At = t.Observed
	if explained := jobs.Explained(job, why); explained != nil {
		*job = *explained
		t.Reason, t.Message = job.Reason, job.Message
	}
}

// until is when the next reason of a job may be written.
func (p pace) until(was, next *jobs.Job) time.Time {
	if was.Reason == next.Reason && alike(was.Message, next.Message) {
		return p.written.Add(longestPause)
	}
	return p.written.Add(p.pause)
}

func (p pace) next(now time.Time) pace {
	return pace{written: now, pause: min(max(2*p.pause, firstPause), longestPause)}
}

// alike reports whether texts differ only in their numbers.
func alike(a, b string) bool {
	for {
		for a != "" && isDigit(a[0]) {
			a = a[1:]
		}
		for b != "" && isDigit(b[0]) {
			b = b[1:]
		}
		switch {
		case a == "" || b == "":
			return a == b
		case a[0] != b[0]:
			return false
		}
		a, b = a[1:], b[1:]
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
