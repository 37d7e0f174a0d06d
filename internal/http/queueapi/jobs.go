package queueapi

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs/wire"
	"github.com/kubecast/kubecast/internal/queues"
	"github.com/kubecast/kubecast/internal/queues/pending"
)

// waiting is a job that waits.
type waiting struct {
	// Position and ClusterPosition are its places in its LocalQueue and in its ClusterQueue, from 1;
	// nil: nobody says so.
	Position        *int              `json:"position"`
	ClusterPosition *int              `json:"clusterPosition"`
	Namespace       string            `json:"namespace"`
	Queue           string            `json:"queue"`    // its LocalQueue
	Resource        string            `json:"resource"` // its kind, as jobs.batch
	Name            string            `json:"name"`
	UID             string            `json:"uid"`
	Owner           string            `json:"owner"` // whose it is, by the history; "": that is not known
	Since           time.Time         `json:"since"`
	Requests        map[string]string `json:"requests"` // of all its pods together
	Starts          *wire.Starts      `json:"starts"`   // nil: there is too little to say
}

// hidden is a job that waits and that the caller may not see.
type hidden struct {
	Position *int `json:"position"` // in the queue that was asked for
	Hidden   bool `json:"hidden"`
}

// longestName bounds names and uids: longer ones are no object's.
const longestName = 253

func isName(text string) bool {
	return len(text) <= longestName && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// viewKey names what is told of a snapshot.
type viewKey struct {
	asked   queueRequest
	visible string
}

// view is what is told of a snapshot to all who ask for the same, and may see the same, which the tag names.
func (s sight) view(now *pending.Snapshot, q queueRequest, tag string) *pending.View {
	q.conflate = 0
	return now.View(viewKey{q, tag}, func() string {
		if q.name == "" {
			return reply.MustJSON(listed{s.list(now)})
		}
		return reply.MustJSON(s.one(now, q))
	})
}

// object is the queue that is asked for; nil: it may not be seen, or is not there.
func (s sight) object(now *pending.Snapshot, q queueRequest) *cluster.Object {
	kind, all := q.objects(now)
	return s.get(all, kind, q.namespace, q.name)
}

// one is a queue that may be seen, with the jobs that wait in it.
func (s sight) one(now *pending.Snapshot, q queueRequest) queueWithJobs {
	told := queueWithJobs{Jobs: []any{}}
	switch o := s.object(now, q); {
	case q.kind == volcanos:
		told.Queue = queues.VolcanoQueue(o)
		told.Waiting = max(told.Waiting, len(now.Places)) // since 1.10 Volcano does not write how many there are
	case q.namespace == "":
		told.Queue = queues.ClusterQueue(o)
	default:
		told.Queue = queues.LocalQueue(o, s.get(now.Whole, wholeKind, "", o.Path("spec.clusterQueue").Str))
	}
	for i := range now.Places {
		p := &now.Places[i]
		position := p.Whole
		if q.namespace != "" {
			if position = p.Local; p.Namespace != q.namespace || p.Queue != q.name {
				continue
			}
		}
		if len(told.Jobs) == q.limit {
			break
		}
		if j := p.Job; j == nil || !p.Known || !isName(j.Name) || !isName(j.UID) || !s.sees(p.Kind.String(), p.Namespace, j.Name) {
			told.Jobs = append(told.Jobs, hidden{number(position), true})
			continue
		}
		told.Jobs = append(told.Jobs, &waiting{
			Position: number(p.Local), ClusterPosition: number(p.Whole), Namespace: p.Namespace, Queue: p.Queue, Resource: p.Kind.String(),
			Name: p.Job.Name, UID: p.Job.UID, Owner: p.Owner, Since: p.Job.Since, Requests: p.Job.Requests(), Starts: startsOf(p),
		})
	}
	return told
}

// number is a place; nil: nobody says it.
func number(place int) *int {
	if place == 0 {
		return nil
	}
	return &place
}
