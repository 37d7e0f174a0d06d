package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedbatch "k8s.io/client-go/kubernetes/typed/batch/v1"
)

// driver submits Jobs of all sorts, does to them what people do, and is the kubelet of their pods:
// kwok begins these, and the driver ends them. What it does, and in which order for each Job, comes
// from a seed.
type driver struct {
	*stage
	t         *testing.T
	namespace string
	jobs      typedbatch.JobInterface
	recording *recording
	random    *rand.Rand
	kubelet   sync.WaitGroup // pods that are to be ended

	mu    sync.Mutex
	lives map[string]*life // by the Job's name
	pods  map[types.UID]*kubeletPod
}

// kubeletPod is what the kubelet knows of a pod.
type kubeletPod struct {
	begun, stopping bool // its end is decided; it was told to end
	ended           bool // it was written that it has ended, for good
}

// life is what is to become of a Job.
type life struct {
	job    *batchv1.Job
	uid    string
	acts   []act
	random *rand.Rand // of its pods' fates
	doomed bool       // most of its pods fail
}

// act is what somebody does to a Job.
type act struct {
	after time.Duration
	do    string
}

// invent invents a life from a seed.
func (d *driver) invent(name string) *life {
	random := rand.New(rand.NewPCG(d.random.Uint64(), 0))
	l := &life{random: random, doomed: random.IntN(8) == 0}
	one := func(of ...int32) *int32 { return new(of[random.IntN(len(of))]) }
	cpu := []string{"500m", "1", "2"}[random.IntN(3)]
	off := false
	l.job = &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: d.namespace, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: batchv1.JobSpec{
			Parallelism: one(1, 1, 1, 2, 3), BackoffLimit: one(0, 0, 1, 1, 2),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"devcluster.kubecast.io/run-seconds": "86400"}}, // until the driver ends it
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &off, TerminationGracePeriodSeconds: new(int64(1)),
					Containers: []corev1.Container{{Name: "trainer", Image: "registry.example.org/train:1", Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi")},
					}}},
				},
			},
		},
	}
	spec := &l.job.Spec
	switch random.IntN(4) {
	case 0: // one after another
		spec.Completions = new(*spec.Parallelism + random.Int32N(3))
	case 1:
		spec.Completions = new(*spec.Parallelism + random.Int32N(2))
		spec.CompletionMode = new(batchv1.IndexedCompletion)
	default:
		spec.Completions = new(*spec.Parallelism)
	}
	switch random.IntN(6) {
	case 0:
		spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
			{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
			{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{hopeless}}},
		}}
	case 1:
		spec.ActiveDeadlineSeconds = new(2 + random.Int64N(5))
	case 2:
		spec.TTLSecondsAfterFinished = new(random.Int32N(3))
	}
	after := func() time.Duration { return time.Duration(300+random.IntN(4000)) * time.Millisecond }
	queued := random.IntN(3) > 0
	if queued {
		l.job.Labels["kueue.x-k8s.io/queue-name"] = "lives"
		l.job.Labels["kueue.x-k8s.io/priority-class"] = []string{"low", "low", "high"}[random.IntN(3)]
		spec.Suspend = new(true)
	} else if random.IntN(6) == 0 { // there is one license, which the urgent take from others
		spec.Template.Spec.Containers[0].Resources.Requests["devcluster.kubecast.io/license"] = resource.MustParse("1")
		spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"devcluster.kubecast.io/license": resource.MustParse("1")}
		if random.IntN(2) == 0 {
			spec.Template.Spec.PriorityClassName = "urgent"
		}
	}
	switch n := random.IntN(12); {
	case n == 0:
		l.acts = []act{{after(), "delete"}}
	case n == 1 && queued:
		l.acts = []act{{after(), "deactivate"}, {after(), "activate"}}
	case n == 2 && queued:
		l.acts = []act{{after(), "deactivate"}, {after(), "delete"}}
	case n <= 2:
		l.acts = []act{{after(), "suspend"}, {after(), "resume"}}
	case n == 3 && !queued:
		spec.Suspend = new(true)
		l.acts = []act{{after(), "resume"}}
	case n == 4 && !queued && spec.CompletionMode == nil:
		l.acts = []act{{after(), "grow"}, {after(), "shrink"}}
	}
	if queued { // a Job that Kueue manages is suspended by Kueue alone
		for i := range l.acts {
			switch l.acts[i].do {
			case "suspend":
				l.acts[i].do = "deactivate"
			case "resume":
				l.acts[i].do = "activate"
			}
		}
	}
	return l
}

// hopeless is the exit code with which a podFailurePolicy has a job fail.
const hopeless = 42

// live submits a Job, does to it what is to be done, and returns when it is over: it has ended, or is gone.
func (d *driver) live(ctx context.Context, l *life) error {
	d.mu.Lock()
	d.lives[l.job.Name] = l
	d.mu.Unlock()
	made, err := d.jobs.Create(ctx, l.job, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	l.uid = string(made.UID)
	for _, act := range l.acts {
		if err := pause(ctx, act.after); err != nil {
			return err
		}
		if err := d.act(ctx, l, act.do); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s of %s: %w", act.do, l.job.Name, err)
		}
	}
	for {
		job, there := d.recording.newest(l.uid)
		if job != nil && (!there || isOver(job) && job.Spec.TTLSecondsAfterFinished == nil) {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%s: %w; suspended %t, %+v", l.job.Name, err, job != nil && *job.Spec.Suspend, l.acts)
		}
	}
}

