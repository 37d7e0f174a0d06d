package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What became of Jobs is derived here from a recording of their pods, and from when they were
// suspended, deleted and over, by none of the history's own code, and compared with what the
// history tells.
//
// Pods are the truth. But a history can tell no more than some version of the Job says, whose
// status its controller writes about once a second. So these, and nothing else, are allowed:
//
//  1. Running may be missing where no version of the Job has a ready pod, and Retrying where none says that a pod failed and no pod is
//     active. Each has to be there at the version that says so, and neither may be told where pods did not live it. A Job that is suspended and resumed before
//     its controller has looked has the status of before, which says that it runs.
//  2. An attempt has to be counted if a version of the Job lies between the last pod of the one before and its first pod, and says that no pod is
//     active, or that it is suspended; and if others say of both that a pod of theirs is active. Others may be counted, or not. A pod that succeeds while
//     the Job is suspended may not be kept.
//  3. Of a pod that ended by itself while it was being deleted, either may be told; of one that no node took, that, too.
//  4. A pod that succeeded as its controller was about to end it, since the Job failed, was suspended or was to have fewer pods, may be none that is done, as the Job says.
//  5. Why its queue took the Job back before the gateway was killed, or while it was away, may be missing, or be why it took the Job back again
//     meanwhile: that is what the queue says now. How a pod ended may not, whenever that is read.
//
// Nothing may be late: the API server still has what the gateway missed.

// podTruth is a pod's life.
type podTruth struct {
	uid, name, index, node string
	created                time.Time
	cpus                   float64
	made, bound, ran       moment
	deleted                moment // somebody asked for that
	ended                  moment
	reasons                []string // one of these is why
	exitCode               *int64
	last                   *corev1.Pod
}

// moment is when something happened; the zero moment is never.
type moment struct {
	number uint64
	at     time.Time
}

func (m moment) by(number uint64) bool { return m.number != 0 && m.number <= number }

func (p *podTruth) isRunning(at uint64) bool { return p.ran.by(at) && !p.ended.by(at) }

// endedBadly reports whether it certainly did; maybe whether it may have.
func (p *podTruth) endedBadly() (certainly, maybe bool) {
	bad := func(reason string) bool { return reason != "Completed" && reason != "Deleted" }
	if p.ended.number == 0 || p.bound.number == 0 {
		return false, false
	}
	return !slices.ContainsFunc(p.reasons, func(r string) bool { return !bad(r) }), slices.ContainsFunc(p.reasons, bad)
}

func truthOf(uid string, versions []version[*corev1.Pod]) *podTruth {
	first := versions[0].object
	p := &podTruth{uid: uid, name: first.Name, index: first.Annotations[batchv1.JobCompletionIndexAnnotation], created: first.CreationTimestamp.Time}
	p.cpus = first.Spec.Containers[0].Resources.Requests.Cpu().AsApproximateFloat64()
	for _, v := range versions {
		now, pod := moment{v.number, v.at}, v.object
		happened := func(m *moment, did bool) {
			if m.number == 0 && did {
				*m = now
			}
		}
		if p.ended.number != 0 {
			break
		}
		p.node, p.last = pod.Spec.NodeName, pod
		happened(&p.made, true)
		happened(&p.bound, pod.Spec.NodeName != "")
		happened(&p.ran, len(pod.Status.ContainerStatuses) > 0 && (pod.Status.ContainerStatuses[0].State.Running != nil || pod.Status.ContainerStatuses[0].State.Terminated != nil))
		happened(&p.deleted, pod.DeletionTimestamp != nil)
		happened(&p.ended, v.deleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
	}
	if p.ended.number != 0 {
		p.explain()
	}
	return p
}

// explain says why a pod ended.
func (p *podTruth) explain() {
	var ended *corev1.ContainerStateTerminated
	if len(p.last.Status.ContainerStatuses) > 0 {
		ended = p.last.Status.ContainerStatuses[0].State.Terminated
	}
	if ended != nil {
		p.exitCode = new(int64(ended.ExitCode))
	}
	disrupted, unscheduled := "", ""
	for _, c := range p.last.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			unscheduled = c.Reason
		}
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			disrupted = map[string]string{"EvictionByEvictionAPI": "Evicted", "TerminationByKubelet": "Evicted", "PreemptionByScheduler": "Preempted"}[c.Reason]
		}
	}
	asked := p.deleted.number != 0
	switch {
	case p.last.Status.Phase == corev1.PodSucceeded:
		p.reasons = []string{"Completed"}
	case ended != nil && ended.Reason == "OOMKilled":
		p.reasons = []string{"OOMKilled"}
	case disrupted != "":
		p.reasons = []string{disrupted}
	case asked && ended != nil && ended.ExitCode != stopped:
		p.reasons = []string{"Deleted", "Error"}
	case p.bound.number == 0 && unscheduled != "":
		p.reasons = []string{"Deleted", unscheduled}
	case asked || ended == nil:
		p.reasons = []string{"Deleted"}
	default:
		p.reasons = []string{"Error"}
	}
}

