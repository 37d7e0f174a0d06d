package recorder

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/stream"
)

// batch is what is written in one transaction.
type batch struct {
	to          uint64 // the version up to which it was read
	transitions []*jobs.Transition
	after       []*jobs.Job                // by transition
	order       []string                   // uids, in the order in which they first came
	changed     map[string]*jobs.Job       // by uid, as they are at the end
	unowned     map[string]*cluster.Object // by uid: jobs that name no owner
	unplaced    map[string]*cluster.Object // by uid: jobs of which it is not known of which namespace they are
	orphans     map[string]jobs.Ref        // by uid: jobs that name what is not known as what controls them
	kept        keeping                    // of jobs that have ended
	caused      map[string]*cluster.Object // by uid: jobs in a state that has a cause
	causes      []store.KnownCause         // that are known now, of transitions that were written before

	// Of pods.
	changedLives []*life // that are not in runs yet, in the order in which they first came
	lives        map[*life]bool
	goneLives    []*life // that are not in gone yet
	runs         []*store.Run
	gone         []store.Gone
}

func (b *batch) isEmpty() bool {
	return len(b.order)+len(b.causes)+len(b.changedLives)+len(b.goneLives)+len(b.runs)+len(b.gone) == 0
}

// changes are how many numbers it takes.
func (b *batch) changes() int { return len(b.transitions) + len(b.changedLives) + len(b.runs) }

// weight is how much it is to keep in memory and to write, in changes. What they usually bring
// along is no more than one of them.
func (b *batch) weight() int { return b.changes() + b.kept.bytes/keptOfAChange }

// keptOfAChange is how many bytes of specs are as much as a change.
const keptOfAChange = 16 << 10

func (b *batch) jobs() []*jobs.Job {
	jobList := make([]*jobs.Job, len(b.order))
	for i, uid := range b.order {
		jobList[i] = b.changed[uid]
	}
	return jobList
}

// add adds what was read next.
func (b *batch) add(next *batch) {
	b.to = next.to
	b.transitions, b.after = append(b.transitions, next.transitions...), append(b.after, next.after...)
	for _, job := range next.jobs() {
		b.put(job)
	}
	b.causes = append(b.causes, next.causes...)
	if len(next.runs) > 0 {
		again := make(map[string]*store.Run, len(next.runs))
		for _, run := range next.runs {
			again[run.UID] = run
		}
		b.runs = slices.DeleteFunc(b.runs, func(run *store.Run) bool {
			later := again[run.UID]
			if later != nil { // it has to leave where it was, though the later one knows of no other place
				later.Parked = later.Parked || run.Parked
			}
			return later != nil
		})
		b.runs = append(b.runs, next.runs...)
		// A later run says itself that its pod is gone, and may have moved from where that was to be noted.
		b.gone = slices.DeleteFunc(b.gone, func(g store.Gone) bool { return again[g.Pod] != nil })
	}
	b.gone = append(b.gone, next.gone...)
	for _, k := range next.kept.of {
		b.keep(k) // together they are no more than a batch may weigh
	}
}

// put notes a job as it is now.
func (b *batch) put(job *jobs.Job) {
	if b.changed == nil {
		b.changed = map[string]*jobs.Job{}
	}
	if b.changed[job.UID] == nil {
		b.order = append(b.order, job.UID)
	}
	b.changed[job.UID] = job
}

// maxIdentity is how long, in bytes, a uid, name or namespace may be for the database to keep it.
const maxIdentity = 256

// sight is when and how an object was seen.
type sight struct {
	at             time.Time // by this gateway's clock
	late, replayed bool      // see jobs.Seen
}

// see takes one object into a batch.
func (r *Recorder) see(b *batch, o *cluster.Object, deleted bool, how sight) {
	if r.lives != nil {
		r.seePod(b, o, deleted, how)
		return
	}
	identity, ok := identityOf(o)
	if !ok {
		return
	}
	was := r.living[identity.UID]
	seen := jobs.Seen{
		ObjectID: identity, Version: o.Version(), Created: createdOf(o), Deleted: deleted,
		Observed: jobs.At(r.opts.Cluster.Time(how.at)), Late: how.late, Replayed: how.replayed,
	}
	if !deleted {
		known := was
		if was != nil && seen.Version < was.Version { // the cluster was restored: what the job came to was not so
			known = nil
		}
		var err error
		if seen.Said, err = r.opts.Rule.Read(o, known); err != nil {
			r.log.Debug("a rule cannot read an object", "object", o.Key(), "error", err)
		}
	}
	before := len(b.transitions)
	r.change(b, was, seen)
	if len(b.transitions) > before {
		r.keepSpec(b, o, b.transitions[before])
	}
	next := b.changed[seen.UID]
	if next == nil || deleted {
		return
	}
	if len(b.transitions) > before {
		r.findParent(b, o, next)
		if !how.late && !how.replayed {
			r.explainHeld(b.transitions[before], next)
		}
	}
	if next.Owner == "" && r.opts.Owners != nil {
		note(&b.unowned, o)
	}
	if next.NamespaceUID == "" && next.Namespace != "" {
		note(&b.unplaced, o)
	}
	if next.HasCause() {
		note(&b.caused, o)
	}
}

