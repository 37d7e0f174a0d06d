package pending

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/queues"
)

// Job is a job that waits, as its Workload says.
type Job struct {
	queues.Job
	Workload *cluster.Object
	Queue    string // its LocalQueue
	Since    time.Time
	Requests func() map[string]string // of all its pods together

	rank  queues.Rank
	class string // the PriorityClass that a PodGroup of Volcano names
}

func newJob(workload *cluster.Object) *Job {
	return &Job{
		Job: queues.JobOf(workload), Workload: workload, Queue: queues.Queued(workload), Since: queues.Since(workload), rank: queues.RankOf(workload),
		Requests: sync.OnceValue(func() map[string]string { return queues.Requests(workload) }),
	}
}

// Place is where a job stands in a queue.
type Place struct {
	Namespace, Name string // of its Workload
	Queue           string // its LocalQueue
	Job             *Job   // nil: the cache has not seen it yet
	Kind            cluster.Kind
	Known           bool   // the cluster has such a kind
	Owner           string // by the history; "": that is not known
	// Local and Whole are its places in its LocalQueue and in its ClusterQueue, from 1; 0: nobody says so.
	Local, Whole int
	Starts       *Start // nil: there is too little to say
}

// Snapshot is what is known of a queue at a moment. It never changes, and may be read concurrently.
type Snapshot struct {
	Number   uint64         // no two of a queue have the same
	At       time.Time      // when the newest change came to be known
	Upstream cache.Upstream // whether what the objects say is fresh
	// Local and Whole are the LocalQueues and ClusterQueues; nil: the cluster has no such kind.
	Local, Whole *cache.Snapshot
	Volcano      *cache.Snapshot // Volcano's Queues; nil: the cluster has no such kind
	Places       []Place
	Kinds        []cluster.Kind // of the jobs
	Asking       bool           // of which kinds jobs are, or whose, is being looked for, for the first time

	indexed sync.Once
	byJob   map[jobKey]int

	mu    sync.Mutex
	views map[any]*View
	kept  int // bytes of views
}

// says reports whether two are told alike.
func (s *Start) says(as *Start) bool {
	return s == as || s != nil && as != nil && s.From.Equal(as.From) && s.To.Equal(as.To)
}

// jobKey names a job as its Workload does, which may name any uid, but stands in its own namespace.
type jobKey struct{ namespace, name, uid string }

func keyOf(j *Job) jobKey { return jobKey{j.Workload.GetNamespace(), j.Name, j.UID} }

// Find is the first place of a job; nil: it has none.
func (s *Snapshot) Find(namespace, name, uid string) *Place {
	s.indexed.Do(func() {
		s.byJob = make(map[jobKey]int, len(s.Places))
		for i, p := range s.Places {
			if p.Job == nil {
				continue
			}
			key := keyOf(p.Job)
			if _, found := s.byJob[key]; !found {
				s.byJob[key] = i
			}
		}
	})
	if i, found := s.byJob[jobKey{namespace, name, uid}]; found {
		return &s.Places[i]
	}
	return nil
}

// View is what some callers are told of a snapshot.
type View struct {
	Text string
	Sum  uint64 // of the text
	once sync.Once
}

// mostViews bounds how many views of one snapshot are kept, and mostKept how long all of them are. Others are made for each who asks.
const mostViews, mostKept = 64, 16 << 20

var seed = maphash.MakeSeed()

// View is made once for all who ask with the same key.
func (s *Snapshot) View(key any, text func() string) *View {
	s.mu.Lock()
	v := s.views[key]
	if v == nil {
		v = &View{}
		if s.views == nil {
			s.views = map[any]*View{}
		}
		if len(s.views) < mostViews {
			s.views[key] = v
		}
	}
	s.mu.Unlock()
	v.once.Do(func() {
		v.Text = text()
		v.Sum = maphash.String(seed, v.Text)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.views[key] != v {
			return
		}
		if s.kept += len(v.Text); s.kept > mostKept {
			s.kept -= len(v.Text)
			delete(s.views, key)
		}
	})
	return v
}

// says reports whether a snapshot says the same as another whose queues' objects are the same.
func (s *Snapshot) says(other *Snapshot) bool {
	return s.Asking == other.Asking && s.Upstream.Live == other.Upstream.Live && s.Upstream.Since.Equal(other.Upstream.Since) && slices.Equal(s.Kinds, other.Kinds) &&
		slices.EqualFunc(s.Places, other.Places, func(a, b Place) bool {
			return a.Job == b.Job && a.Local == b.Local && a.Whole == b.Whole && a.Owner == b.Owner && a.Starts.says(b.Starts) && a.Known == b.Known && a.Name == b.Name && a.Namespace == b.Namespace
		})
}
