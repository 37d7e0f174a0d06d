package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestKilledDevclusterLeavesNoProcessAndItsDirectoryIsTakenOver(t *testing.T) {
	devcluster, dir := install(t), t.TempDir()
	first := startUp(t, devcluster, dir, "--jobs", "0", "--nodes", "2")
	pids := expectComponents(t, first.cmd.Process.Pid)

	out, err := runCommand(devcluster, "up", "--dir", dir)
	if err == nil || !strings.Contains(out, dir+" is in use by a running devcluster") {
		t.Errorf("a second devcluster in the same directory: %v, %q, want it refused", err, out)
	}
	first.kubectl(t, "create", "configmap", "of-the-first")

	first.cmd.Process.Signal(syscall.SIGKILL)
	expectGoneProcesses(t, pids)

	second := startUp(t, devcluster, dir, "--jobs", "0", "--nodes", "1")
	if names := second.kubectl(t, "get", "configmaps", "-o", "name"); strings.Contains(names, "of-the-first") {
		t.Errorf("the second cluster has the first one's data: %s", names)
	}
	pids = expectComponents(t, second.cmd.Process.Pid)
	second.cmd.Process.Signal(syscall.SIGTERM)
	<-second.done
	if second.err != nil {
		t.Errorf("devcluster up after SIGTERM: %v\n%s", second.err, second.stderr)
	}
	expectGoneProcesses(t, pids)
}

func TestComponentThatDiesAtStartIsNamedWithTheEndOfItsLog(t *testing.T) {
	devcluster := install(t)
	scheduler := filepath.Join(filepath.Dir(devcluster), "controlplane", "kube-scheduler")
	if err := os.Remove(scheduler); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(scheduler, []byte("#!/bin/sh\necho no such plugin\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := runCommand(devcluster, "up", "--dir", t.TempDir())
	if err == nil || !strings.Contains(out, "kube-scheduler ended by itself (exit status 3)") || !strings.Contains(out, "no such plugin") {
		t.Errorf("devcluster up with a scheduler that dies: %v, %q", err, out)
	}
}

// The subtests share one cluster, and leave it as it is.
func TestReadyCluster(t *testing.T) {
	cluster := startUp(t, install(t), filepath.Join(t.TempDir(), "made", "by", strings.Repeat("devcluster-", 10)), "--jobs", "3")
	t.Run("runs a job like any other", cluster.runsAJob)
	t.Run("runs pods as their annotations say", cluster.runsAnnotatedPods)
	t.Run("has jobs from the submitter", cluster.hasSubmittedJobs)
	t.Run("gives groups what they may see", cluster.authorizesGroups)
	t.Run("issues tokens of ServiceAccounts", cluster.issuesTokens)
	t.Run("takes custom resources", cluster.takesCustomResources)
	t.Run("passes arguments and exit status of kubectl", cluster.passesKubectl)
}

func testJob(name string, annotations map[string]string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: "registry.example.org/main"}},
				},
			},
		},
	}
}

