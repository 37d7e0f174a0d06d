package inbox

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/jobs/wire"
)

// Notification is a notification as its reader is told it (docs/wire.md, "Notifications").
type Notification struct {
	ID         string            `json:"id"`
	At         jobs.Time         `json:"at"`
	Kind       string            `json:"kind"` // the state, or Digest
	Title      string            `json:"title"`
	Transition json.RawMessage   `json:"transition"` // null of a digest
	Digest     []json.RawMessage `json:"digest"`
	More       int               `json:"more"` // how many further transitions a digest is about
	Silent     bool              `json:"silent"`
	ReadAt     jobs.Time         `json:"readAt"`
}

// digest is the body of a digest. What it is about may be visible in part.
type digest struct {
	Items []digested `json:"items"`
	More  []counted  `json:"more,omitempty"` // of what is not among the items
}

type digested struct {
	Cluster    string          `json:"cluster"` // identifies it
	Transition json.RawMessage `json:"transition"`
}

// counted is how many transitions to a state there are of a kind in a namespace.
type counted struct {
	Cluster      string `json:"cluster"`
	Resource     string `json:"resource"`
	Namespace    string `json:"namespace"`
	NamespaceUID string `json:"namespaceUID,omitempty"`
	State        string `json:"state"`
	N            int    `json:"n"`
}

// about is what of a transition is needed beside its text.
type about struct {
	Resource     string      `json:"resource"`
	Namespace    string      `json:"namespace"`
	NamespaceUID string      `json:"namespaceUID"` // null is ""
	Name         string      `json:"name"`
	To           jobs.State  `json:"to"`
	Reason       string      `json:"reason"`
	Cause        *jobs.Cause `json:"cause"` // null of what was written before there were causes
	At           jobs.Time   `json:"at"`
	Late         bool        `json:"late"`
}

// seen is when the job was seen to be where it is said to be; 0 if it was found out afterwards.
func (a about) seen() jobs.Time {
	if a.Late {
		return 0
	}
	return a.At
}

// notification is what of a row may be seen; ok is false if that is nothing.
func (r row) notification(sees Sees, seal Seal) (n Notification, ok bool) {
	n = Notification{ID: strconv.FormatUint(r.seq, 10), At: r.at, Kind: r.kind, Silent: r.silent, ReadAt: r.readAt, Digest: []json.RawMessage{}}
	if r.kind != kindDigest {
		var a about
		if !r.isSeen(sees) || json.Unmarshal([]byte(r.body), &a) != nil {
			return n, false
		}
		n.Transition, n.Title = told(r.job.Cluster, json.RawMessage(r.body), seal), a.title()
		return n, n.Transition != nil
	}
	counts := map[jobs.State]int{}
	r.visible(sees, func(item digested, a about) bool {
		n.Digest = append(n.Digest, told(item.Cluster, item.Transition, seal))
		counts[a.To]++
		return true
	}, func(c counted) bool {
		n.More += c.N
		counts[jobs.State(c.State)] += c.N
		return true
	})
	n.Title = titleOf(counts)
	return n, len(n.Digest)+n.More > 0
}

// told is a transition as a reader is told it, who may not see all of its kind: its number would
// tell how much else happens.
func told(cluster string, text json.RawMessage, seal Seal) json.RawMessage {
	var t wire.Transition
	if json.Unmarshal(text, &t) != nil {
		return nil
	}
	seq, err := strconv.ParseUint(t.Seq, 10, 64)
	if err != nil {
		return nil
	}
	t.Seq = seal(store.LogName{Cluster: cluster, Resource: t.Resource}, seq)
	text, _ = json.Marshal(t) // it was made of this
	return text
}

// jobOf is the job that a row is about, whose body says this.
func (r row) jobOf(a about) JobRef {
	p := r.job
	if p.NamespaceUID == "" {
		p.Seen = a.seen()
	}
	return p
}

// isSeen reports whether anything of a row may be seen.
func (r row) isSeen(sees Sees) (seen bool) {
	if r.kind != kindDigest {
		var a about
		if r.job.NamespaceUID == "" && json.Unmarshal([]byte(r.body), &a) != nil {
			return false
		}
		return sees(r.jobOf(a))
	}
	found := func() bool {
		seen = true
		return false
	}
	r.visible(sees, func(digested, about) bool { return found() }, func(counted) bool { return found() })
	return seen
}

// visible walks over what may be seen of a digest.
func (r row) visible(sees Sees, item func(digested, about) bool, more func(counted) bool) {
	var d digest
	if json.Unmarshal([]byte(r.body), &d) != nil {
		return
	}
	for _, i := range d.Items {
		var a about
		if json.Unmarshal(i.Transition, &a) == nil && sees(JobRef{i.Cluster, a.Resource, a.Namespace, a.Name, a.NamespaceUID, a.seen()}) && !item(i, a) {
			return
		}
	}
	for _, c := range d.More {
		if sees(JobRef{Cluster: c.Cluster, Resource: c.Resource, Namespace: c.Namespace, NamespaceUID: c.NamespaceUID}) && !more(c) {
			return
		}
	}
}

// verbs say what became of a job.
var verbs = map[jobs.State]string{
	jobs.Submitted: "was submitted", jobs.Queued: "is queued", jobs.Suspended: "is suspended", jobs.Pending: "is pending", jobs.Running: "is running",
	jobs.Retrying: "is being retried", jobs.Succeeded: "succeeded", jobs.Failed: "failed", jobs.Cancelled: "was cancelled", jobs.Deleted: "was deleted",
}

// title says in a line what a notification is about.
func (a about) title() string {
	title, why := a.Name+" "+verbs[a.To], a.Reason
	if a.Cause != nil {
		why = a.Cause.Text
	}
	if a.To == jobs.Queued && a.Cause != nil && a.Cause.Reason == jobs.GivenUp {
		return a.Name + " was " + why
	}
	if a.To == jobs.Cancelled { // the verb says as much
		why = strings.TrimPrefix(strings.TrimPrefix(why, "cancelled"), ": ")
	}
	if why != "" && a.To != jobs.Succeeded {
		title += ": " + why
	}
	return title
}

// participles are verbs for a number of jobs.
var participles = map[jobs.State]string{
	jobs.Submitted: "submitted", jobs.Queued: "queued", jobs.Suspended: "suspended", jobs.Pending: "pending", jobs.Running: "running",
	jobs.Retrying: "retried", jobs.Succeeded: "succeeded", jobs.Failed: "failed", jobs.Cancelled: "cancelled", jobs.Deleted: "deleted",
}

// titleOf says in a line what a digest is about, the ends of jobs first.
func titleOf(counts map[jobs.State]int) string {
	var parts []string
	for _, state := range []jobs.State{
		jobs.Failed, jobs.Succeeded, jobs.Cancelled, jobs.Retrying, jobs.Running, jobs.Pending, jobs.Queued, jobs.Suspended,
		jobs.Submitted, jobs.Deleted,
	} {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, participles[state]))
		}
	}
	return strings.Join(parts, ", ")
}
