// Package wire has the forms in which jobs and transitions are told to whoever is outside: clients,
// and the receivers of webhooks (docs/wire.md, "History").
package wire

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// Job is a job as others are told it.
type Job struct {
	Cluster      string                 `json:"cluster"`
	Resource     string                 `json:"resource"`
	Namespace    string                 `json:"namespace"`
	NamespaceUID *string                `json:"namespaceUID"` // which namespace of that name; null: that is not known
	Name         string                 `json:"name"`
	UID          string                 `json:"uid"`
	Owner        string                 `json:"owner"`
	Queue        Queue                  `json:"queue"`
	State        jobs.State             `json:"state"`
	Since        jobs.Time              `json:"since"`
	Reason       string                 `json:"reason"`
	Message      string                 `json:"message"`
	Attempt      int                    `json:"attempt"`
	CreatedAt    jobs.Time              `json:"createdAt"`
	StartedAt    jobs.Time              `json:"startedAt"`
	EndedAt      jobs.Time              `json:"endedAt"`
	DeletedAt    jobs.Time              `json:"deletedAt"`
	Durations    map[jobs.State]float64 `json:"durations"` // in seconds
	Waited       *jobs.Elapsed          `json:"waited"`    // null: not known
	Ran          *jobs.Elapsed          `json:"ran"`       // null: it never was Running
	Requests     map[string]string      `json:"requests"`
	Reasons      []Reason               `json:"reasons"`  // why it waits or waited, the newest last
	Cause        *jobs.Cause            `json:"cause"`    // why it is in its state; null: that is not known, or its state has none
	Progress     *jobs.Progress         `json:"progress"` // null: not known
	// Parent is the job of which it is a part; null: of none that its reader may see. Children are
	// how many are parts of it, as far as they may see these; absent where nobody has counted.
	Parent   *Ref  `json:"parent"`
	Children *int  `json:"children,omitempty"`
	Log      *bool `json:"log,omitempty"`  // whether the end of its log is kept; only where jobs are asked for
	Spec     *bool `json:"spec,omitempty"` // whether its spec is kept; only where jobs are asked for
	// What its pods come to; null: that is not known.
	Hours       *Hours `json:"hours"`
	PodFailures *int   `json:"podFailures"`
	Preemptions *int   `json:"preemptions"`
	PodCount    *int64 `json:"podCount"`
	Pods        []Run  `json:"pods,omitzero"` // the newest first; nil where they are not told
}

// Reason is why a job waits, or waited.
type Reason struct {
	jobs.Reason
	Text string `json:"text"` // in one short sentence
}

// Queue is the queue of a job: its name, and of one that waits its place in it, if that is known.
type Queue struct {
	Name  string
	Place *Place
}

// Place is where a job stands in its queue.
type Place struct {
	Position        *int    `json:"position"`        // in the queue, from 1; null: nobody says it
	ClusterPosition *int    `json:"clusterPosition"` // among all queues that wait for the same quota
	Starts          *Starts `json:"starts"`          // null: there is too little to say
}

// Starts is within what a job is expected to start, and how often such intervals hold.
type Starts struct {
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Confidence float64   `json:"confidence"`
}

