package jobs

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Cause is why a job failed, is tried again, was ended on purpose, or waits again after it ran.
type Cause struct {
	Text      string `json:"text"`   // one short sentence
	Reason    string `json:"reason"` // one word: a run's, or the job's
	Container string `json:"container"`
	ExitCode  *int64 `json:"exitCode"`
	Signal    *int64 `json:"signal"`
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	Pods      int    `json:"pods"` // how many ended alike, of those that were there together; 0: no pod says it
}

// IsEnd reports whether the cause is how pods ended, and not why they could not begin.
func (c *Cause) IsEnd() bool {
	switch c.Reason {
	case OOMKilled, Evicted, Preempted, NodeLost, Deadline, Errored, Removed:
		return c.Pods > 0
	}
	return c.Pods > 0 && (c.ExitCode != nil || c.Signal != nil)
}

// Circumstances are what a job's object and other jobs say of a cause.
type Circumstances struct {
	Deadline time.Duration           // that the job's object sets; 0: none, or not known
	Evicted  Reason                  // why its queue has taken it back, and not let it in since, as that says now; zero: it says nothing
	Stays    bool                    // the job is in this state still
	Queues   bool                    // what queues say is read, so that a queue that says nothing had no pod's end as its reason
	NameOf   func(uid string) string // the job that has a uid, as namespace/name; "" if it is not known, or NameOf is nil
}

const (
	maxCause = 256 // bytes of its text
	maxWords = 120 // bytes of a stranger's words within it

	// A pod's end and what its job makes of it are told in two logs, which may be read in either order.
	causeSlack = 10_000
	// Failures that are so close to the last one are of one event. The first of them may have made the others.
	causeBurst = 3_000
)

// CauseOf is why a job is in its state; nil if it is in none that has a cause, or nobody says so.
// Runs are the job's. They may be told after the job's own state, and then it says more: it is a
// function of both, not of their order.
//
// What the job's controller decided by itself comes first: a deadline, an end on purpose, a
// preemption by its queue. Otherwise it is how a pod ended: the one that the job's own message
// names, else of those that failed last the one that ran out of memory or was taken away, else the
// first that failed. Then what keeps pods from beginning; then what the job says.
func CauseOf(j *Job, runs []*Run, c Circumstances) *Cause {
	if !j.HasCause() {
		return nil
	}
	var cause *Cause
	run := deciding(j, runs)
	switch {
	case j.State == Cancelled:
		cause = &Cause{Reason: "Cancelled", Text: said("cancelled", j.Message)}
	case j.State == Queued:
		if cause = dequeued(j, c); cause == nil && !c.Queues && run != nil && (run.Reason == Preempted || run.Reason == Evicted || run.Reason == NodeLost) {
			cause = run.cause(runs, j.Since+causeSlack)
		}
	case j.pastDeadline():
		cause = &Cause{Reason: Deadline, Text: "deadline exceeded"}
		if c.Deadline > 0 {
			cause.Text = "deadline of " + spoken(c.Deadline) + " exceeded"
		}
		if run != nil && run.Started == 0 && !run.failed() { // it never came to do what it had the time for
			cause.Text += ": " + run.sentence()
		}
	case run != nil:
		cause = run.cause(runs, j.Since+causeSlack)
		if j.Reason == "PodFailurePolicy" {
			cause.Text += " (podFailurePolicy)"
		}
		if j.isForEnds() && run.wasDeletedUnbound(j) {
			cause.Text, cause.Reason = said("a pod was deleted that no node had taken", run.Message), Removed
		}
	case j.Reason != "" || j.Message != "":
		cause = &Cause{Reason: j.Reason, Text: said(cmp.Or(j.Reason, "failed"), j.Message)}
	}
	if cause == nil {
		return nil
	}
	cause.Text, cause.Reason = bounded(plain(cause.Text), maxCause), Name(plain(cause.Reason))
	return cause
}

// HasCause reports whether the job's state is one that has a cause.
func (j *Job) HasCause() bool {
	switch j.State {
	case Failed, Retrying, Cancelled:
		return true
	}
	return j.State == Queued && j.begun()
}