func (i *instance) waitForJob(t *testing.T, name string, want batchv1.JobConditionType) {
	t.Helper()
	eventually(t, fmt.Sprintf("job %s to be %s", name, want), func(ctx context.Context) error {
		job, err := i.client.BatchV1().Jobs("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range job.Status.Conditions {
			if condition.Type == want && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its status is %+v", job.Status)
	})
}

func (i *instance) submit(t *testing.T, job *batchv1.Job) {
	t.Helper()
	if _, err := i.client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (i *instance) runsAJob(t *testing.T) {
	i.submit(t, testJob("plain", nil))
	i.waitForJob(t, "plain", batchv1.JobComplete)
}

func (i *instance) runsAnnotatedPods(t *testing.T) {
	// A watch sees every step, however short.
	watching, err := i.client.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name in (good,bad,asleep)"})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	i.submit(t, testJob("good", map[string]string{startSeconds: "1", runSeconds: "2"}))
	i.submit(t, testJob("bad", map[string]string{startSeconds: "1", runSeconds: "1", failPercent: "100", failReason: "OOMKilled"}))
	// What people try things with: kubectl create job asleep --image=busybox -- sleep 2
	asleep := testJob("asleep", nil)
	asleep.Spec.Template.Spec.Containers[0].Command = []string{"sleep", "2"}
	i.submit(t, asleep)
	i.waitForJob(t, "asleep", batchv1.JobComplete)
	i.waitForJob(t, "good", batchv1.JobComplete)
	i.waitForJob(t, "bad", batchv1.JobFailed)

	seen := map[string][]string{}
	for ended := 0; ended < 3; {
		event := <-watching.ResultChan()
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("the watch says %v", event)
		}
		if len(pod.Status.ContainerStatuses) == 0 {
			continue
		}
		var step string
		switch state := pod.Status.ContainerStatuses[0].State; {
		case state.Waiting != nil:
			step = state.Waiting.Reason
		case state.Running != nil:
			step = string(pod.Status.Phase)
		case state.Terminated != nil:
			step = fmt.Sprintf("%s %s %d", pod.Status.Phase, state.Terminated.Reason, state.Terminated.ExitCode)
			if ran := state.Terminated.FinishedAt.Sub(state.Terminated.StartedAt.Time); ran < time.Second {
				t.Errorf("the pod of job %s ran for %v", pod.Labels[batchv1.JobNameLabel], ran)
			}
		}
		job := pod.Labels[batchv1.JobNameLabel]
		if steps := seen[job]; len(steps) == 0 || steps[len(steps)-1] != step {
			seen[job] = append(steps, step)
			if strings.Contains(step, " ") {
				ended++
			}
		}
	}
	for job, want := range map[string]string{
		"good":   "[ContainerCreating Running Succeeded Completed 0]",
		"bad":    "[ContainerCreating Running Failed OOMKilled 137]",
		"asleep": "[ContainerCreating Running Succeeded Completed 0]",
	} {
		if got := fmt.Sprint(seen[job]); got != want {
			t.Errorf("the pod of job %s went through %s, want %s", job, got, want)
		}
	}
}

func (i *instance) hasSubmittedJobs(t *testing.T) {
	eventually(t, "submitted jobs to run", func(ctx context.Context) error {
		jobs, err := i.client.BatchV1().Jobs("").List(ctx, metav1.ListOptions{LabelSelector: "kubecast.io/owner,kueue.x-k8s.io/queue-name"})
		if err != nil {
			return err
		}
		namespaces, succeeded := map[string]bool{}, 0
		for _, job := range jobs.Items {
			namespaces[job.Namespace] = true
			succeeded += int(job.Status.Succeeded)
		}
		if len(namespaces) < 2 || succeeded == 0 {
			return fmt.Errorf("%d jobs in %d namespaces, %d pods succeeded", len(jobs.Items), len(namespaces), succeeded)
		}
		return nil
	})
}

func (i *instance) authorizesGroups(t *testing.T) {
	for _, test := range []struct {
		group, namespace, resource string
		want                       bool
	}{
		{"platform", "", "pods", true},
		{"platform", "", "jobs.batch", true},
		{"platform", "", "nodes", true},
		{"platform", "", "secrets", false},
		{"team-vision", "team-vision", "pods", true},
		{"team-vision", "team-vision", "jobs.batch", true},
		{"team-vision", "team-vision", "secrets", false},
		{"team-vision", "team-nlp", "pods", false},
		{"team-vision", "", "pods", false},
	} {
		config := rest.CopyConfig(i.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "somebody", Groups: []string{test.group}}
		client := kubernetes.NewForConfigOrDie(config)
		var err error
		switch test.resource {
		case "pods":
			_, err = client.CoreV1().Pods(test.namespace).List(t.Context(), metav1.ListOptions{Limit: 1})
		case "jobs.batch":
			_, err = client.BatchV1().Jobs(test.namespace).List(t.Context(), metav1.ListOptions{Limit: 1})
		case "nodes":
			_, err = client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{Limit: 1})
		case "secrets":
			_, err = client.CoreV1().Secrets(test.namespace).List(t.Context(), metav1.ListOptions{Limit: 1})
		}
		if (err == nil) != test.want {
			t.Errorf("group %s lists %s in %q: %v, want allowed %v", test.group, test.resource, test.namespace, err, test.want)
		}
	}
}

func (i *instance) issuesTokens(t *testing.T) {
	token := i.kubectl(t, "create", "token", "default", "-n", "team-vision")
	config := rest.AnonymousClientConfig(i.config)
	config.BearerToken = token
	review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:team-vision:default"; got != want {
		t.Errorf("the token is that of %s, want %s", got, want)
	}
}

func (i *instance) takesCustomResources(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "crd.yaml")
	err := os.WriteFile(manifest, []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trainings.example.org}
spec:
  group: example.org
  names: {kind: Training, plural: trainings}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	i.kubectl(t, "apply", "-f", manifest)
	i.kubectl(t, "wait", "--for=condition=Established", "crd/trainings.example.org")
	eventually(t, "the custom resource to be served", func(ctx context.Context) error {
		return i.client.Discovery().RESTClient().Get().AbsPath("/apis/example.org/v1/trainings").Do(ctx).Error()
	})
}

func (i *instance) passesKubectl(t *testing.T) {
	if got := i.kubectl(t, "get", "--raw", "/livez"); got != "ok" {
		t.Errorf("kubectl get --raw /livez prints %q, want ok", got)
	}
	out, err := runCommand(i.devcluster, "kubectl", "--dir="+string(i.dir), "get", "pod", "nobody")
	if err == nil || !strings.Contains(out, "NotFound") {
		t.Errorf("kubectl get of a missing pod: %v, %q, want its error", err, out)
	}
}

func TestCancelledPollSaysWhatItWaitedForAndWhy(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	err := poll(ctx, 0, "rain", func(context.Context) error {
		cancel(errors.New("summer"))
		return errors.New("sunshine")
	})
	if want := "waiting for rain: summer (last: sunshine)"; err == nil || err.Error() != want {
		t.Errorf("poll: %v, want %s", err, want)
	}
}
