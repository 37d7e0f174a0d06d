package cache

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// A number or truth value that is not set is missing in an object's JSON, and has a text in the API server's selectors.
func TestFieldsThatAreNotSetHaveTheAPIServersValues(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	of := func(resource string) schema.GroupResource { return schema.GroupResource{Resource: resource} }
	for _, c := range []struct {
		kind     schema.GroupResource
		object   string
		selector string
		want     bool
	}{
		{jobs, `"status":{"succeeded":1}`, "status.successful=1", true},
		{jobs, `"status":{"succeeded":1}`, "status.successful!=1", false},
		{jobs, `"status":{}`, "status.successful=0", true},
		{jobs, `"status":{}`, "status.successful!=0", false},
		{jobs, `"status":{}`, "status.successful=", false},
		{jobs, `"status":{}`, "status.successful!=", true},
		{jobs, `"status":{}`, "status.successful=0,status.successful!=1", true},
		{jobs, `"status":{}`, "status.successful=0,metadata.name!=x", false},
		{jobs, `"status":{}`, "status.succeeded=0", false}, // no label of the API server, but a path
		{jobs, `"status":{}`, "status.succeeded=", true},
		{of("jobs"), `"status":{"succeeded":1}`, "status.successful=1", false}, // another kind of that name
		{of("nodes"), `"spec":{}`, "spec.unschedulable=false", true},
		{of("nodes"), `"spec":{}`, "spec.unschedulable!=true", true},
		{of("nodes"), `"spec":{"unschedulable":true}`, "spec.unschedulable=false", false},
		{of("nodes"), `"spec":{"unschedulable":true}`, "spec.unschedulable=true", true},
		{of("pods"), `"spec":{}`, "spec.hostNetwork=false", true},
		{of("pods"), `"spec":{}`, " spec.hostNetwork =false", true},
		{of("pods"), `"spec":{"hostNetwork":true}`, "spec.hostNetwork!=false", true},
		{of("pods"), `"spec":{"nodeName":"n"}`, "spec.host=n", true},
		{of("pods"), `"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}`, "status.podIPs=", true},
		{of("pods"), `"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}`, "status.podIPs!=", false},
		{of("pods"), `"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}`, "status.podIPs!=,metadata.name=x", false},
		{of("replicationcontrollers"), `"status":{}`, "status.replicas=0", true},
		{of("events"), `"source":{"component":"one"},"reportingComponent":"two"`, "source=one", true},
		{of("events"), `"source":{"component":"one"},"reportingComponent":"two"`, "source=two", false},
		{of("events"), `"source":{},"reportingComponent":"two"`, "source=two", true},
		{of("events"), `"source":{},"reportingComponent":"two"`, "source=two,metadata.name=x", true},
		{of("events"), `"source":{},"reportingComponent":"two"`, "source=two,metadata.name!=x", false},
		{of("events"), `"source":{}`, "source=", true},
	} {
		o, err := cluster.NewObject(`{"metadata":{"name":"x","resourceVersion":"1"},` + c.object + `}`)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Paths{Resource: c.kind}.Selector("", c.selector)
		if err != nil {
			t.Errorf("%s: %v", c.selector, err)
			continue
		}
		if got := s.Matches(o); got != c.want {
			t.Errorf("%s of %s: %t of %s", c.selector, c.kind, got, c.object)
		}
		// An index by the label's path has no entry of its own for what is not set.
		indexed, err := newState([]string{"status.succeeded", "spec.unschedulable", "spec.hostNetwork", "source.component"})
		if err != nil {
			t.Fatal(err)
		}
		indexed.put(o)
		listed := 0
		for range (&Snapshot{state: indexed}).List(stream.AllNamespaces(), s, "", "") {
			listed++
		}
		if (listed == 1) != c.want {
			t.Errorf("%s of %s: %d of %s in a list by an index", c.selector, c.kind, listed, c.object)
		}
	}
}