// stopped is the exit code of what was asked to end.
const stopped = 143

// told is what the history tells of a Job.
type toldLife struct {
	job         toldJob
	transitions []toldTransition // the oldest first
	runs        map[string]toldRun
}

type toldJob struct {
	UID, Name, State                   string
	Attempt                            int
	Cause                              *toldCause
	Progress                           *struct{ Done, Of int64 }
	Hours                              *struct{ CPU, Memory, GPU float64 }
	PodFailures, Preemptions, PodCount *int
}

type toldCause struct {
	Text, Reason, Pod, Node string
	ExitCode                *int64
}

type toldTransition struct {
	Seq, UID, ResourceVersion, To, Reason, Message string
	From                                           *string
	Late                                           bool
	Attempt                                        int
	At                                             time.Time
	Cause                                          *toldCause
	number                                         uint64
}

// gaveUp reports whether the transition says that the Job's queue gave it up while it waited, of
// which no version of the Job says anything.
func (t toldTransition) gaveUp() bool {
	return t.To == "Queued" && t.From != nil && *t.From == "Queued" && t.Cause != nil && t.Cause.Reason == "Deactivated"
}

type toldRun struct {
	UID, Name, Index, Node, Reason, Container string
	Job                                       struct{ UID string }
	CreatedAt                                 time.Time
	ScheduledAt, StartedAt, EndedAt           *time.Time
	Late                                      bool
	Restarts                                  int64
	ExitCode                                  *int64
}

// oracle compares a Job with what is told of it.
type oracle struct {
	name  string
	of    *recordedJob
	told  toldLife
	pods  []*podTruth // by when they were made
	away  uint64      // of transitions up to here, what a queue said may be missing
	wrong []error
	// skew is by how much each time that is told of a pod is later than when the test was told.
	skew []time.Duration
}

func (o *oracle) errorf(format string, args ...any) {
	o.wrong = append(o.wrong, fmt.Errorf(format, args...))
}

