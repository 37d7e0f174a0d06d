package reasons

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/ownerref"
)

// A ProvisioningRequest that a job's pods name says why these wait, however its name is written, as it changes, and whichever
// comes first. One of another namespace does not, nor any while a pod has a node.
func TestAProvisioningRequestThatPodsNameSaysWhyTheyWait(t *testing.T) {
	for _, annotation := range []string{"autoscaling.x-k8s.io/consume-provisioning-request", "cluster-autoscaler.kubernetes.io/consume-provisioning-request"} {
		synctest.Test(t, func(t *testing.T) {
			kind := cluster.Kind{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests", Kind: "ProvisioningRequest", Namespaced: true, Watchable: true}
			api := apitest.New(apitest.Jobs, apitest.Pods, kind)
			api.Put("jobs", "n/job")
			job := ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/job"), Group: "batch", Kind: "Job", Name: "job"}
			owner := controlledBy("batch/v1", "Job", "job", job.UID)
			names := apitest.Set("metadata.annotations", map[string]string{annotation: "nodes"})
			condition := func(name, status, message string) string {
				return apitest.Set("status.conditions", []any{map[string]any{"type": name, "status": status, "reason": name, "message": message, "lastTransitionTime": "2000-01-01T00:00:00Z"}})
			}
			api.Put("provisioningrequests", "m/nodes", condition("Failed", "True", "elsewhere"))
			api.Put("pods", "n/pod", owner, names, stuckPod)
			w, stop := watching(t, api, "jobs.batch")
			defer stop()
			l := w.Listen()
			defer l.Close()
			is := func(when, source, message string) {
				t.Helper()
				time.Sleep(time.Second)
				synctest.Wait()
				if why, _, _ := w.Why(job); why.Source != source || why.Message != message {
					t.Errorf("%s: %s %q", when, why.Source, why.Message)
				}
				if len(l.Changed()) == 0 && when != "at first" {
					t.Errorf("%s: nobody is told that something else is said", when)
				}
			}
			is("at first", "Pod", "0/3 nodes")
			api.Put("provisioningrequests", "n/nodes", condition("Provisioned", "False", "no capacity yet"))
			is("before there are nodes", "ProvisioningRequest", "no capacity yet")
			api.Put("provisioningrequests", "n/nodes", condition("Failed", "True", "quota"))
			is("after it failed", "ProvisioningRequest", "quota")
			api.Put("provisioningrequests", "n/nodes", condition("Provisioned", "True", "there"))
			is("once there are nodes", "Pod", "0/3 nodes")
			api.Put("provisioningrequests", "n/nodes", condition("Provisioned", "False", "again"))
			is("once there are none again", "ProvisioningRequest", "again")
			api.Put("pods", "n/pod", owner, names, `status.phase:="Running"`)
			is("while it runs", "", "")
			api.Put("pods", "n/pod", owner, names, stuckPod)
			is("after it is stuck again", "ProvisioningRequest", "again")
			api.ExpireWatches()
			api.Delete("provisioningrequests", "n/nodes")
			time.Sleep(time.Minute)
			is("once that is gone", "Pod", "0/3 nodes")
			api.Delete("pods", "n/pod")
			is("without a pod", "", "")
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.consumers) != 0 {
				t.Errorf("of pods that are gone it is kept what they named: %v", w.consumers)
			}
		})
	}
}

// A job runs but for one pod, which finds no node and names a ProvisioningRequest that failed: it is told of that pod.
func TestARunningJobIsToldOfAPodThatNamesARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := cluster.Kind{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests", Kind: "ProvisioningRequest", Namespaced: true, Watchable: true}
		api := apitest.New(apitest.Jobs, apitest.Pods, kind)
		api.Put("jobs", "n/job")
		job := ownerref.ID{Namespace: "n", UID: api.UID("jobs", "n/job"), Group: "batch", Kind: "Job", Name: "job"}
		owner := controlledBy("batch/v1", "Job", "job", job.UID)
		names := apitest.Set("metadata.annotations", map[string]string{"autoscaling.x-k8s.io/consume-provisioning-request": "nodes"})
		api.Put("pods", "n/runs", owner, `status.phase:="Running"`)
		api.Put("pods", "n/stuck", owner, names, stuckPod)
		w, stop := watching(t, api, "jobs.batch")
		defer stop()
		synctest.Wait()
		if why, _, _ := w.WhyInPart(job); why.Message != "1 of 2 pods: 0/3 nodes" {
			t.Errorf("without the request: %q", why.Message)
		}
		api.Put("provisioningrequests", "n/nodes", apitest.Set("status.conditions", []any{map[string]any{"type": "Failed", "status": "True", "reason": "Failed", "message": "quota", "lastTransitionTime": "2000-01-01T00:00:00Z"}}))
		time.Sleep(time.Second)
		synctest.Wait()
		if why, _, _ := w.WhyInPart(job); !strings.HasPrefix(why.Message, "1 of 2 pods: ") {
			t.Errorf("with the request: %s %s %q", why.Source, why.Reason, why.Message)
		}
	})
}