// pastDeadline reports whether the job's controller ended it for its deadline.
func (j *Job) pastDeadline() bool {
	switch j.Reason {
	case "DeadlineExceeded", "TaskRunTimeout", "PipelineRunTimeout":
		return true
	}
	return strings.Contains(j.Message, "Max duration limit exceeded") // Argo has no reason for it
}

// dequeued is why a queue took a job back, as Kueue's Workload says; nil if it has not said so yet.
// The queue says so before it suspends the job; what it said before an earlier suspension is over.
func dequeued(j *Job, c Circumstances) *Cause {
	why := EvictionOf(j, c)
	switch {
	case why.Reason == "":
		return nil
	case why.Reason == Preempted:
		return &Cause{Reason: Preempted, Text: preemption(why.Message, c)}
	case isGivingUp(why):
		return causeOfGivingUp(why)
	}
	return &Cause{Reason: Evicted, Text: "evicted: " + evictions[why.Reason]}
}

// EvictionOf is why a queue took a job back that is Queued, in the queue's words; zero if it has not said so yet.
func EvictionOf(j *Job, c Circumstances) Reason {
	reasons := j.Reasons
	if c.Evicted.At <= j.Since+causeSlack { // else it is about what came after the job was in this state
		if c.Stays { // then it is about that, though it may have been long before: nobody may have recorded meanwhile
			c.Evicted.At = max(c.Evicted.At, j.Since-causeSlack)
		}
		reasons = append(slices.Clip(reasons), c.Evicted)
	}
	for _, why := range slices.Backward(reasons) {
		if why.Source != WorkloadSays || why.At < j.Since-causeSlack {
			continue
		}
		if why.Reason == Preempted || isGivingUp(why) || evictions[why.Reason] != "" {
			why.Reason, why.Message = text(why.Reason), text(why.Message)
			return why
		}
	}
	return Reason{}
}

// preemption is who preempted a job, if that is known, else what for, from what Kueue writes:
// "Preempted to accommodate a workload (UID: …, JobUID: …) due to prioritization in the
// ClusterQueue; preemptor path: …".
func preemption(message string, c Circumstances) string {
	if _, uid, ok := strings.Cut(message, "JobUID: "); ok && c.NameOf != nil {
		if uid, _, _ = strings.Cut(uid, ")"); c.NameOf(uid) != "" {
			return "preempted by " + c.NameOf(uid)
		}
	}
	_, why, _ := strings.Cut(message, " due to ")
	why, _, _ = strings.Cut(why, ";")
	return said("preempted", why)
}

// evictions are reasons other than preemption for which Kueue takes back what it had admitted.
var evictions = map[string]string{
	"PodsReadyTimeout": "its pods were not ready in time", "AdmissionCheck": "an admission check failed", "NodeFailures": "a node failed",
	"ClusterQueueStopped": "its queue was stopped", "LocalQueueStopped": "its queue was stopped", "InactiveWorkload": "its workload was deactivated",
}

// failed reports whether a run ended badly, or is about to: not because somebody deleted it, and it did not succeed.
func (r *Run) failed() bool {
	switch r.Reason {
	case "", Completed, Removed:
		return false
	}
	return r.Terminal() || r.Reason == "CrashLoopBackOff" || r.Reason == Evicted || r.Reason == Preempted || r.Reason == NodeLost
}

// EndedBadly reports whether a run has ended, and failed.
func (r *Run) EndedBadly() bool { return r.Terminal() && r.failed() }

// ended is when a run ended, or, of one that is about to, when it would have by now.
func (r *Run) ended(now Time) Time {
	if r.Terminal() {
		return r.Ended
	}
	return now
}

// deciding is the run that says why the job is in its state; nil if none does.
func deciding(j *Job, runs []*Run) *Run {
	before := slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool { return r.endsBehind(j) })
	if run := decidingOf(j, before); run != nil {
		return run
	}
	return decidingOf(j, runs) // its controller may have known before the API server did
}