// MarshalJSON writes the name alone where there is no place.
func (q Queue) MarshalJSON() ([]byte, error) {
	if q.Place == nil {
		return json.Marshal(q.Name)
	}
	return json.Marshal(struct {
		Name string `json:"name"`
		*Place
	}{q.Name, q.Place})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (q *Queue) UnmarshalJSON(text []byte) error {
	if *q = (Queue{}); json.Unmarshal(text, &q.Name) == nil {
		return nil
	}
	named := struct {
		Name *string `json:"name"`
		*Place
	}{&q.Name, &Place{}}
	err := json.Unmarshal(text, &named)
	q.Place = named.Place
	return err
}

// Hours are resources times hours.
type Hours struct {
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"` // GiB
	GPU    float64 `json:"gpu"`
}

// Use says what the job has used, and how its pods have ended.
func (j *Job) Use(u jobs.Use) {
	j.Hours = &Hours{u.Hours.CPUs, u.Hours.Memory, u.Hours.GPUs}
	j.PodFailures, j.Preemptions, j.PodCount = &u.Failures, &u.Preemptions, &u.Runs
}

// JobOf returns a job of a cluster, by its name for people, and a kind, as it is at a time.
func JobOf(j *jobs.Job, cluster, resource string, now jobs.Time) Job {
	told := Job{
		Cluster: cluster, Resource: resource, Namespace: j.Namespace, NamespaceUID: known(j.NamespaceUID), Name: j.Name, UID: j.UID, Owner: j.Owner, Queue: Queue{Name: j.Queue},
		State: j.State, Since: j.Since, Reason: j.Reason, Message: j.Message, Attempt: j.Attempt,
		CreatedAt: j.Created, StartedAt: j.Started, EndedAt: j.Ended, DeletedAt: j.Deleted,
		Waited: j.Waited(), Ran: j.Ran(), Durations: make(map[jobs.State]float64, len(j.Spent)+1), Requests: j.Requests, Reasons: make([]Reason, len(j.Reasons)), Cause: j.Cause,
	}
	if j.Progress.Of != 0 {
		told.Progress = &j.Progress
	}
	if j.Parent.UID != "" {
		told.Parent = &Ref{j.Parent.Resource, j.Parent.Name, j.Parent.UID}
	}
	if told.Requests == nil {
		told.Requests = map[string]string{}
	}
	for i, r := range j.Reasons {
		told.Reasons[i] = Reason{r, r.Words()}
	}
	spent := func(state jobs.State, d time.Duration) {
		told.Durations[state] += d.Round(time.Millisecond).Seconds()
	}
	for state, d := range j.Spent {
		spent(state, d)
	}
	if !j.State.Ended() && j.State != jobs.Deleted {
		spent(j.State, time.Duration(max(0, now-j.Since))*time.Millisecond)
	}
	return told
}

func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Transition is a transition as others are told it.
type Transition struct {
	Seq             string      `json:"seq"`
	Cluster         string      `json:"cluster"`
	Resource        string      `json:"resource"`
	Namespace       string      `json:"namespace"`
	NamespaceUID    *string     `json:"namespaceUID"` // which namespace of that name; null: that is not known
	Name            string      `json:"name"`
	UID             string      `json:"uid"`
	ResourceVersion string      `json:"resourceVersion"`
	From            *jobs.State `json:"from"`
	To              jobs.State  `json:"to"`
	At              jobs.Time   `json:"at"`
	ObservedAt      jobs.Time   `json:"observedAt"`
	Late            bool        `json:"late"`
	Attempt         int         `json:"attempt"`
	Reason          string      `json:"reason"`
	Message         string      `json:"message"`
	Owner           string      `json:"owner"`
	Cause           *jobs.Cause `json:"cause"` // as Job's
}

// TransitionOf returns a transition of a cluster, by its name for people, and a kind.
func TransitionOf(t *jobs.Transition, cluster, resource string) Transition {
	told := Transition{
		Seq: strconv.FormatUint(t.Seq, 10), Cluster: cluster, Resource: resource, Namespace: t.Namespace, NamespaceUID: known(t.NamespaceUID), Name: t.Name, UID: t.UID,
		ResourceVersion: strconv.FormatUint(t.Version, 10), To: t.To, At: t.At, ObservedAt: t.Observed, Late: t.Late,
		Attempt: t.Attempt, Reason: t.Reason, Message: t.Message, Owner: t.Owner, Cause: t.Cause,
	}
	if t.From != "" {
		told.From = &t.From
	}
	return told
}

// Run is the life of a pod of a job as others are told it.
type Run struct {
	Seq          string            `json:"seq"`
	Cluster      string            `json:"cluster"`
	Namespace    string            `json:"namespace"`
	NamespaceUID *string           `json:"namespaceUID"` // which namespace of that name; null: that is not known
	Job          Ref               `json:"job"`
	Owner        string            `json:"owner"` // of the job
	Queue        string            `json:"queue"`
	Name         string            `json:"name"` // of the pod
	UID          string            `json:"uid"`
	Index        string            `json:"index"`
	Node         string            `json:"node"`
	CreatedAt    jobs.Time         `json:"createdAt"`
	ScheduledAt  jobs.Time         `json:"scheduledAt"`
	StartedAt    jobs.Time         `json:"startedAt"`
	EndedAt      jobs.Time         `json:"endedAt"`
	Late         bool              `json:"late"`
	Restarts     int64             `json:"restarts"`
	Reason       string            `json:"reason"`
	Message      string            `json:"message"`
	Container    string            `json:"container"`
	ExitCode     *int64            `json:"exitCode"`
	Signal       *int64            `json:"signal"`
	Requests     map[string]string `json:"requests"`
	Devices      []jobs.Device     `json:"devices"`
	Log          bool              `json:"log,omitempty"` // the end of the pod's own log is kept; told with its job
}

// Ref names a job.
type Ref struct {
	Resource string `json:"resource"`
	Name     string `json:"name"`
	UID      string `json:"uid"`
}

// RunOf returns a run of a cluster, by its name for people. Seq is the number of its last change,
// as its reader is told it.
func RunOf(r *store.Run, cluster, seq string) Run {
	told := Run{
		Seq: seq, Cluster: cluster, Namespace: r.Namespace, NamespaceUID: known(r.NamespaceUID), Job: Ref(r.Job), Owner: r.Owner, Queue: r.Queue, Name: r.Name, UID: r.UID,
		Index: r.Index, Node: r.Node, CreatedAt: r.Created, ScheduledAt: r.Scheduled, StartedAt: r.Started, EndedAt: r.Ended, Late: r.Late,
		Restarts: r.Restarts, Reason: r.Reason, Message: r.Message, Container: r.Container, ExitCode: r.ExitCode, Signal: r.Signal, Requests: r.Requests, Devices: r.Devices,
	}
	if told.Requests == nil {
		told.Requests = map[string]string{}
	}
	if told.Devices == nil {
		told.Devices = []jobs.Device{}
	}
	return told
}