// identityOf is an object's identity; ok is false if the database could not keep it. API servers
// give no such names to objects that they store themselves.
func identityOf(o *cluster.Object) (identity jobs.ObjectID, ok bool) {
	identity = jobs.ObjectID{UID: o.UID(), Namespace: o.GetNamespace(), Name: o.GetName()}
	return identity, identity.UID != "" && max(len(identity.UID), len(identity.Namespace), len(identity.Name)) <= maxIdentity
}

// createdOf is when an object was made; 0 if it does not say.
func createdOf(o *cluster.Object) jobs.Time {
	if o.Created() == 0 {
		return 0
	}
	return jobs.At(time.Unix(o.Created(), 0))
}

func note(objects *map[string]*cluster.Object, o *cluster.Object) {
	if *objects == nil {
		*objects = map[string]*cluster.Object{}
	}
	(*objects)[o.UID()] = o
}

// findersAtOnce is how many owners are looked for at a time.
const findersAtOnce = 16

// findOwners looks further for the owners of jobs that name none. The jobs and transitions are this
// batch's own until it is written.
func (r *Recorder) findOwners(ctx context.Context, b *batch) error {
	if len(b.unowned) == 0 {
		return nil
	}
	var mu sync.Mutex
	found := map[string]string{}
	finding, ctx := errgroup.WithContext(ctx)
	finding.SetLimit(findersAtOnce)
	for uid, o := range b.unowned {
		namespace := b.changed[uid].NamespaceUID
		finding.Go(func() error {
			owner, err := r.opts.Owners.Of(ctx, o, namespace)
			if owner != "" {
				mu.Lock()
				defer mu.Unlock()
				found[uid] = owner
			}
			return err
		})
	}
	if err := finding.Wait(); err != nil {
		return err
	}
	for i, t := range b.transitions {
		if owner := jobs.Name(found[t.UID]); owner != "" && t.Owner == "" {
			t.Owner, b.after[i].Owner = owner, owner
		}
	}
	for uid := range b.unowned {
		if job := b.changed[uid]; job.Owner == "" { // it may have been counted after its transition
			job.Owner = jobs.Name(found[uid])
		}
	}
	return nil
}

// change takes what was seen of one job into a batch.
func (r *Recorder) change(b *batch, was *jobs.Job, seen jobs.Seen) {
	next, transition := jobs.Next(was, seen)
	if transition == nil && was != nil {
		r.count(b, was, next, seen)
	}
	if transition == nil {
		return
	}
	b.transitions, b.after = append(b.transitions, transition), append(b.after, next)
	b.put(next)
	r.waits.changed(next, time.Now())
	r.reviewed(was, next)
	if next.State == jobs.Deleted {
		delete(r.living, next.UID)
	} else {
		r.living[next.UID] = next
	}
	r.progresses.written(next.UID)
}

// count takes what was counted of a job into a batch, which has made no transition. Next is the job
// if more has failed than before, else nil.
func (r *Recorder) count(b *batch, was, next *jobs.Job, seen jobs.Seen) {
	now := next
	if now == nil {
		now = was
	}
	if further := jobs.Progressed(now, seen.Progress); further != nil && !seen.Deleted {
		now = further
	}
	switch {
	case next != nil, now != was && b.changed[now.UID] != nil: // it is written anyway
		b.put(now)
		r.living[now.UID] = now
		r.progresses.written(now.UID)
	case now != was:
		r.living[now.UID] = now
		r.progresses.moved(now.UID, time.Now())
	}
}