// endsBehind reports whether the job was in its state before the run's end was certain. That is told
// by versions, which kinds of one cluster have in common: of what is read long after it happened,
// no time says it. Of containers that were started again, and of pods that never began, ends are
// not what is told.
func (r *Run) endsBehind(j *Job) bool {
	return r.endSeen() && r.EndVersion > j.Version && r.Restarts == 0 && (r.Started != 0 || r.Reason == Removed || r.failed())
}

// IsKnownFor reports whether the cause is how a pod ended, and it is certain that it ended before the job came to its state.
func (c *Cause) IsKnownFor(j *Job, runs []*Run) bool {
	return c.IsEnd() && slices.ContainsFunc(runs, func(r *Run) bool {
		return c.isOf(r) && r.endSeen() && r.EndVersion <= j.Version
	})
}

// isOf reports whether the cause is how a run ended, or another one that ended just so: some kinds give a pod's name again.
func (c *Cause) isOf(r *Run) bool {
	return c.Pod == r.Name && c.Node == r.Node && c.Reason == r.Reason && c.Container == r.Container && equal(c.ExitCode, r.ExitCode) && equal(c.Signal, r.Signal)
}

// TellsTheEndOf reports whether another cause is the end of a pod of which this one tells, too, however many ended alike.
func (c *Cause) TellsTheEndOf(other *Cause) bool {
	same := *other
	same.Text, same.Pods = c.Text, c.Pods
	return reflect.DeepEqual(&same, c)
}

func decidingOf(j *Job, runs []*Run) *Run {
	var failed, stuck, removed []*Run
	for _, r := range runs {
		switch {
		case r.cameAfter(j):
		case r.failed() && (r.Started != 0 || r.ExitCode != nil || r.Reason == Evicted || r.Reason == Preempted || r.Reason == NodeLost || r.Reason == Deadline):
			failed = append(failed, r)
		case r.Reason == Removed:
			removed = append(removed, r)
		case r.Reason != "" && r.Reason != Completed && r.Started == 0: // it cannot begin, or could not
			stuck = append(stuck, r)
		}
	}
	called := slices.DeleteFunc(slices.Clone(failed), func(r *Run) bool { return !r.isCalledIn(j.Message, j.Name) })
	if len(called) > 0 { // it does not matter which others were there with it; some kinds give a pod's name again
		return slices.MaxFunc(called, func(a, b *Run) int { return cmp.Compare(a.Created, b.Created) })
	}
	var last *Run
	if len(failed) > 0 {
		last = slices.MaxFunc(failed, func(a, b *Run) int { return cmp.Compare(a.ended(j.Since), b.ended(j.Since)) })
	}
	anew := func(r *Run) bool { return r.Scheduled > last.ended(j.Since) }
	if last == nil || j.State == Retrying && slices.ContainsFunc(removed, anew) { // what failed had been made anew, and that was deleted
		return missing(j, stuck, removed)
	}
	together := slices.DeleteFunc(failed, func(r *Run) bool {
		if j.Reason == "BackoffLimitExceeded" { // those before the last were forgiven
			return last.ended(j.Since)-r.ended(j.Since) > causeBurst
		}
		return r != last && !r.overlaps(last, j.Since) // one that ended as it began overlaps nothing, not even itself
	})
	named := func(r *Run) int {
		if r.isNamedIn(j.Message, j.Name) {
			return 0
		}
		return 1
	}
	return slices.MinFunc(together, func(a, b *Run) int {
		return cmp.Or(cmp.Compare(named(a), named(b)), cmp.Compare(weigh(a), weigh(b)), cmp.Compare(a.ended(j.Since), b.ended(j.Since)), cmp.Compare(a.Name, b.Name))
	})
}

