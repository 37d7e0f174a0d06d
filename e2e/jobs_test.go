package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The life of a job arrives as it happened: each step of the job and of its pods, in order, with the promised event
// names and ids, and no step that the API server does not tell.
func TestJobsWholeLifeArrivesInOrder(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "life")
	g := s.sharedGateway(t)
	scopes := map[string]scope{
		"jobs": {kind: jobsKind, namespace: "life"},
		"pods": {kind: podsKind, namespace: "life"},
	}
	witnesses := map[string]*witness{}
	for name, scope := range scopes {
		witnesses[name] = s.watchDirectly(t, scope)
	}
	// The order of the keys in the query must not matter.
	f := follow(t, &follower{
		name: "jobs and pods", token: s.viewer(t), watches: several("jobs", "pods"), address: always(g.url), connect: rawly,
		path: "/stream" + query("pods", scopes["pods"].path(), "jobs", scopes["jobs"].path()),
	})
	f.waitSynced(t)

	jobs := s.kube.BatchV1().Jobs("life")
	if _, err := jobs.Create(context.Background(), shortJob("train"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job is complete on the stream", func() error {
		return f.look("jobs", func(v *view) error {
			if o, ok := v.objects["life/train"]; !ok || !strings.Contains(o.json, `"type":"Complete"`) {
				return fmt.Errorf("it is not: %s", o.json)
			}
			return nil
		})
	})
	foreground := metav1.DeletePropagationForeground
	if err := jobs.Delete(context.Background(), "train", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	for name, scope := range scopes {
		eventually(t, "the "+name+" are gone from the stream", func() error {
			return f.look(name, func(v *view) error {
				if len(v.objects) > 0 || len(v.told) == 0 {
					return fmt.Errorf("%d are left", len(v.objects))
				}
				return nil
			})
		})
		s.waitEqual(t, f, name, scope)
		checkSameSequence(t, f, name, witnesses[name])
	}
	checkLife(t, f)
}

// shortJob is a job of two pods that the simulated nodes complete.
func shortJob(name string) *batchv1.Job {
	off, two := false, int32(2)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: batchv1.JobSpec{
			Parallelism: &two, Completions: &two,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &off,
				Containers: []corev1.Container{{Name: "main", Image: "registry.example.org/train:1"}},
			}},
		},
	}
}

// checkLife checks the order in which the steps of a job's life must come.
func checkLife(t *testing.T, f *follower) {
	t.Helper()
	for _, watch := range []string{"jobs", "pods"} {
		err := f.look(watch, func(v *view) error {
			lives := map[string][]string{}
			last := uint64(0)
			for _, e := range v.told {
				if e.version <= last {
					return fmt.Errorf("%s comes after version %d", e, last)
				}
				last = e.version
				lives[e.uid] = append(lives[e.uid], e.event)
			}
			for uid, events := range lives {
				if len(events) < 3 || events[0] != "added" || events[len(events)-1] != "deleted" ||
					slices.Contains(events[1:], "added") || slices.Contains(events[:len(events)-1], "deleted") {
					return fmt.Errorf("the life of %s is %q", uid, events)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", watch, err)
		}
	}
}
