package recorder

import (
	"context"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
)

// A job that others control is a part of the topmost of them that is recorded, as pods are: a Job
// of a JobSet of a TrainJob. That is looked for at each of its transitions, since a job may be
// adopted or orphaned. Whoever makes a job can name anything as what controls it, so it counts only
// if it is there as it is named, in the job's namespace, or was recorded so. Where that cannot be
// said, the job stays what it was: at first no part, so that it is told of.

// findParent notes of which job one is a part that has come to another state, as far as what is in
// memory says. The job is its batch's own until that is written.
func (r *Recorder) findParent(b *batch, o *cluster.Object, job *jobs.Job) {
	if r.opts.Waits == nil {
		return
	}
	parent, known := r.jobAbove(o)
	if parent.UID == job.UID { // things that control each other
		parent = jobs.Ref{}
	}
	delete(b.orphans, job.UID)
	switch {
	case known:
		job.Parent = parent
	case parent.UID != "" && job.Parent.UID == "":
		if b.orphans == nil {
			b.orphans = map[string]jobs.Ref{}
		}
		b.orphans[job.UID] = parent
	}
}

// jobAbove is the topmost job to which a pod, or another job, belongs, as far as what is in memory
// says; see waiting.Watch.JobOf. Its names are strangers' texts, of which a run or a job may keep
// what jobs.Name lets it.
func (r *Recorder) jobAbove(o *cluster.Object) (job jobs.Ref, known bool) {
	job, known = r.opts.Waits.JobOf(o)
	return jobs.Ref{Resource: jobs.Name(job.Resource), Name: jobs.Name(job.Name), UID: jobs.Name(job.UID)}, known
}

// findParents finds those parents that are not in the cluster any more, or not seen there yet, but
// recorded. The jobs are this batch's own until it is written.
func (r *Recorder) findParents(ctx context.Context, b *batch) error {
	if len(b.orphans) == 0 {
		return nil
	}
	wanted := map[string][]string{}
	asked := map[jobs.Ref]bool{}
	for _, parent := range b.orphans {
		if !asked[parent] {
			asked[parent], wanted[parent.Resource] = true, append(wanted[parent.Resource], parent.UID)
		}
	}
	found, err := r.opts.Database.JobsOf(ctx, r.name.Cluster, wanted)
	if err != nil {
		return err
	}
	belongs := func(job *jobs.Job) {
		parent := b.orphans[job.UID]
		recorded, ok := found[parent]
		if !ok || !recorded.Owns(job.Namespace, job.Created) || job.Parent.UID != "" {
			return
		}
		if recorded.Parent.UID != "" {
			parent = recorded.Parent
		}
		if parent.UID != job.UID {
			job.Parent = parent
		}
	}
	for _, job := range b.after {
		belongs(job)
	}
	for uid := range b.orphans {
		belongs(b.changed[uid])
	}
	return nil
}