// compare begins with the objects as they are now. Where they differ from the jobs in the database, it records the
// difference as late, since what happened in between is not known.
func (r *Recorder) compare(ctx context.Context) error {
	snapshot := r.opts.Store.Snapshot()
	r.cursor = r.opts.Store.Topic().From(snapshot.Head, stream.AllNamespaces())
	b := r.differences(objectsOf(snapshot), snapshot.Version())
	r.log.Info("jobs are compared with the cluster's", "version", snapshot.Version(), "objects", snapshot.Len(), "late", b.changes())
	r.read = snapshot.Head.Known().All
	if r.at.Version == 0 && r.waits != nil {
		for _, job := range b.jobs() {
			if job.State.Waits() {
				r.waits.found[job.UID] = struct{}{}
			}
		}
	}
	if err := r.beginsAnew(ctx); err != nil {
		return err
	}
	if err := r.write(ctx, b); err != nil {
		return err
	}
	if err := r.renew(ctx); err != nil { // even if nothing differs, the position must be one of this history
		return err
	}
	r.rewritten, r.checked = false, true
	return nil
}

// skipGap passes over what the API server has forgotten, and no more than that. It goes from a
// position to the version after which the API server still has all events, if that version is not
// behind upTo, a place in the ring (0: up to now). This is the situation after a restart of the API
// server, which the gateway notices later than clients that go on writing. What differs between
// position and version is recorded as late. What follows is read as usual, by the cursor that skipGap
// returns.
//
// If ok is false, nothing could be done.
func (r *Recorder) skipGap(ctx context.Context, gone error, upTo uint64) (cursor *cache.Cursor, ok bool, err error) {
	var f *cluster.Forgotten
	if !errors.As(gone, &f) || f.Since < r.read {
		return nil, false, nil
	}
	to := f.Since
	if upTo != 0 && to > upTo {
		return nil, false, nil
	}
	if exists, err := r.opts.Cluster.HasVersion(ctx, r.opts.Store.Kind(), to); err != nil || !exists {
		return nil, false, err
	}
	objects, err := r.opts.Cluster.ListAt(ctx, r.opts.Store.Kind(), to)
	if err != nil {
		r.log.Info("what was at a version that the cluster still knows cannot be listed", "version", to, "error", err)
		return nil, false, nil
	}
	cursor, err = r.opts.Store.CaughtUpAfter(ctx, upTo, to, stream.AllNamespaces())
	if errors.Is(err, cache.ErrNoCatchUp) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	b := r.differences(objects, to)
	r.log.Info("what the cluster has forgotten is passed over", "after", r.read, "to", to, "late", b.changes())
	r.read = to
	if err = r.beginsAnew(ctx); err == nil {
		err = r.write(ctx, b)
	}
	if err != nil {
		cursor.Disarm()
		return nil, false, err
	}
	return cursor, true, nil
}

// check compares the jobs with the objects once, when a term has caught up. Versions may have gone back and grown
// again while no gateway was there to see it. And the rules may have changed since the jobs were recorded. Usually
// nothing differs.
//
// Both sides must be of the same moment. So nothing may be unread, and the objects must be newer than the position in
// the database was. Otherwise a recorder that saw deletions of the next version may have recorded them already, while
// the objects are still there.
func (r *Recorder) check(ctx context.Context) error {
	if r.checked {
		return nil
	}
	snapshot := r.opts.Store.Snapshot()
	if snapshot.Head.Known() != stream.UpTo(r.read) || r.read == r.from {
		return nil
	}
	r.checked = true
	b := r.differences(objectsOf(snapshot), snapshot.Version())
	if n := b.changes(); n > 0 {
		r.log.Warn("what is known is not what the cluster's history led to; what differs is recorded as late", "differences", n)
	}
	return r.write(ctx, b)
}

func objectsOf(snapshot *cache.Snapshot) []*cluster.Object {
	return slices.Collect(snapshot.List(stream.AllNamespaces(), cache.Selector{}, "", ""))
}

// differences are the ways in which the objects at a version differ from the living jobs, in the order of their
// versions.
func (r *Recorder) differences(objects []*cluster.Object, version uint64) *batch {
	slices.SortStableFunc(objects, func(a, b *cluster.Object) int { return cmp.Compare(a.Version(), b.Version()) })
	there := make(map[string]bool, len(objects))
	var b batch
	now := time.Now()
	// Deletions come first, since another object of the same name may have come after.
	for _, o := range objects {
		there[o.UID()] = true
	}
	if r.lives != nil {
		r.gonePods(&b, there, version, now)
	}
	var gone []*jobs.Job
	for uid, job := range r.living {
		if !there[uid] {
			gone = append(gone, job)
		}
	}
	slices.SortFunc(gone, func(a, b *jobs.Job) int { return cmp.Compare(a.Since, b.Since) })
	for _, job := range gone {
		r.change(&b, job, jobs.Seen{ObjectID: job.ObjectID, Version: version, Created: job.Created, Deleted: true, Observed: jobs.At(r.opts.Cluster.Time(now)), Late: true})
	}
	for _, o := range objects {
		r.see(&b, o, false, sight{at: now, late: true})
	}
	return &b
}