func isOver(job *batchv1.Job) bool {
	is := conditionsOf(job)
	return is[batchv1.JobComplete] || is[batchv1.JobFailed]
}

func (d *driver) act(ctx context.Context, l *life, do string) error {
	patch := func(text string) error {
		_, err := d.jobs.Patch(ctx, l.job.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		if apierrors.IsInvalid(err) { // it has ended
			return nil
		}
		return err
	}
	switch do {
	case "suspend":
		return patch(`{"spec":{"suspend":true}}`)
	case "resume":
		return patch(`{"spec":{"suspend":false}}`)
	case "grow":
		return patch(fmt.Sprintf(`{"spec":{"parallelism":%d}}`, *l.job.Spec.Parallelism+2))
	case "shrink":
		return patch(`{"spec":{"parallelism":1}}`)
	case "delete":
		return d.jobs.Delete(ctx, l.job.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground), Preconditions: metav1.NewUIDPreconditions(l.uid)})
	case "activate", "deactivate":
		for {
			if job, there := d.recording.newest(l.uid); job != nil && (!there || isOver(job)) {
				return nil
			}
			if workload := d.recording.workload(l.uid); workload != nil { // it may be replaced meanwhile, as NotFound says
				_, err := d.dynamic.Resource(workloadsResource).Namespace(d.namespace).Patch(ctx, workload.GetName(), types.MergePatchType,
					fmt.Appendf(nil, `{"spec":{"active":%t}}`, do == "activate"), metav1.PatchOptions{})
				return err
			}
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return errors.New("nobody knows how")
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// saw is called for each version of a pod. Once it runs, its end is decided.
func (d *driver) saw(pod *corev1.Pod, gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lives[pod.Labels[batchv1.JobNameLabel]]
	if l == nil || gone || pod.Spec.NodeName == "" {
		return
	}
	known := d.pods[pod.UID]
	if known == nil {
		known = &kubeletPod{}
		d.pods[pod.UID] = known
	}
	runs := pod.Status.Phase == corev1.PodRunning
	switch {
	case pod.DeletionTimestamp != nil && (runs || pod.Status.Phase == corev1.PodPending) && !known.stopping:
		known.stopping = true
		d.kubelet.Go(func() {
			if !runs {
				time.Sleep(time.Second) // kwok may be about to begin it
			}
			d.end(pod, known, fate{reason: "Error", code: stopped})
		})
	case runs && pod.DeletionTimestamp == nil && !known.begun:
		known.begun = true
		lasts, f := time.Duration(200+l.random.IntN(2500))*time.Millisecond, l.fate()
		d.kubelet.Go(func() {
			time.Sleep(lasts)
			d.end(pod, known, f)
		})
	}
}

// fate is how a pod ends.
type fate struct {
	by     string // "": by itself; evict, remove: by the API
	reason string // of its container
	code   int32
	node   bool // its node evicts it
}

// fate is how the next pod of a life ends. The driver's lock is held.
func (l *life) fate() fate {
	n := l.random.IntN(100)
	if l.doomed {
		n /= 2
	}
	switch {
	case n < 8:
		return fate{reason: "OOMKilled", code: 137}
	case n < 20:
		return fate{reason: "Error", code: 1}
	case n < 24:
		return fate{reason: "Error", code: hopeless}
	case n < 29:
		return fate{reason: "Error", code: 137, node: true}
	case n < 33:
		return fate{by: "evict"}
	case n < 37:
		return fate{by: "remove"}
	}
	return fate{reason: "Completed"}
}

// end ends a pod, unless it has ended, or is gone.
func (d *driver) end(pod *corev1.Pod, known *kubeletPod, f fate) {
	ctx := context.Background()
	pods := d.kube.CoreV1().Pods(d.namespace)
	var err error
	switch f.by {
	case "evict":
		err = pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}})
	case "remove":
		err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	default:
		d.mu.Lock()
		ended := known.ended
		known.ended = true
		d.mu.Unlock()
		if ended {
			return
		}
		_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, statusPatch(pod, f), metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		d.t.Errorf("ending %s: %v", pod.Name, err)
	}
}

// statusPatch is what a kubelet writes of a pod that has ended.
func statusPatch(pod *corev1.Pod, f fate) []byte {
	now := metav1.Now()
	status := map[string]any{
		"phase":      corev1.PodFailed,
		"conditions": []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "PodFailed", LastTransitionTime: now}},
	}
	if len(pod.Status.ContainerStatuses) > 0 { // else it was told to end before it began
		status["containerStatuses"] = []corev1.ContainerStatus{{
			Name: pod.Status.ContainerStatuses[0].Name, Image: pod.Status.ContainerStatuses[0].Image,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: f.code, Reason: f.reason, StartedAt: pod.Status.ContainerStatuses[0].State.Running.StartedAt, FinishedAt: now,
			}},
		}}
	}
	if f.code == 0 {
		status["phase"] = corev1.PodSucceeded
	}
	if f.node {
		status["reason"], status["message"] = "Evicted", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi."
		status["conditions"] = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "PodFailed", LastTransitionTime: now},
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet", LastTransitionTime: now},
		}
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		panic(err) // such a map can be marshalled
	}
	return text
}
