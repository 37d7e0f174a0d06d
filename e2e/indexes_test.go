package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A Job of which each index may fail by itself runs on while others go on, and ends with a word for
// all of them; one that another controller manages says what that writes. Kubernetes' own Job
// controller writes the former, and its validation accepts the latter.
func TestAnIndexThatFailsIsNoFailureOfItsJob(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "indexes")
	g := s.startGateway(t, gatewayOptions{config: fmt.Sprintf("history: {database: %q}\n", "sqlite://"+t.TempDir()+"/history.db")})
	g.waitReady(t)
	token := s.viewer(t)
	first := shortJob("first")
	first.Spec.Suspend = new(true)
	if _, err := s.kube.BatchV1().Jobs("indexes").Create(t.Context(), first, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	(&indexedJob{s, t, g, token, "first"}).says("Suspended", 0) // from now on, all is recorded as it happens
	failed := fate{reason: "Error", code: 1}
	for name, test := range map[string]struct {
		change func(*batchv1.JobSpec)
		lives  func(j *indexedJob)
		told   string // states, attempt, pods that failed, progress, reason, and cause
	}{
		"an index is tried again": {func(spec *batchv1.JobSpec) { spec.BackoffLimitPerIndex = new(int32(1)) }, func(j *indexedJob) {
			first := j.ends(1, failed)
			j.says("Running", 1)
			for index := range 3 {
				j.ends(index, fate{reason: "Completed"}, first)
			}
		}, "Submitted Pending Running Succeeded; attempt 1, 1 failed, 3 of 3; "},
		"an index is given up": {func(spec *batchv1.JobSpec) { spec.BackoffLimitPerIndex = new(int32(0)) }, func(j *indexedJob) {
			j.ends(1, fate{reason: "OOMKilled", code: 137})
			j.says("Running", 1)
			j.ends(0, fate{reason: "Completed"})
			j.says("Running", 1)
			j.ends(2, fate{reason: "Completed"})
		}, "Submitted Pending Running Failed; attempt 1, 1 failed, 2 of 3; FailedIndexes: main was OOM-killed (exit 137)"},
		"too many are": {func(spec *batchv1.JobSpec) {
			spec.BackoffLimitPerIndex, spec.MaxFailedIndexes = new(int32(0)), new(int32(1))
		}, func(j *indexedJob) {
			j.ends(0, failed)
			j.says("Running", 1)
			j.ends(2, failed)
		}, "Submitted Pending Running Failed; attempt 1, 2 failed, 0 of 3; MaxFailedIndexesExceeded: main failed (exit 1)"},
		"another controller's": {func(spec *batchv1.JobSpec) {
			spec.ManagedBy, spec.CompletionMode = new("example.org/other"), nil
		}, func(j *indexedJob) {
			j.says("Submitted", 0)
			began := metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
			for _, status := range []string{
				`"startTime":"` + began + `","active":3`, `"startTime":"` + began + `","active":3,"ready":3`,
				`"startTime":"` + began + `","completionTime":"` + began + `","succeeded":3,"active":0,"ready":0,"conditions":[{"type":"SuccessCriteriaMet","status":"True","reason":"CompletionsReached"},{"type":"Complete","status":"True","reason":"CompletionsReached"}]`,
			} {
				if _, err := j.s.kube.BatchV1().Jobs("indexes").Patch(j.t.Context(), j.name, types.MergePatchType, []byte(`{"status":{`+status+`}}`), metav1.PatchOptions{}, "status"); err != nil {
					j.t.Fatal(err)
				}
			}
		}, "Submitted Pending Running Succeeded; attempt 1, 0 failed, 3 of 3; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := shortJob(strings.Map(func(c rune) rune {
				if c < 'a' || c > 'z' {
					return '-'
				}
				return c
			}, name))
			job.Spec.Parallelism, job.Spec.Completions, job.Spec.CompletionMode = new(int32(3)), new(int32(3)), new(batchv1.IndexedCompletion)
			job.Spec.Template.Annotations = map[string]string{"devcluster.kubecast.io/run-seconds": "86400"} // until the test ends it
			job.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(1))
			test.change(&job.Spec)
			if _, err := s.kube.BatchV1().Jobs("indexes").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			j := &indexedJob{s, t, g, token, job.Name}
			if job.Spec.ManagedBy == nil {
				j.says("Running", 0)
			}
			test.lives(j)
			eventually(t, "it is told as it was", func() error {
				if told, err := j.told(); err != nil || !strings.HasPrefix(told, test.told) {
					return fmt.Errorf("told as %q, not %q; %w", told, test.told, err)
				}
				return nil
			})
		})
	}
}

