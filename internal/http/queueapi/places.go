package queueapi

import (
	"context"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/jobs/wire"
	"github.com/kubecast/kubecast/internal/queues"
	"github.com/kubecast/kubecast/internal/queues/pending"
)

const (
	// placesWithin is how long an answer of the history waits for places in queues.
	placesWithin = time.Second
	// mostQueues is in how many LocalQueues, and in how many of Volcano's Queues, places are looked for, for one answer.
	mostQueues = 16
)

// Places begins an answer of the history, for a caller, about a cluster. What it returns says where jobs stand that
// wait, by uid, as far as the caller may list their queues. What is not known in time is left out.
func (h *Handler) Places(id auth.Identity, kinds *cache.Kinds, in string) func(context.Context, []*jobs.Job) map[string]*wire.Place {
	looked, count, left := map[queueRequest]*pending.Snapshot{}, map[string]int{}, placesWithin // count is by kind
	look := func(ctx context.Context, q queueRequest) *pending.Snapshot {
		s, known := looked[q]
		if !known && count[q.kind] < mostQueues {
			s = h.snapshot(ctx, id, kinds, q)
			looked[q] = s
			count[q.kind]++
		}
		return s
	}
	return func(ctx context.Context, jobList []*jobs.Job) map[string]*wire.Place {
		began := time.Now()
		defer func() { left -= time.Since(began) }()
		ctx, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		_, hasVolcano := kinds.Cluster().Knows(queues.VolcanoGroup, volcanos)
		found := map[string]*wire.Place{}
		for _, j := range jobList {
			if j.Queue == "" || j.State.Ended() || j.State == jobs.Deleted || j.State == jobs.Running {
				continue
			}
			s := look(ctx, queueRequest{cluster: in, namespace: j.Namespace, name: j.Queue})
			if hasVolcano && (s == nil || s.Find(j.Namespace, j.Name, j.UID) == nil) {
				s = look(ctx, queueRequest{cluster: in, name: j.Queue, kind: volcanos})
			}
			if s == nil {
				continue
			}
			if p := s.Find(j.Namespace, j.Name, j.UID); p != nil && p.Queue == j.Queue {
				found[j.UID] = &wire.Place{Position: number(p.Local), ClusterPosition: number(p.Whole), Starts: startsOf(p)}
			}
		}
		return found
	}
}

// snapshot is what is known of a queue that a caller may list; nil: there is none, or it is not known in time.
func (h *Handler) snapshot(ctx context.Context, id auth.Identity, kinds *cache.Kinds, q queueRequest) *pending.Snapshot {
	queue, _, err := h.find(ctx, id, kinds, &q)
	if err != nil {
		return nil
	}
	reader, err := h.read(kinds, queue, id)
	if err != nil {
		return nil
	}
	defer reader.Close()
	if reader.Ready(ctx) != nil {
		return nil
	}
	s, _ := reader.Snapshot(nil, 0)
	return s
}

// startsOf is when a job is expected to start; nil: there is too little to say.
func startsOf(p *pending.Place) *wire.Starts {
	if p.Starts == nil {
		return nil
	}
	return &wire.Starts{From: p.Starts.From, To: p.Starts.To, Confidence: pending.Confidence}
}

// owned looks up in the history whose jobs are.
func (h *Handler) owned(ctx context.Context, c *cluster.Cluster, user, kind string, uids []string) (found []pending.Owned, err error) {
	all, err := h.opts.Jobs.For(user).Jobs(ctx, c, kind, store.Filter{UIDs: uids}, store.JobAfter{}, len(uids))
	for _, j := range all {
		if j.Deleted == 0 {
			found = append(found, pending.Owned{UID: j.UID, Namespace: j.Namespace, Name: j.Name, Owner: j.Owner})
		}
	}
	return found, err
}

// pastAtOnce is how many jobs of a past are read at once.
const pastAtOnce = 500

// pastOf reads the last jobs of some LocalQueues from the history, of all kinds together.
func (h *Handler) pastOf(ctx context.Context, c *cluster.Cluster, user string, of []pending.LocalQueue, most int) (found []pending.Past, err error) {
	wanted := map[pending.LocalQueue]bool{}
	filter := store.Filter{Within: []store.NamespacedName{}}
	for _, q := range of {
		wanted[q] = true
		filter.Queues = append(filter.Queues, q.Name)
		filter.Within = append(filter.Within, store.NamespacedName{Namespace: q.Namespace})
	}
	// A batch of each kind first, so that the newest of all are among them, and then more of those that have more.
	from, left, after := h.opts.Jobs.For(user), slices.Clone(h.opts.Jobs.Kinds()), map[string]store.JobAfter{}
	for read := 0; len(left) > 0; {
		kind := left[0]
		left = left[1:]
		jobs, err := from.Jobs(ctx, c, kind, filter, after[kind], pastAtOnce)
		if err != nil {
			return nil, err
		}
		for _, j := range jobs {
			after[kind] = store.JobAfter{Created: j.Created, UID: j.UID}
			if j.Parent.UID != "" || !wanted[pending.LocalQueue{Namespace: j.Namespace, Name: j.Queue}] {
				continue
			}
			p := pending.Past{UID: j.UID, Namespace: j.Namespace, Name: j.Name, Queue: j.Queue, Requests: j.Requests, Created: j.Created.Std(), Started: j.Started.Std(), Ended: j.Ended.Std()}
			if p.Ended.IsZero() {
				p.Ended = j.Deleted.Std()
			}
			found = append(found, p)
		}
		if read += len(jobs); len(jobs) == pastAtOnce && read < most {
			left = append(left, kind)
		}
	}
	return found, nil
}
