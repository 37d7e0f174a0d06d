package recorder

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/pods"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// A recorder of pods records the lives of those that belong to jobs. It reads pods as other
// recorders read jobs, and its log is one for the jobs of all kinds of a cluster.
//
// A pod may be seen before its job is recorded, or before what stands between the two was read. Its
// run is then written all the same, where nobody is shown it, and moves to its job once that is
// there. So nothing waits for a job, and nothing is lost. Only of a pod of which it is not even
// known whether it belongs to a job at all, the run is kept in memory until that is known.

const (
	// seekEach is how often the recorder looks for jobs that were not there. Each time that one is
	// not there either, twice as much time passes before it is looked for again, up to seekRarely.
	seekEach, seekRarely = 250 * time.Millisecond, 30 * time.Second
	// settledAfter is how long it may take until what stands between a pod and its job was read.
	// After that, what was found counts.
	settledAfter = 10 * time.Second
	// soughtFor is for how long a job is looked for. Owners can be made up, so it may not be there at all.
	soughtFor = 10 * time.Minute
	// mostSought bounds the runs whose jobs are looked for. The namespace that has most of them
	// gives way. Those that are not looked for are when they change, or when the recorder begins
	// again.
	mostSought = 10_000
	// foundFor is for how long a job that was found counts as it was, for no more than mostFound of
	// them. Pods begin and end one by one, at thousands a second, and a question for each would
	// take longer than to write them.
	foundFor, mostFound = time.Second, 10_000
)

// podLives are what a recorder of pods knows in one term.
type podLives struct {
	living map[string]*life // by the pod's uid: of those in the cluster
	sought map[string]*seek // by the pod's uid: whose job is not known
	counts map[string]int   // by namespace: of those that are sought
	found  map[jobs.Ref]store.OwningJob
	asked  time.Time // since when found counts
}

func newPodLives(living int) *podLives {
	return &podLives{living: make(map[string]*life, living), sought: map[string]*seek{}, counts: map[string]int{}}
}

// life is the run of a pod.
type life struct {
	store.Run
	written bool   // there is a row of it, or will be
	print   uint64 // of the pod's last version that was read; 0: none
}

// seek is the search for the job of a run.
type seek struct {
	of     *life
	pod    *cluster.Object // nil: what owns it is not known any more
	began  time.Time
	next   time.Time
	pause  time.Duration
	placed bool // its Job is that to which it belongs, if there is such a job
}

// beginLives reads what is known of the pods in the cluster.
func (r *Recorder) beginLives(ctx context.Context) error {
	runs, err := r.opts.Database.LivingRuns(ctx, r.at)
	if err != nil {
		return err
	}
	r.lives = newPodLives(len(runs))
	if err := r.settle(ctx); err != nil { // or pods that belong to no job would be looked into one by one, later
		return err
	}
	now, there := time.Now(), r.opts.Store.Snapshot()
	for _, run := range runs {
		l := &life{Run: *run, written: true}
		if run.Gone == 0 {
			r.lives.living[run.UID] = l
		}
		if run.Of == 0 {
			r.lives.seek(r.seekAgain(l, there.Get(l.Namespace, l.Name), now))
		}
	}
	return nil
}

// seekAgain is the search for the job of a run that was written before that was known: whoever
// wrote it may not have come to read what that is a part of. Where the way does not lead to its end
// any more, what was written counts. The object has the pod's name; nil: there is none.
func (r *Recorder) seekAgain(l *life, o *cluster.Object, now time.Time) *seek {
	s := &seek{of: l, began: now, placed: true}
	if o == nil || o.UID() != l.UID {
		return s
	}
	job, known := r.jobAbove(o)
	switch {
	case job.UID == "":
	case known:
		l.belongs(job)
	case job == l.Job: // nothing further was known then either
		s.pod, s.placed = o, false
	}
	return s
}

// belongs notes to which job a run belongs.
func (l *life) belongs(job jobs.Ref) {
	if job == l.Job {
		return
	}
	run := *l.Run.Run
	run.Job = job
	l.Run.Run = &run
}

// beginsAnew notes that pods may have come and gone that nobody saw. Of jobs from before it is not
// known whether they had any.
func (r *Recorder) beginsAnew(ctx context.Context) error {
	if r.lives == nil {
		return nil
	}
	return r.opts.Database.Began(ctx, r.at, jobs.At(r.opts.Cluster.Now()))
}

// seek begins to look for a run's job. Whoever makes pods can invent jobs, so it is the namespace
// with the most that has no room for more.
func (l *podLives) seek(s *seek) {
	if len(l.sought) >= mostSought && l.sought[s.of.UID] == nil {
		fullest := s.of.Namespace
		for namespace, n := range l.counts {
			if n > l.counts[fullest]+1 {
				fullest = namespace
			}
		}
		if fullest == s.of.Namespace {
			l.overlook(s.of)
			return
		}
		for _, other := range l.sought {
			if other.of.Namespace == fullest {
				l.placed(other.of)
				l.overlook(other.of)
				break
			}
		}
	}
	l.placed(s.of)
	l.sought[s.of.UID] = s
	l.counts[s.of.Namespace]++
}

