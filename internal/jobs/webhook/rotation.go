package webhook

import (
	"maps"
	"sync"

	"github.com/kubecast/kubecast/internal/jobs/outbox"
)

// rotation is the jobs that wait to be sent to a target, a line for each namespace, which take
// turns: whoever has much happen in a namespace keeps no other waiting. It is a workqueue.Queue.
type rotation struct {
	mu      sync.Mutex
	of      map[outbox.OrderingKey]inLine
	waiting map[string][]outbox.OrderingKey // by namespace; none is empty
	order   []string                        // the namespaces whose jobs wait, the next first
	n       int
}

// inLine is in which line a job stands. It is kept while the job is served, since it may come back.
type inLine struct {
	namespace string
	waits     bool
}

func newRotation() *rotation {
	return &rotation{of: map[outbox.OrderingKey]inLine{}, waiting: map[string][]outbox.OrderingKey{}}
}

// belongs says in whose line a job will stand. It comes before the job is put into the queue.
func (r *rotation) belongs(job outbox.OrderingKey, namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.of) > 2*(r.n+knownMost) {
		maps.DeleteFunc(r.of, func(_ outbox.OrderingKey, p inLine) bool { return !p.waits })
	}
	r.of[job] = inLine{namespace, r.of[job].waits}
}

// share is how many jobs of each namespace are in memory at most, and length how many of one wait.
func (r *rotation) share(namespace string) (share, length int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(leastShare, knownMost/(len(r.order)+1)), len(r.waiting[namespace])
}

func (r *rotation) Touch(outbox.OrderingKey) {}

func (r *rotation) Push(job outbox.OrderingKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.of[job]
	p.waits = true
	r.of[job] = p
	if len(r.waiting[p.namespace]) == 0 {
		r.order = append(r.order, p.namespace)
	}
	r.waiting[p.namespace] = append(r.waiting[p.namespace], job)
	r.n++
}

func (r *rotation) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

func (r *rotation) Pop() outbox.OrderingKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	namespace := r.order[0]
	r.order = r.order[1:]
	line := r.waiting[namespace]
	job := line[0]
	if len(line) == 1 {
		delete(r.waiting, namespace)
	} else {
		r.waiting[namespace] = line[1:]
		r.order = append(r.order, namespace)
	}
	p := r.of[job]
	p.waits = false
	r.of[job] = p
	r.n--
	return job
}
