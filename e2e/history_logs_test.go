package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The log of a pod that fails while its job goes on is what kubectl logs prints of it, also once the pod is gone, while the job runs
// and after it failed.
func TestTheLogOfAPodThatIsGoneIsWhatKubectlPrinted(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	const namespace = "kept-logs"
	g := s.startGateway(t, gatewayOptions{})
	g.waitReady(t)
	g.waitRecording(t) // the job goes on for half a minute only
	s.namespaces(t, namespace)
	job := shortJob("retried")
	one, retries := int32(1), int32(2)
	job.Spec.Parallelism, job.Spec.Completions, job.Spec.BackoffLimit = &one, &one, &retries
	job.Spec.Template.Annotations = map[string]string{
		"devcluster.kubecast.io/run-seconds": "2", "devcluster.kubecast.io/fail-percent": "100", "devcluster.kubecast.io/log-lines-per-second": "200",
	}
	made, err := s.kube.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	past := fmt.Sprintf("/history/apis/batch/v1/namespaces/%s/jobs/retried?uid=%s", namespace, made.UID)
	type run struct {
		Name, UID string
		Log       bool
	}
	var told struct {
		Items []struct {
			State string
			Log   bool
			Pods  []run
		}
	}
	admin := s.admin(t)
	look := func() error {
		told.Items = nil // what is left out is not as it was
		a := g.get(t, admin, past)
		if err := json.Unmarshal([]byte(a.body), &told); err != nil || len(told.Items) != 1 {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	}
	var first run
	eventually(t, "the log of the first pod is kept", func() error {
		if err := look(); err != nil {
			return err
		}
		pods := told.Items[0].Pods
		if len(pods) == 0 || !pods[len(pods)-1].Log {
			return fmt.Errorf("%+v", told.Items)
		}
		first = pods[len(pods)-1]
		return nil
	})
	if state := told.Items[0].State; state == "Failed" {
		t.Fatalf("the job was %s before it was known that there is a log", state)
	}
	printed := s.kubectl(t, "", "logs", "-n", namespace, first.Name)
	is := func(when string) {
		t.Helper()
		a := g.get(t, admin, past+"&view=log&pod="+first.UID)
		if text := a.body; a.code != 200 || len(text) < 10_000 || !strings.HasSuffix(printed, text) {
			t.Errorf("%s, the log is %d, %d bytes of %d: …%s", when, a.code, len(text), len(printed), text[max(0, len(text)-300):])
		}
	}
	is("while the job goes on")
	if err := s.kube.CoreV1().Pods(namespace).Delete(context.Background(), first.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job fails", func() error {
		if err := look(); err != nil {
			return err
		}
		if job := told.Items[0]; job.State != "Failed" || !job.Log {
			return fmt.Errorf("%+v", job)
		}
		return nil
	})
	is("after the pod is gone and the job has failed")
}