// check returns everything in which the history differs.
func (o *oracle) check() error {
	o.readPods()
	o.checkChain()
	o.checkStates()
	o.checkAttempts()
	o.checkRuns()
	o.checkSums()
	o.checkCauses()
	if len(o.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w\n%s", o.name, errors.Join(o.wrong...), o.describe())
}

func (o *oracle) readPods() {
	for uid, versions := range o.of.pods {
		o.pods = append(o.pods, truthOf(uid, versions))
	}
	slices.SortFunc(o.pods, func(a, b *podTruth) int { return cmp.Compare(a.made.number, b.made.number) })
}

// checkChain checks that each transition follows on the one before, at a version of the Job, in time.
func (o *oracle) checkChain() {
	from, last := "", uint64(0)
	for _, t := range o.told.transitions {
		was := ""
		if t.From != nil {
			was = *t.From
		}
		if t.gaveUp() {
			if was != from || !slices.ContainsFunc(o.of.workloads, func(v version[*unstructured.Unstructured]) bool {
				return v.number == t.number && isGivenUp(v.object)
			}) {
				o.errorf("at %d it is told, after %s, that its queue gave it up, and no Workload says so", t.number, from)
			}
			continue
		}
		if was != from || t.number <= last {
			o.errorf("%s → %s at %d does not follow %s at %d", was, t.To, t.number, from, last)
		}
		if t.Late {
			o.errorf("%s is late", t.To)
		}
		if !slices.ContainsFunc(o.of.versions, func(v version[*batchv1.Job]) bool { return v.number == t.number }) {
			o.errorf("%s is at %d, which is no version of it", t.To, t.number)
		}
		from, last = t.To, t.number
	}
	if o.told.job.State != from {
		o.errorf("it is %s, and its last transition is to %s", o.told.job.State, from)
	}
}

// at is the state that is told at a version, and since which one.
func (o *oracle) at(number uint64) (state string, since uint64) {
	for _, t := range o.told.transitions {
		if t.number <= number && !t.gaveUp() {
			state, since = t.To, t.number
		}
	}
	return state, since
}

// checkStates goes through the versions of the Job.
func (o *oracle) checkStates() {
	held := "Suspended"
	if o.of.versions[0].object.Labels["kueue.x-k8s.io/queue-name"] != "" {
		held = "Queued"
	}
	var letIn uint64 // the last version at which it was suspended
	var failures int
	var ranAs batchv1.JobStatus // when it was last Running, and pods ran
	previous := ""
	for _, v := range o.of.versions {
		state, since := o.at(v.number)
		want := func(states ...string) {
			if !slices.Contains(states, state) {
				o.errorf("at %d it is %s rather than %s", v.number, cmp.Or(state, "nothing"), strings.Join(states, " or "))
			}
		}
		job, is := v.object, conditionsOf(v.object)
		failed := int(job.Status.Failed)
		if uncounted := job.Status.UncountedTerminatedPods; uncounted != nil {
			failed += len(uncounted.Failed)
		}
		switch {
		case v.deleted:
			want("Deleted")
		case is[batchv1.JobComplete]:
			want("Succeeded")
		case is[batchv1.JobFailed]:
			want("Failed")
		case job.DeletionTimestamp != nil:
			want(previous)
		case *job.Spec.Suspend:
			want(held)
			letIn = v.number
		case is[batchv1.JobFailureTarget], is[batchv1.JobSuccessCriteriaMet]:
			want(previous)
		default:
			ran := slices.ContainsFunc(o.pods, func(p *podTruth) bool { return p.ran.by(v.number) && !p.ended.by(letIn) })
			ready := job.Status.Ready != nil && *job.Status.Ready > 0
			switch {
			case ready && ran:
				want("Running")
			case job.Status.Active == 0 && failed > failures && *job.Spec.Parallelism > 0:
				want("Retrying")
			case previous == "Running" || previous == "Retrying":
				want("Running", "Retrying")
			case previous == "Pending" || job.Status.Active > 0:
				want("Pending", "Running", "Retrying")
			case previous == held:
				want(held, "Pending", "Running", "Retrying")
			default:
				want("Submitted", "Pending", "Running", "Retrying")
			}
			if state == "Running" && ran {
				ranAs = job.Status
			}
			// A Job that was suspended and resumed before its controller looked has the status that it had: it is Running again by that,
			// and stays so for as long as the controller says that pods are active, as between two completions.
			if state == "Running" && !ran && (since == v.number || job.Status.Active == 0) && (ranAs.Active == 0 || !equality.Semantic.DeepEqual(job.Status, ranAs)) {
				o.errorf("at %d it is Running, and no pod of it ran since %d", v.number, letIn)
			}
			if state == "Retrying" && since == v.number {
				o.checkRetrying(v.number)
			}
		}
		failures = max(failures, failed)
		previous = state
	}
}

// checkRetrying checks that something had ended otherwise than well, and that nothing ran at some moment since.
func (o *oracle) checkRetrying(number uint64) {
	for _, p := range o.pods {
		if !p.ended.by(number) || slices.Contains(p.reasons, "Completed") {
			continue
		}
		// From that end on, at each end until the version.
		for _, q := range o.pods {
			if m := q.ended.number; q.ended.by(number) && m >= p.ended.number && !slices.ContainsFunc(o.pods, func(r *podTruth) bool { return r.isRunning(m) }) {
				return
			}
		}
	}
	// A pod that is being deleted is no more of use, before it is gone.
	if slices.ContainsFunc(o.pods, func(p *podTruth) bool { return p.deleted.by(number) }) {
		return
	}
	o.errorf("at %d it is Retrying, and pods of it ran all the time", number)
}

// starts are the first pods of attempts after the first one: all begins anew, when a pod is made
// while none is there, and none has succeeded for good.
func (o *oracle) starts(isKept func(*podTruth) bool) (starts []int) {
	for i, p := range o.pods {
		if i > 0 && !slices.ContainsFunc(o.pods[:i], func(q *podTruth) bool {
			over := q.ended
			if q.deleted.number != 0 {
				over = q.deleted
			}
			return !over.by(p.made.number) || slices.Contains(q.reasons, "Completed") && isKept(q)
		}) {
			starts = append(starts, i)
		}
	}
	return starts
}

// isSuspended reports whether the Job was suspended at that time.
func (o *oracle) isSuspended(at uint64) (is bool) {
	for _, v := range o.of.versions {
		if v.number <= at {
			is = *v.object.Spec.Suspend
		}
	}
	return is
}

// checkAttempts counts starts of all the work.
func (o *oracle) checkAttempts() {
	starts := o.starts(func(*podTruth) bool { return true })
	least, most := 1, 1+len(o.starts(func(p *podTruth) bool { return !o.isSuspended(p.ended.number) }))
	says := func(after, before uint64, what func(*batchv1.Job) bool) bool {
		return slices.ContainsFunc(o.of.versions, func(v version[*batchv1.Job]) bool {
			return v.number > after && v.number < before && v.object.DeletionTimestamp == nil && what(v.object)
		})
	}
	for n, i := range starts {
		began, ended, next := uint64(0), uint64(0), uint64(math.MaxUint64)
		if n > 0 {
			began = o.pods[starts[n-1]].made.number
		}
		for _, q := range o.pods[:i] {
			ended = max(ended, q.ended.number)
		}
		if n+1 < len(starts) {
			next = o.pods[starts[n+1]].made.number
		}
		made := o.pods[i].made.number
		if says(began, made, func(job *batchv1.Job) bool { return job.Status.Active > 0 }) &&
			says(ended, made, func(job *batchv1.Job) bool { return job.Status.Active == 0 || *job.Spec.Suspend }) &&
			says(made, next, func(job *batchv1.Job) bool {
				return job.Status.Active > 0 && !*job.Spec.Suspend
			}) {
			least++
		}
	}
	if n := o.told.job.Attempt; n < least || n > most {
		o.errorf("it is told as %d attempts, and had %d to %d", n, least, most)
	}
}

// checkRuns compares the runs with the pods, each once.
func (o *oracle) checkRuns() {
	if len(o.told.runs) != len(o.pods) {
		o.errorf("%d runs of %d pods are told", len(o.told.runs), len(o.pods))
	}
	for _, p := range o.pods {
		r, ok := o.told.runs[p.uid]
		if !ok {
			o.errorf("no run of %s is told", p.name)
			continue
		}
		if r.Late || r.Name != p.name || r.Index != p.index || r.Node != p.node || r.Restarts != 0 || !r.CreatedAt.Equal(p.created) {
			o.errorf("%s is told as %+v", p.name, r)
		}
		if p.ended.number != 0 && !slices.Contains(p.reasons, r.Reason) {
			o.errorf("%s ended by %q, and is told to have by %q", p.name, p.reasons, r.Reason)
		}
		if (r.ExitCode == nil) != (p.exitCode == nil) || r.ExitCode != nil && *r.ExitCode != *p.exitCode {
			o.errorf("%s ended with %s, and is told to have with %s", p.name, number(p.exitCode), number(r.ExitCode))
		}
		for what, times := range map[string]struct {
			told *time.Time
			was  moment
		}{"bound": {r.ScheduledAt, p.bound}, "started": {r.StartedAt, p.ran}, "ended": {r.EndedAt, p.ended}} {
			if (times.told == nil) != (times.was.number == 0) {
				o.errorf("when %s was %s is told as %v, and was at %v", p.name, what, times.told, times.was)
			} else if times.told != nil && what != "started" {
				o.skew = append(o.skew, times.told.Sub(times.was.at))
			}
		}
	}
}

func number(n *int64) string {
	if n == nil {
		return "nothing"
	}
	return fmt.Sprint(*n)
}

// checkSums checks what pods come to.
func (o *oracle) checkSums() {
	failures, preemptions, hours, succeeded, certainly := 0, 0, 0.0, map[string]bool{}, map[string]bool{}
	for _, p := range o.pods {
		r := o.told.runs[p.uid]
		if bad, maybe := p.endedBadly(); p.bound.number != 0 && (bad || maybe && r.Reason != "Deleted") {
			failures++
		}
		if p.bound.number != 0 && p.reasons != nil && p.reasons[0] == "Preempted" {
			preemptions++
		}
		if r.ScheduledAt != nil && r.EndedAt != nil {
			hours += p.cpus * r.EndedAt.Sub(*r.ScheduledAt).Hours()
		}
		if slices.Contains(p.reasons, "Completed") {
			of := cmp.Or(p.index, p.uid)
			succeeded[of] = true
			if p.deleted.number == 0 && !o.isSuspended(p.ended.number) {
				certainly[of] = true
			}
		}
	}
	j := o.told.job
	if j.Hours == nil || j.PodFailures == nil || j.Preemptions == nil || j.PodCount == nil {
		o.errorf("it is not known what it used: %+v", j)
		return
	}
	if *j.PodFailures != failures || *j.Preemptions != preemptions || *j.PodCount != len(o.pods) {
		o.errorf("%d pods, of which %d failed, of which %d were preempted, are told as %d, %d and %d", len(o.pods), failures, preemptions, *j.PodCount, *j.PodFailures, *j.Preemptions)
	}
	if math.Abs(j.Hours.CPU-hours) > 1e-6 {
		o.errorf("%f CPU hours are told, and its runs come to %f", j.Hours.CPU, hours)
	}
	if last := o.of.versions[len(o.of.versions)-1].object; isOver(last) && last.Spec.Completions != nil {
		done, says := len(succeeded), int(last.Status.Succeeded)
		if is := conditionsOf(last); says >= len(certainly) || is[batchv1.JobFailed] {
			done = min(done, says)
		}
		if j.Progress == nil || int(j.Progress.Done) != done || j.Progress.Of != int64(*last.Spec.Completions) {
			o.errorf("%d of %d are done, and it tells %+v", done, *last.Spec.Completions, j.Progress)
		}
	}
}

// checkCauses checks why the Job came to each state.
func (o *oracle) checkCauses() {
	began := false
	for _, t := range o.told.transitions {
		switch t.To {
		case "Pending", "Running":
			began = true
		case "Failed", "Retrying":
			o.checkFailure(t)
		case "Queued":
			if began && !t.gaveUp() {
				o.checkTakenBack(t)
			}
		}
		if (t.To == "Succeeded" || t.To == "Pending" || t.To == "Running") && t.Cause != nil {
			o.errorf("%s has a cause: %+v", t.To, *t.Cause)
		}
	}
}

// checkFailure checks why it failed, or is tried again: its deadline, else one of its pods that
// ended badly, else one that was deleted.
func (o *oracle) checkFailure(t toldTransition) {
	if t.Cause == nil {
		o.errorf("why it is %s at %d is not told", t.To, t.number)
		return
	}
	i := slices.IndexFunc(o.of.versions, func(v version[*batchv1.Job]) bool { return v.number == t.number })
	if i < 0 { // checkChain says so
		return
	}
	job := o.of.versions[i].object
	message := ""
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed {
			message = c.Message
			if c.Reason == batchv1.JobReasonDeadlineExceeded {
				if t.Cause.Reason != "Deadline" {
					o.errorf("it was past its deadline, and %+v is told", *t.Cause)
				}
				return
			}
		}
	}
	var bad, removed []*podTruth
	for _, p := range o.pods {
		if !p.ended.by(t.number) && !p.deleted.by(t.number) {
			continue
		}
		if _, maybe := p.endedBadly(); maybe {
			bad = append(bad, p)
		} else if slices.Contains(p.reasons, "Deleted") {
			removed = append(removed, p)
		}
	}
	name := t.Cause.Pod
	isNamed := func(p *podTruth) bool { return p.name == name }
	switch {
	case slices.ContainsFunc(removed, isNamed) && (len(bad) == 0 || t.To == "Retrying"):
		if t.Cause.Reason != "Deleted" {
			o.errorf("%s was deleted, and %+v is told", name, *t.Cause)
		}
		return
	case !slices.ContainsFunc(bad, isNamed):
		o.errorf("for %s %+v is told, which is none of the pods that ended badly by %d", t.To, *t.Cause, t.number)
		return
	}
	p := bad[slices.IndexFunc(bad, isNamed)]
	if !slices.Contains(p.reasons, t.Cause.Reason) || t.Cause.Node != p.node || number(t.Cause.ExitCode) != number(p.exitCode) {
		o.errorf("%s ended by %q with %s on %s, and %+v is told", name, p.reasons, number(p.exitCode), p.node, *t.Cause)
	}
	if _, named, ok := strings.Cut(message, "/"); ok && strings.HasPrefix(message, "Container ") {
		if named, _, _ = strings.Cut(named, " "); named != name {
			o.errorf("its policy names %s, and %+v is told", named, *t.Cause)
		}
		return
	}
	last := slices.MaxFunc(bad, func(a, b *podTruth) int { return cmp.Compare(a.ended.number, b.ended.number) })
	if certainly, _ := last.endedBadly(); certainly && last != p && !o.hadPodsTogether() {
		o.errorf("%s ended badly last, and %+v is told", last.name, *t.Cause)
	}
}

