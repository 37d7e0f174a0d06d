package recorder

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/stream"
)

// batch is what is to be written together.
type batch struct {
	transitions []*history.Transition
	order       []string                // uids, as they came first
	changed     map[string]*history.Job // by uid, as they are at the end
}

func (b *batch) jobs() []*history.Job {
	jobs := make([]*history.Job, len(b.order))
	for i, uid := range b.order {
		jobs[i] = b.changed[uid]
	}
	return jobs
}

// maxIdentity is how long a uid, name or namespace may be that a database keeps, in bytes.
const maxIdentity = 256

// see takes one object into a batch.
func (r *Recorder) see(b *batch, o *cluster.Object, deleted bool, observed time.Time, late bool) {
	identity := history.Identity{UID: o.UID(), Namespace: o.GetNamespace(), Name: o.GetName()}
	if identity.UID == "" || max(len(identity.UID), len(identity.Namespace), len(identity.Name)) > maxIdentity {
		return // which no API server gives an object that it stores itself
	}
	was := r.living[identity.UID]
	seen := history.Seen{
		Identity: identity, Version: o.Version(), Created: history.At(time.Unix(o.Created(), 0)), Deleted: deleted,
		Observed: history.At(observed), Late: late,
	}
	if o.Created() == 0 {
		seen.Created = 0
	}
	if !deleted {
		state := history.State("")
		if was != nil {
			state = was.State
		}
		var err error
		if seen.Said, err = r.opts.Rule.Read(o, state); err != nil {
			r.log.Debug("a rule cannot read an object", "object", o.Key(), "error", err)
		}
	}
	r.change(b, was, seen)
}

// change takes what was seen of one job into a batch.
func (r *Recorder) change(b *batch, was *history.Job, seen history.Seen) {
	next, transition := history.Next(was, seen)
	if next == nil {
		return
	}
	b.transitions = append(b.transitions, transition)
	if b.changed == nil {
		b.changed = map[string]*history.Job{}
	}
	if b.changed[next.UID] == nil {
		b.order = append(b.order, next.UID)
	}
	b.changed[next.UID] = next
	r.waits.changed(next, time.Now())
	if next.State == history.Deleted {
		delete(r.living, next.UID)
	} else {
		r.living[next.UID] = next
	}
}

// compare begins at the objects as they are, and writes as late what differs from the jobs as the database has them: what lay
// between is not known.
func (r *Recorder) compare(ctx context.Context) error {
	snapshot := r.opts.Store.Snapshot()
	r.cursor = r.opts.Store.Topic().From(snapshot.Head, stream.AllNamespaces())
	b := r.differences(objectsOf(snapshot), snapshot.Version())
	r.log.Info("jobs are compared with the cluster's", "version", snapshot.Version(), "objects", snapshot.Len(), "late", len(b.transitions))
	r.read = snapshot.Head.Known().All
	if err := r.write(ctx, b); err != nil {
		return err
	}
	if err := r.renew(ctx); err != nil { // so that the position is of this history, also if nothing differs
		return err
	}
	r.rewritten, r.checked = false, true
	return nil
}

// leap goes over what the API server has forgotten, and no further: from a position to the version after which it still has what happened,
// if there is one up to a place in the ring (0: up to now). That is how it is after its restart, which the gateway notices later than those who go on
// writing. What differs between the two is late; what follows is read as ever, by the cursor that it gives.
//
// If ok is false, nothing could be done.
func (r *Recorder) leap(ctx context.Context, gone error, upTo uint64) (cursor *cache.Cursor, ok bool, err error) {
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
	r.log.Info("what the cluster has forgotten is passed over", "after", r.read, "to", to, "late", len(b.transitions))
	r.read = to
	if err := r.write(ctx, b); err != nil {
		cursor.Disarm()
		return nil, false, err
	}
	return cursor, true, nil
}

// check compares once, when a tenure has caught up: versions may have gone back and come again while nobody was there to see
// it, and rules may be others than those by which was recorded. Usually there is no difference.
//
// Both sides must be of one moment. So nothing may be unread, and the objects must be newer than where the database stood:
// deletions of the version after that may have been recorded already, by who saw them, while the objects are still there.
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
	if len(b.transitions) > 0 {
		r.log.Warn("jobs are not what the cluster's history led to; what differs is recorded as late", "jobs", len(b.order))
	}
	return r.write(ctx, b)
}

func objectsOf(snapshot *cache.Snapshot) []*cluster.Object {
	return slices.Collect(snapshot.List(stream.AllNamespaces(), cache.Selector{}, "", ""))
}

// differences are what the objects at a version are otherwise than the jobs that live, in the order of their versions.
func (r *Recorder) differences(objects []*cluster.Object, version uint64) *batch {
	slices.SortStableFunc(objects, func(a, b *cluster.Object) int { return cmp.Compare(a.Version(), b.Version()) })
	there := make(map[string]bool, len(objects))
	var b batch
	now := time.Now()
	// What is gone first: another of its name may have come after it.
	for _, o := range objects {
		there[o.UID()] = true
	}
	var gone []*history.Job
	for uid, job := range r.living {
		if !there[uid] {
			gone = append(gone, job)
		}
	}
	slices.SortFunc(gone, func(a, b *history.Job) int { return cmp.Compare(a.Since, b.Since) })
	for _, job := range gone {
		r.change(&b, job, history.Seen{Identity: job.Identity, Version: version, Created: job.Created, Deleted: true, Observed: history.At(now), Late: true})
	}
	for _, o := range objects {
		r.see(&b, o, false, now, true)
	}
	return &b
}
