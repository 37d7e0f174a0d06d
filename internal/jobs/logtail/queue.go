package logtail

import (
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// item is a job whose log is to be kept, or a pod of it.
type item struct {
	log   store.Log
	job   *jobs.Job // of a pod, no more than which one it is
	pod   *jobs.Run // whose log it is; nil: it is the job's
	again bool      // another may have kept it before
	came  time.Time // when its end was told
	due   time.Time // when it is to be read
	tries int       // that were made
	kept  bool      // by one of these
}

func (i *item) isOfJob(other *item) bool {
	return i.log.ID == other.log.ID && i.job.UID == other.job.UID && (i.pod == nil) == (other.pod == nil)
}

func (i *item) isOf(other *item) bool {
	return i.isOfJob(other) && (i.pod == nil || i.pod.UID == other.pod.UID)
}

// isNewerThan reports whether it was told after another one of the same job or pod, or is of a later end.
func (i *item) isNewerThan(other *item) bool {
	return i.job.Ended > other.job.Ended || i.job.Ended == other.job.Ended && i.came.After(other.came)
}

// isUrgent reports whether it comes first, and is dropped last. What pods wrote that end is there for a moment only. Those
// that are still there after another recorder has told of their end are none of these.
func (i *item) isUrgent() bool {
	if i.pod != nil {
		return !i.again || !i.pod.Terminal()
	}
	return i.job.State == jobs.Failed
}

// queue has the items that wait. Namespaces take turns, and within one of them pods, and jobs that failed, come first.
type queue struct {
	most  int                   // items that may wait
	share int                   // how many of one namespace are read at a time
	of    map[string]*namespace // that have an item, or of which one is being read
	turns []*namespace          // these, in the order in which they are served
	size  int
}

// namespace is what waits of one namespace, the oldest first.
type namespace struct {
	name    string
	items   []*item
	taken   int       // that are being read
	refused time.Time // until when none is read
}

func newQueue(most, share int) *queue {
	return &queue{most: most, share: share, of: map[string]*namespace{}}
}

// add adds an item, in place of one of the same job or pod unless that is newer. If there
// are too many, one of the namespace that has most of them is dropped. Of one job so many pods wait
// as are kept of it: where a thousand are preempted at once, the first tell as much as all.
func (q *queue) add(it *item) (dropped int) {
	n := q.of[it.job.Namespace]
	if n == nil {
		n = &namespace{name: it.job.Namespace}
		q.of[n.name], q.turns = n, append(q.turns, n)
	}
	if i := slices.IndexFunc(n.items, it.isOf); i >= 0 {
		if !n.items[i].isNewerThan(it) {
			n.items[i] = it
		}
		return 0
	}
	if it.pod != nil && n.count(it.isOfJob) >= store.MostPodLogs {
		q.tidy(n)
		return 1
	}
	n.items = append(n.items, it)
	if q.size++; q.size <= q.most {
		return 0
	}
	fullest := n
	for _, other := range q.turns {
		if len(other.items) > len(fullest.items) {
			fullest = other
		}
	}
	fullest.drop(max(0, slices.IndexFunc(fullest.items, func(it *item) bool { return !it.isUrgent() })))
	q.size--
	q.tidy(fullest)
	return 1
}

func (n *namespace) count(is func(*item) bool) (count int) {
	for _, it := range n.items {
		if is(it) {
			count++
		}
	}
	return count
}

func (n *namespace) drop(i int) { n.items = slices.Delete(n.items, i, i+1) }

// next takes the item whose turn it is; nil if none is due. Then something may be after a while; 0:
// when an item is added, or was read.
func (q *queue) next(now time.Time) (it *item, wait time.Duration) {
	for turn, n := range q.turns {
		if n.taken == q.share {
			continue
		}
		if until := n.refused.Sub(now); until > 0 {
			wait = sooner(wait, until)
			continue
		}
		best := -1
		for i, it := range n.items {
			if until := it.due.Sub(now); until > 0 {
				wait = sooner(wait, until)
			} else if best < 0 || it.isUrgent() && !n.items[best].isUrgent() {
				best = i
			}
		}
		if best < 0 {
			continue
		}
		it = n.items[best]
		n.drop(best)
		n.taken++
		q.size--
		q.turns = append(slices.Delete(q.turns, turn, turn+1), n)
		return it, 0
	}
	return nil, wait
}

// sooner is the shorter of two waits, of which the first may be none.
func sooner(wait, other time.Duration) time.Duration {
	if wait == 0 {
		return other
	}
	return min(wait, other)
}

// refuse has nothing of a namespace read until a time.
func (q *queue) refuse(namespace string, until time.Time) {
	if n := q.of[namespace]; n != nil {
		n.refused = until
	}
}

// done gives back the turn of an item that was taken.
func (q *queue) done(it *item) {
	n := q.of[it.job.Namespace]
	n.taken--
	q.tidy(n)
}

// tidy forgets a namespace that has nothing.
func (q *queue) tidy(n *namespace) {
	if len(n.items) == 0 && n.taken == 0 {
		delete(q.of, n.name)
		q.turns = slices.DeleteFunc(q.turns, func(other *namespace) bool { return other == n })
	}
}
