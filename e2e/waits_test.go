package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// A job says why it waits, in the words of the real scheduler, and of a Workload as Kueue writes
// it, whose kind comes while the gateway runs; and no transition comes of it.
func TestJobsSayWhyTheyWait(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "waits")
	g := s.startGateway(t, gatewayOptions{config: fmt.Sprintf("history: {database: %q}\n", "sqlite://"+t.TempDir()+"/history.db")})
	g.waitReady(t)
	token := s.viewer(t)
	jobs := s.kube.BatchV1().Jobs("waits")

	huge := shortJob("huge")
	huge.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100k")}
	queued := shortJob("queued")
	suspend := true
	queued.Spec.Suspend = &suspend
	made := map[string]*batchv1.Job{}
	for _, job := range []*batchv1.Job{huge, queued} {
		var err error
		if made[job.Name], err = jobs.Create(context.Background(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	waitsFor := func(name, state, source, reason, message string) {
		t.Helper()
		eventually(t, name+" waits for "+reason, func() error {
			return s.says(t, g, token, name, state, source, reason, message)
		})
	}
	waitsFor("huge", "Pending", "Pod", "Unschedulable", "nodes are available")

	workloads := s.serveWorkloads(t).Namespace("waits")
	w := workloadOf("job-queued", made["queued"], true)
	eventually(t, "a Workload can be made", func() (err error) {
		_, err = workloads.Create(context.Background(), w, metav1.CreateOptions{})
		return err
	})
	status := func(quota, reason, message string) {
		t.Helper()
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"QuotaReserved","status":%q,"reason":%q,"message":%q,"lastTransitionTime":%q,"observedGeneration":1}]}}`,
			quota, reason, message, metav1.Now().UTC().Format("2006-01-02T15:04:05Z"))
		if _, err := workloads.Patch(context.Background(), "job-queued", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	status("False", "Pending", "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 2 more needed")
	waitsFor("queued", "Suspended", "Workload", "Pending", "insufficient unused quota")
	status("True", "QuotaReserved", "Quota reserved in ClusterQueue cluster-queue")
	waitsFor("queued", "Suspended", "Workload", "", "")

	for name, want := range map[string]int{"huge": 1, "queued": 1} {
		var page struct {
			Items []struct{ From, To, Reason string }
		}
		a := g.get(t, token, "/history/apis/batch/v1/namespaces/waits/jobs/"+name+"?view=transitions")
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Items) < want || len(page.Items) > 2 {
			t.Errorf("%s: %s %v", name, a.body, err)
		}
		for _, item := range page.Items {
			if item.Reason == "Unschedulable" || item.Reason == "Pending" {
				t.Errorf("a transition for a reason: %+v", item)
			}
		}
	}
}

// An autoscaler's Event is why a job waits, in plain words and as long as it is there. The API server leaves out the Events
// of kubelets and of kube-scheduler, of which there are most.
func TestAnAutoscalersEventIsWhyAJobWaits(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "scales")
	g := s.startGateway(t, gatewayOptions{config: fmt.Sprintf("history: {database: %q}\n", "sqlite://"+t.TempDir()+"/history.db")})
	g.waitReady(t)
	token := s.viewer(t)
	huge := shortJob("huge")
	huge.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100k")}
	if _, err := s.kube.BatchV1().Jobs("scales").Create(context.Background(), huge, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	eventually(t, "a pod finds no node", func() error {
		pods, err := s.kube.CoreV1().Pods("scales").List(context.Background(), metav1.ListOptions{})
		if err != nil || len(pods.Items) == 0 || len(pods.Items[0].Status.Conditions) == 0 {
			return fmt.Errorf("not yet: %w", err)
		}
		pod = pods.Items[0]
		return nil
	})
	say := func(name, component, reason, message string) {
		t.Helper()
		if _, err := s.kube.CoreV1().Events("scales").Create(context.Background(), &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: name},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "scales", Name: pod.Name, UID: pod.UID},
			Source:         corev1.EventSource{Component: component}, Reason: reason, Message: message, Type: "Normal",
			FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(source, text string) {
		t.Helper()
		eventually(t, "it is told that "+text, func() error {
			var page struct {
				Items []struct {
					Reason  string
					Reasons []struct{ Source, Reason, Text string }
				}
			}
			a := g.get(t, token, "/history/apis/batch/v1/namespaces/scales/jobs/huge")
			if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Items) != 1 || len(page.Items[0].Reasons) == 0 {
				return fmt.Errorf("%s %w", a.body, err)
			}
			job := page.Items[0]
			if last := job.Reasons[len(job.Reasons)-1]; last.Source != source || last.Reason != job.Reason || !strings.Contains(last.Text, text) {
				return errors.New(a.body)
			}
			return nil
		})
	}
	is("Pod", "it asks for more cpu than there is on a node (all ")
	say("kubelets", "kubelet", "TriggeredScaleUp", "pod triggered scale-up: [{kubelet 1->2 (max: 8)}]")
	say("refused", "karpenter", "FailedScheduling", "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=graviton)")
	is("Event", "no node is added: NodePool graviton: its limit is reached")
	say("up", "cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gpu-pool 1->2 (max: 8)}]")
	is("Event", "nodes are being added: gpu-pool from 1 to 2 (of at most 8)")
}

// says checks why the history says that a job waits.
func (s *stage) says(t *testing.T, g *gateway, token, name, state, source, reason, message string) error {
	t.Helper()
	var page struct {
		Items []struct {
			State, Reason, Message string
			Reasons                []struct{ Source, Reason, Message, At string }
		}
	}
	a := g.get(t, token, "/history/apis/batch/v1/namespaces/waits/jobs/"+name)
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Items) != 1 {
		return fmt.Errorf("%d %s %w", a.code, a.body, err)
	}
	j := page.Items[0]
	if j.State != state || j.Reason != reason || !strings.Contains(j.Message, message) || len(j.Reasons) != 1 {
		return errors.New(a.body)
	}
	if r := j.Reasons[0]; r.Source != source || reason != "" && r.Reason != reason || !strings.Contains(r.Message, message) || r.At == "" {
		return errors.New(a.body)
	}
	return nil
}

// workloadsTurn is held by the test that uses Workloads: one of them wants to see the kind come.
var workloadsTurn sync.Mutex

// serveWorkloads has the cluster serve Kueue's Workloads until the test ends.
func (s *stage) serveWorkloads(t *testing.T) dynamic.NamespaceableResourceInterface {
	t.Helper()
	workloadsTurn.Lock()
	t.Cleanup(workloadsTurn.Unlock)
	s.kubectl(t, workloadCRD, "apply", "-f", "-")
	t.Cleanup(func() { s.kubectl(t, workloadCRD, "delete", "-f", "-") })
	return s.dynamic.Resource(schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "workloads"})
}

// workloadOf is a Workload that says that it is a job's.
func workloadOf(name string, job *batchv1.Job, active bool) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
		"metadata": map[string]any{
			"name": name, "labels": map[string]any{"kueue.x-k8s.io/job-uid": string(job.UID)},
			"ownerReferences": []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": job.Name, "uid": string(job.UID), "controller": true}},
		},
		"spec": map[string]any{"queueName": "team", "active": active},
	}}
}

const workloadCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: workloads.kueue.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/kueue/pull/1"}
spec:
  group: kueue.x-k8s.io
  scope: Namespaced
  names: {plural: workloads, singular: workload, kind: Workload, listKind: WorkloadList, shortNames: [wl]}
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