// placed ends the search for a run's job, if there is one.
func (l *podLives) placed(of *life) {
	if l.sought[of.UID] == nil {
		return
	}
	delete(l.sought, of.UID)
	if l.counts[of.Namespace]--; l.counts[of.Namespace] == 0 {
		delete(l.counts, of.Namespace)
	}
}

// overlook forgets a run of which it is not known whether it belongs to any job, and which nobody
// looks into. It begins anew when its pod changes.
func (l *podLives) overlook(of *life) {
	if of.Job.UID == "" && !of.written {
		delete(l.living, of.UID)
	}
}

// seePod takes one pod into a batch.
func (r *Recorder) seePod(b *batch, o *cluster.Object, deleted bool, how sight) {
	l, print := r.lives.living[o.UID()], uint64(0)
	if l != nil && !deleted {
		if print = fingerprint(o); print == l.print {
			return
		}
	}
	var job jobs.Ref
	identity, ok := identityOf(o)
	known := true
	if l == nil {
		if deleted || !ok {
			return
		}
		if job, known = r.opts.Waits.JobOf(o); job == (jobs.Ref{}) && known {
			return
		}
	}
	seen := jobs.SeenPod{
		ObjectID: identity, PodSaid: pods.Read(o, r.opts.Waits.DevicesOf(identity.Namespace)), Job: job, Created: createdOf(o), Version: o.Version(), Deleted: deleted,
		Observed: jobs.At(r.opts.Cluster.Time(how.at)), Late: how.late, Replayed: how.replayed,
	}
	if l != nil {
		l.print = print
		r.live(b, l, seen)
		return
	}
	run := jobs.NextRun(nil, seen)
	l = &life{Run: store.Run{Run: run, Late: how.late}}
	r.lives.living[run.UID] = l
	if !known {
		r.lives.seek(&seek{of: l, pod: o, began: time.Now()})
	}
	if run.Job.UID != "" {
		b.putRun(l)
	}
}

// live takes what was seen of a pod that is known into a batch.
func (r *Recorder) live(b *batch, l *life, seen jobs.SeenPod) {
	if seen.Deleted {
		delete(r.lives.living, l.UID)
		l.Gone = max(seen.Observed, 1)
	}
	next := jobs.NextRun(l.Run.Run, seen)
	switch {
	case next != nil:
		l.Run.Run, l.Late = next, l.Late || seen.Late
		if l.Job.UID != "" {
			b.putRun(l)
		}
	case seen.Deleted && l.written:
		b.goneLives = append(b.goneLives, l)
	}
}

// gonePods takes into a batch that pods are not there any more that were known.
func (r *Recorder) gonePods(b *batch, there map[string]bool, version uint64, now time.Time) {
	var gone []*life
	for uid, l := range r.lives.living {
		if !there[uid] {
			gone = append(gone, l)
		}
	}
	slices.SortFunc(gone, func(a, b *life) int { return strings.Compare(a.UID, b.UID) })
	for _, l := range gone {
		r.live(b, l, jobs.SeenPod{ObjectID: l.ObjectID, Version: version, Created: l.Created, Deleted: true, Observed: jobs.At(r.opts.Cluster.Time(now)), Late: true})
	}
}

// putRun notes that a run has changed.
func (b *batch) putRun(l *life) {
	if b.lives == nil {
		b.lives = map[*life]bool{}
	}
	if !b.lives[l] {
		b.lives[l], b.changedLives = true, append(b.changedLives, l)
	}
}

// placeRuns finds the jobs of a batch's runs. What is written is a copy of each run, since it goes
// on while the database works.
func (r *Recorder) placeRuns(ctx context.Context, b *batch) error {
	found, err := r.jobsOf(ctx, b.changedLives)
	if err != nil {
		return err
	}
	for _, l := range b.changedLives {
		switch job, ok := found[l]; {
		case ok:
			l.join(job)
			r.lives.placed(l)
		case l.Of != 0: // its job was removed, after it was kept for long enough
			delete(r.lives.living, l.UID)
			continue
		case r.lives.sought[l.UID] == nil:
			r.lives.seek(&seek{of: l, began: time.Now(), placed: true})
		}
		run := l.Run
		l.written, l.Parked = true, l.Of == 0
		b.runs = append(b.runs, &run)
	}
	for _, l := range b.goneLives {
		b.gone = append(b.gone, store.Gone{Pod: l.UID, Of: l.Of, At: l.Gone})
	}
	b.lives, b.changedLives, b.goneLives = nil, nil, nil
	return nil
}

