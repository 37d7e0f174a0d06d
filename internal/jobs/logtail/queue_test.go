package logtail

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

func itemOf(namespace, name string, state jobs.State) *item {
	return &item{log: store.Log{ID: 1}, job: &jobs.Job{ObjectID: jobs.ObjectID{Namespace: namespace, Name: name, UID: namespace + name}, State: state}}
}

// Somebody has ten thousand jobs fail at once, whose logs are slow to be read. What others have
// comes in turn, and is not dropped for theirs.
func TestJobsOfOneNamespaceDoNotKeepAnothersLogWaiting(t *testing.T) {
	q, now := newQueue(100, 2), time.Now()
	dropped := 0
	for i := range 5000 {
		dropped += q.add(itemOf("flood", fmt.Sprint(i), jobs.Failed))
	}
	dropped += q.add(itemOf("calm", "succeeded", jobs.Succeeded)) + q.add(itemOf("calm", "failed", jobs.Failed))
	for i := range 5000 {
		dropped += q.add(itemOf("flood", fmt.Sprint(5000+i), jobs.Failed))
	}
	if q.size != 100 || dropped != 10_002-100 || len(q.of["calm"].items) != 2 {
		t.Fatalf("%d wait, %d were dropped, %d of the calm ones are left", q.size, dropped, len(q.of["calm"].items))
	}
	if oldest := q.of["flood"].items[0].job.Name; oldest != "9902" {
		t.Errorf("the oldest that is left is %s", oldest)
	}
	var order []string
	for range 5 { // nothing of it comes back
		it, _ := q.next(now)
		if it == nil {
			break
		}
		order = append(order, it.job.Namespace+" "+it.job.Name)
	}
	if got := fmt.Sprint(order); got != "[flood 9902 calm failed flood 9903 calm succeeded]" {
		t.Errorf("%s", got)
	}
}

// Failures come first and go last, what is not due waits, a job waits once, and a namespace of
// which nothing is left is forgotten.
func TestWhatWaitsIsServedInItsOrder(t *testing.T) {
	q, now := newQueue(3, 2), time.Now()
	late := itemOf("a", "late", jobs.Failed)
	late.due = now.Add(time.Hour)
	q.add(itemOf("a", "one", jobs.Succeeded))
	q.add(itemOf("a", "two", jobs.Failed))
	if q.add(late)+q.add(itemOf("a", "two", jobs.Failed)) != 0 || q.size != 3 {
		t.Errorf("%d wait", q.size)
	}
	if dropped := q.add(itemOf("a", "three", jobs.Failed)); dropped != 1 || q.of["a"].items[0].job.Name != "two" {
		t.Errorf("a failure was dropped for a success")
	}
	var taken []*item
	for {
		it, wait := q.next(now)
		if it == nil {
			if len(taken) != 2 || taken[0].job.Name != "two" || wait != 0 {
				t.Errorf("%d are taken, and the next one is due after %v", len(taken), wait)
			}
			break
		}
		taken = append(taken, it)
	}
	q.done(taken[0])
	if it, wait := q.next(now); it != nil || wait != time.Hour {
		t.Errorf("%v, %v", it, wait)
	}
	if it, _ := q.next(now.Add(time.Hour)); it != late {
		t.Errorf("%v", it)
	}
	q.done(taken[1])
	q.done(late)
	if len(q.of) != 0 || len(q.turns) != 0 || q.size != 0 {
		t.Errorf("%v is left", q.of)
	}
	before, again := itemOf("a", "again", jobs.Failed), itemOf("a", "again", jobs.Failed)
	before.job.Ended, again.job.Ended = 1, 2
	q.add(again)
	q.add(before) // it was being read when the job was opened again, and ended once more
	if it, _ := q.next(now); it != again {
		t.Errorf("the earlier end of a job takes the place of the later one")
	}
}