// missing is the run for want of which the job is in its state, of those that could not begin, and
// those that somebody deleted; nil if there are none. Where a pod is missed that somebody deleted,
// one that still waits may not be why, and one that no node had taken before it was deleted itself
// is not: its job may have been told to have fewer.
func missing(j *Job, stuck, removed []*Run) *Run {
	all := slices.DeleteFunc(stuck, func(r *Run) bool {
		if len(removed) == 0 {
			return false
		}
		if r.waited(j) {
			return j.isForEnds()
		}
		return r.Scheduled == 0
	})
	for _, r := range removed {
		if r.EndVersion != EndUnseen { // else it was found gone, and nobody knows how it had ended
			all = append(all, r)
		}
	}
	var last Time
	for _, r := range all {
		last = max(last, r.ended(j.Since))
	}
	all = slices.DeleteFunc(all, func(r *Run) bool { return r.ended(j.Since) < last-causeBurst })
	slices.SortStableFunc(all, func(a, b *Run) int { return cmp.Or(cmp.Compare(weigh(a), weigh(b)), cmp.Compare(b.Created, a.Created)) })
	return append(all, nil)[0]
}

// cameAfter reports whether the run came, or ended, after the job came to its state.
func (r *Run) cameAfter(j *Job) bool {
	if r.endSeen() && r.EndVersion <= j.Version {
		return r.Created > j.Since+causeSlack // so their versions are not of one etcd
	}
	return r.ended(j.Since) > j.Since+causeSlack || r.Created > j.Since
}

// waited reports whether a run that never began still waited when the job came to its state.
func (r *Run) waited(j *Job) bool {
	if r.endSeen() {
		return r.EndVersion > j.Version
	}
	return r.ended(j.Since) >= j.Since
}

// wasDeletedUnbound reports whether the run ended before the job came to its state, though no node had
// taken it. A pod that is not bound ends by its deletion, whatever it waited for.
func (r *Run) wasDeletedUnbound(j *Job) bool {
	waited := r.Reason == "Unschedulable" || r.Reason == "SchedulingGated"
	return waited && r.Terminal() && r.Scheduled == 0 && r.endSeen() && r.EndVersion <= j.Version
}

// isForEnds reports whether the job can be in its state only since a pod of it ended, whatever other pods wait for.
func (j *Job) isForEnds() bool {
	switch j.Reason {
	case "BackoffLimitExceeded", "FailedIndexes", "MaxFailedIndexesExceeded":
		return true
	}
	return j.State == Retrying
}

// weigh orders ends by how much they explain: that a container failed may be for want of another pod.
func weigh(r *Run) int {
	switch r.Reason {
	case OOMKilled, Evicted, Preempted, NodeLost:
		return 0
	case Removed:
		return 2
	}
	return 1
}

// overlaps reports whether two runs were there at the same time: that they were bound is told more
// exactly than that they were made.
func (r *Run) overlaps(other *Run, now Time) bool {
	return cmp.Or(r.Scheduled, r.Created) < other.ended(now) && cmp.Or(other.Scheduled, other.Created) < r.ended(now)
}

// isLike reports whether two runs ended alike. Who is taken from a node may end by this signal or by that.
func (r *Run) isLike(other *Run) bool {
	taken := r.Reason == Evicted || r.Reason == Preempted || r.Reason == NodeLost
	return r.Reason == other.Reason && (taken || r.Container == other.Container && equal(r.ExitCode, other.ExitCode))
}

// isCalledIn reports whether a message names the pod itself.
func (r *Run) isCalledIn(message, job string) bool {
	return r.Name != job && slices.Contains(namesIn(message), r.Name)
}