// hadPodsTogether reports whether a pod was made while another one was there. The first of such
// pods that ends may make the others end.
func (o *oracle) hadPodsTogether() bool {
	for i, p := range o.pods {
		if slices.ContainsFunc(o.pods[:i], func(q *podTruth) bool { return !q.ended.by(p.made.number) }) {
			return true
		}
	}
	return false
}

// checkTakenBack checks why Kueue took it back: what its Workload said last before.
func (o *oracle) checkTakenBack(t toldTransition) {
	want, later := "", false
	for _, w := range o.of.workloads {
		if w.number > t.number {
			later = later || t.Cause != nil && t.Cause.Reason == evictedFor(w.object)
			continue
		}
		want = evictedFor(w.object)
	}
	switch {
	case later && t.number <= o.away:
	case want == "", t.Cause == nil && t.number <= o.away:
	case t.Cause == nil:
		o.errorf("its queue took it back at %d for %s, and nothing is told", t.number, want)
	case want == "Deactivated" && t.Cause.Reason != "Deactivated", want == "Preempted" && t.Cause.Reason != "Preempted":
		o.errorf("its queue took it back at %d for %s, and %+v is told", t.number, want, *t.Cause)
	}
}

// evictedFor is for what a Workload is evicted; "" if it is not.
func evictedFor(w *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(w.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Evicted" && c["status"] == "True" {
			reason, _ := c["reason"].(string)
			return reason
		}
	}
	return ""
}