// jobsOf finds the jobs of runs of which it is known to which one they belong. A pod may name a job
// that is not its own.
func (r *Recorder) jobsOf(ctx context.Context, all []*life) (map[*life]store.OwningJob, error) {
	if len(all) == 0 {
		return nil, nil
	}
	if now := time.Now(); now.Sub(r.lives.asked) > foundFor || len(r.lives.found) > mostFound {
		r.lives.found, r.lives.asked = map[jobs.Ref]store.OwningJob{}, now
	}
	wanted := map[string][]string{}
	asked := map[jobs.Ref]bool{}
	for _, l := range all {
		if _, known := r.lives.found[l.Job]; !known && !asked[l.Job] && !r.lives.undecided(l) {
			asked[l.Job], wanted[l.Job.Resource] = true, append(wanted[l.Job.Resource], l.Job.UID)
		}
	}
	if len(wanted) > 0 {
		found, err := r.opts.Database.JobsOf(ctx, r.name.Cluster, wanted)
		if err != nil {
			return nil, err
		}
		maps.Copy(r.lives.found, found)
		if err := r.findAbove(ctx, found); err != nil {
			return nil, err
		}
		defer maps.DeleteFunc(r.lives.found, func(_ jobs.Ref, job store.OwningJob) bool { return job.Deleted != 0 }) // it may be removed meanwhile
	}
	of := make(map[*life]store.OwningJob, len(all))
	for _, l := range all {
		if part, ok := r.lives.found[l.Job]; ok && l.Of == 0 && !r.lives.undecided(l) {
			if top, ok := r.lives.found[part.Parent]; ok && part.Owns(l.Namespace, l.Created) && top.Owns(l.Namespace, l.Created) {
				l.belongs(part.Parent)
			}
		}
		if job, ok := r.lives.found[l.Job]; ok && job.Owns(l.Namespace, l.Created) && !r.lives.undecided(l) {
			of[l] = job
		}
	}
	return of, nil
}

// findAbove finds the jobs of which others are parts. What stood between a pod and its topmost job
// may be gone before anybody has read the pod: a JobSet deletes its Jobs when it begins anew. Of
// what it was a part is recorded.
func (r *Recorder) findAbove(ctx context.Context, parts map[jobs.Ref]store.OwningJob) error {
	wanted := map[string][]string{}
	asked := map[jobs.Ref]bool{{}: true}
	for _, part := range parts {
		if above := part.Parent; !asked[above] {
			asked[above], wanted[above.Resource] = true, append(wanted[above.Resource], above.UID)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	found, err := r.opts.Database.JobsOf(ctx, r.name.Cluster, wanted)
	maps.Copy(r.lives.found, found)
	return err
}

// undecided reports whether the run's Job may not be the topmost one.
func (l *podLives) undecided(of *life) bool {
	s := l.sought[of.UID]
	return s != nil && !s.placed
}

// join takes over what a run has from its job.
func (l *life) join(job store.OwningJob) {
	l.Of, l.Owner, l.Queue = job.Of, job.Owner, job.Queue
	if job.NamespaceUID != "" && job.NamespaceUID != l.NamespaceUID {
		run := *l.Run.Run
		run.NamespaceUID = job.NamespaceUID
		l.Run.Run = &run
	}
}

// seekJobs looks again for jobs that were not there, and writes the runs of those that are.
func (r *Recorder) seekJobs(ctx context.Context) error {
	now := time.Now()
	var due []*life
	for uid, s := range r.lives.sought {
		if now.Before(s.next) || len(due) == batchSize {
			continue
		}
		s.pause = min(max(2*s.pause, seekEach), seekRarely)
		s.next = now.Add(s.pause)
		if !r.decide(s, now) || now.Sub(s.began) > soughtFor {
			r.lives.placed(s.of)
			if !s.of.written { // it belongs to no job
				delete(r.lives.living, uid)
			}
			continue
		}
		if s.placed {
			due = append(due, s.of)
		}
	}
	if len(due) == 0 {
		return nil
	}
	found, err := r.jobsOf(ctx, due)
	if err != nil {
		return err
	}
	var b batch
	slices.SortFunc(due, func(a, b *life) int { return strings.Compare(a.UID, b.UID) })
	for _, l := range due {
		if _, ok := found[l]; ok || !l.written {
			b.putRun(l)
		}
	}
	return r.write(ctx, &b)
}

// decide finds out to which job a run belongs, as far as owners lead; false means that it belongs to none.
func (r *Recorder) decide(s *seek, now time.Time) bool {
	if s.placed || s.pod == nil {
		return true
	}
	job, known := r.jobAbove(s.pod)
	if known = known || now.Sub(s.began) > settledAfter; job.UID == "" {
		return !known || s.of.Job.UID != "" // a part of the way may be gone since
	}
	s.of.belongs(job)
	if s.placed = known; known {
		s.pod = nil
	}
	return true
}