// indexedJob is a Job of which the test is the kubelet.
type indexedJob struct {
	s     *stage
	t     *testing.T
	g     *gateway
	token string
	name  string
}

// ends ends the pod of an index that runs, which is none of some, and returns its name. One that is deleted is ended by
// the simulated node.
func (j *indexedJob) ends(index int, f fate, but ...string) (name string) {
	j.t.Helper()
	pods := j.s.kube.CoreV1().Pods("indexes")
	eventually(j.t, fmt.Sprintf("a pod of index %d runs", index), func() error {
		all, err := pods.List(j.t.Context(), metav1.ListOptions{LabelSelector: fmt.Sprintf("%s=%s,%s=%d", batchv1.JobNameLabel, j.name, batchv1.JobCompletionIndexAnnotation, index)})
		if err != nil {
			return err
		}
		for _, pod := range all.Items {
			if pod.Status.Phase == corev1.PodRunning && !slices.Contains(but, pod.Name) {
				name = pod.Name
				_, err := pods.Patch(j.t.Context(), name, types.StrategicMergePatchType, statusPatch(&pod, f), metav1.PatchOptions{}, "status")
				return err
			}
		}
		return fmt.Errorf("none of %d", len(all.Items))
	})
	return name
}

// says waits until the job is told to be in a state, with so many pods that failed.
func (j *indexedJob) says(state string, failures int) {
	j.t.Helper()
	eventually(j.t, fmt.Sprintf("it is told as %s, with %d failures", state, failures), func() error {
		job, err := j.row()
		if err == nil && (job.State != state || job.PodFailures == nil && failures > 0 || job.PodFailures != nil && *job.PodFailures != failures) {
			err = fmt.Errorf("%+v", job)
		}
		return err
	})
}

func (j *indexedJob) row() (job toldJob, err error) {
	var page struct{ Items []toldJob }
	a := j.g.get(j.t, j.token, "/history/apis/batch/v1/namespaces/indexes/jobs/"+j.name)
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Items) != 1 {
		return job, fmt.Errorf("%d %s %w", a.code, a.body, err)
	}
	return page.Items[0], nil
}

// told is what is told of the job, in one line.
func (j *indexedJob) told() (string, error) {
	job, err := j.row()
	if err != nil {
		return "", err
	}
	var page struct{ Items []toldTransition }
	a := j.g.get(j.t, j.token, "/history/apis/batch/v1/namespaces/indexes/jobs/"+j.name+"?view=transitions")
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Items) == 0 {
		return "", fmt.Errorf("%d %s %w", a.code, a.body, err)
	}
	var states string
	for _, tr := range page.Items { // the newest first
		states = tr.To + " " + states
	}
	line := strings.TrimSpace(states) + fmt.Sprintf("; attempt %d", job.Attempt)
	failures := 0
	if job.PodFailures != nil {
		failures = *job.PodFailures
	}
	line += fmt.Sprintf(", %d failed", failures)
	if job.Progress != nil {
		line += fmt.Sprintf(", %d of %d", job.Progress.Done, job.Progress.Of)
	}
	line += "; "
	if job.Cause != nil {
		line += page.Items[0].Reason + ": " + job.Cause.Text
	}
	return line, nil
}