// isGivenUp reports whether a Workload is not to be let in any more.
func isGivenUp(w *unstructured.Unstructured) bool {
	active, there, err := unstructured.NestedBool(w.Object, "spec", "active")
	return err == nil && there && !active
}

// describe is what there was, and what is told.
func (o *oracle) describe() string {
	var b strings.Builder
	type line struct {
		number uint64
		text   string
	}
	var lines []line
	add := func(number uint64, format string, args ...any) {
		if number != 0 {
			lines = append(lines, line{number, fmt.Sprintf(format, args...)})
		}
	}
	for _, v := range o.of.versions {
		s := v.object.Status
		ready, terminating, uncounted := int32(0), int32(0), 0
		if s.Ready != nil {
			ready = *s.Ready
		}
		if s.Terminating != nil {
			terminating = *s.Terminating
		}
		if s.UncountedTerminatedPods != nil {
			uncounted = len(s.UncountedTerminatedPods.Failed)
		}
		var conditions []string
		for _, c := range s.Conditions {
			if c.Status == corev1.ConditionTrue {
				conditions = append(conditions, string(c.Type)+" "+c.Reason)
			}
		}
		add(v.number, "job: suspend %t parallelism %d; active %d ready %d terminating %d succeeded %d failed %d (+%d) %q, deleting %t, gone %t", *v.object.Spec.Suspend, *v.object.Spec.Parallelism,
			s.Active, ready, terminating, s.Succeeded, s.Failed, uncounted, conditions, v.object.DeletionTimestamp != nil, v.deleted)
	}
	for _, p := range o.pods {
		add(p.made.number, "  pod %s made", p.name)
		add(p.bound.number, "  pod %s bound", p.name)
		add(p.ran.number, "  pod %s runs", p.name)
		add(p.deleted.number, "  pod %s to be deleted", p.name)
		add(p.ended.number, "  pod %s ended: %q", p.name, p.reasons)
	}
	for _, w := range o.of.workloads {
		add(w.number, "  workload %s given up %t, evicted for %q, gone %t", w.object.GetName(), isGivenUp(w.object), evictedFor(w.object), w.deleted)
	}
	for _, t := range o.told.transitions {
		cause := ""
		if t.Cause != nil {
			cause = t.Cause.Reason + " " + t.Cause.Text
		}
		add(t.number, "TOLD %s, attempt %d, %s %s; cause %s", t.To, t.Attempt, t.Reason, t.Message, cause)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.number, b.number) })
	for _, l := range lines {
		fmt.Fprintf(&b, "  %d %s\n", l.number, l.text)
	}
	return b.String()
}
