package access

import (
	"net/http"
	"testing"

	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
)

// TestRefusalsAreInTheAPIServersWords: clients show them, and tools look for them.
func TestRefusalsAreInTheAPIServersWords(t *testing.T) {
	for want, target := range map[string]visibility.Target{
		`pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope`:                {Resource: "pods"},
		`jobs.batch "x" is forbidden: User "ann" cannot list resource "jobs" in API group "batch" in the namespace "a"`: {Group: "batch", Resource: "jobs", Namespace: "a", Name: "x"},
		`pods "x" is forbidden: User "ann" cannot list resource "pods/log" in API group "" in the namespace "a"`:        {Resource: "pods", Namespace: "a", Name: "x", Subresource: "log"},
	} {
		refused := reply.To(Forbidden(ann, target, "list"))
		if refused.Message != want || refused.Code != http.StatusForbidden || refused.Details.Name != target.Name || refused.Details.Group != target.Group || refused.Details.Kind != target.Resource {
			t.Errorf("%+v: %+v", target, refused)
		}
	}
	if refused := reply.To(ForbiddenPath(ann, "/apis")); refused.Message != `forbidden: User "ann" cannot get path "/apis"` || refused.Code != http.StatusForbidden {
		t.Errorf("%+v", refused)
	}
}