// namesIn are the words of a message that may be names of objects.
func namesIn(message string) []string {
	return strings.FieldsFunc(message, func(c rune) bool {
		return !(c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z')
	})
}

// isNamedIn reports whether a message names the pod, or what made it: a part of the job that is
// called as the pod begins.
func (r *Run) isNamedIn(message, job string) bool {
	for _, word := range namesIn(message) {
		if word == r.Name && word != job || len(word) > len(job) && strings.HasPrefix(word, job) && strings.HasPrefix(r.Name, word+"-") {
			return true
		}
	}
	return false
}

// cause is how the run ended, and how many of those that were there with it had ended alike by a time.
func (r *Run) cause(runs []*Run, by Time) *Cause {
	cause := &Cause{
		Text: r.sentence(), Reason: r.Reason, Container: r.Container, ExitCode: r.ExitCode, Signal: r.Signal, Pod: r.Name, Node: r.Node, Pods: 1,
	}
	there, role := 1, r.role()
	for _, other := range runs {
		if other.UID == r.UID || other.role() != role || !r.overlaps(other, by) {
			continue
		}
		there++
		if r.isLike(other) {
			cause.Pods++
		}
	}
	if cause.Pods > 1 {
		switch {
		case role == "":
			role = "pods"
		case !strings.HasSuffix(role, "s"):
			role += "s"
		}
		cause.Text = fmt.Sprintf("%s; %d of %d %s likewise", bounded(cause.Text, maxCause-60), cause.Pods, there, bounded(role, 30))
	}
	return cause
}

// role is what the pod's index says beside numbers: of workers-1-0, workers.
func (r *Run) role() string { return strings.TrimRight(r.Index, "-0123456789") }

func equal(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// sentence says how the run ended, or why it cannot begin.
func (r *Run) sentence() string {
	who, on, code := cmp.Or(r.Container, "a pod"), "", ""
	if r.Node != "" {
		on = " on " + r.Node
	}
	switch {
	case r.ExitCode != nil:
		code = fmt.Sprintf(" (exit %d)", *r.ExitCode)
	case r.Signal != nil:
		code = fmt.Sprintf(" (signal %d)", *r.Signal)
	}
	switch r.Reason {
	case OOMKilled:
		return who + " was OOM-killed" + code + on
	case Errored:
		return who + " failed" + code + on
	case "CrashLoopBackOff":
		return fmt.Sprintf("%s failed%s%s, after %d restarts", who, code, on, r.Restarts)
	case Evicted:
		return said("evicted", pressure(r.Message)) + on
	case Preempted:
		return "preempted" + on + " for a pod of higher priority"
	case NodeLost:
		if strings.Contains(r.Message, "shutdown") {
			return "node " + cmp.Or(r.Node, "of a pod") + " was shut down"
		}
		return "node " + cmp.Or(r.Node, "of a pod") + " was lost"
	case Deadline:
		return "the deadline of a pod was exceeded" + on
	case Removed:
		return "a pod was deleted"
	case "Unschedulable":
		return said("no node takes a pod", r.Message)
	case "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
		return said("image cannot be pulled", r.Message)
	}
	if r.Started == 0 && r.Container != "" {
		return said(who+" cannot start: "+r.Reason, r.Message)
	}
	return said(r.Reason+on, r.Message)
}

// pressure is why a pod was evicted, in few words where kubelets use many.
func pressure(message string) string {
	if _, what, low := strings.Cut(message, "The node was low on resource: "); low {
		switch {
		case strings.HasPrefix(what, "memory"):
			return "node memory pressure"
		case strings.HasPrefix(what, "pids"):
			return "node PID pressure"
		case strings.HasPrefix(what, "ephemeral-storage"), strings.HasPrefix(what, "inodes"), strings.HasPrefix(what, "nodefs"), strings.HasPrefix(what, "imagefs"), strings.HasPrefix(what, "containerfs"):
			return "node disk pressure"
		}
	}
	if message == "Eviction API: evicting" {
		return "node drained"
	}
	return message
}

// said is what is said, with a stranger's words for it, of which the first line counts.
func said(what, words string) string {
	words, _, _ = strings.Cut(strings.TrimSpace(words), "\n")
	if words == "" {
		return what
	}
	if short := bounded(words, maxWords); len(short) < len(words) {
		words = short + "…"
	}
	return what + ": " + words
}

// spoken is a duration as people say it: 1 h 30 min, 15 s.
func spoken(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / unit.length; n > 0 && len(parts) < 2 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.name))
			d -= n * unit.length
		}
	}
	if len(parts) == 0 {
		return d.String()
	}
	return strings.Join(parts, " ")
}
