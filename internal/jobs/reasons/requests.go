package reasons

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/ownerref"
)

// A job need not own the ProvisioningRequest for whose nodes it waits: its pods may name one of their namespace. That one says
// then why those of them wait that find no node.

// named is an object of a namespace, by its name.
type named struct{ namespace, name string }

// consumes is the name of the ProvisioningRequest that a pod names; "" if it names none.
func consumes(o *cluster.Object) string {
	annotations := o.Path("metadata.annotations").Map()
	return cmp.Or(annotations["autoscaling.x-k8s.io/consume-provisioning-request"].Str, annotations["cluster-autoscaler.kubernetes.io/consume-provisioning-request"].Str)
}

// ofRequest is what a ProvisioningRequest says. The caller holds the lock.
func (w *Watch) ofRequest(request named) (said statement, ok bool) {
	u, read := w.upwards[kindOf{"autoscaling.x-k8s.io", "ProvisioningRequest"}]
	if request.name == "" || !read {
		return said, false
	}
	o := u.store.Snapshot().Get(request.namespace, request.name)
	if o == nil {
		return said, false
	}
	if said, ok = provisioning(o); said.At == 0 {
		said.At = jobs.At(w.opts.Kinds.Cluster().Now())
	}
	return said, ok
}

// consume notes which ProvisioningRequest a pod names. The caller holds the lock.
func (w *Watch) consume(pod ownerref.ID, of object) {
	if of.own == nil || of.own.request == "" {
		return
	}
	request := named{pod.Namespace, of.own.request}
	if w.consumers[request] == nil {
		w.consumers[request] = map[ownerref.ID]struct{}{}
	}
	w.consumers[request][pod] = struct{}{}
}

// consumeNot ends that. The caller holds the lock.
func (w *Watch) consumeNot(pod ownerref.ID, of object) {
	if of.own == nil || of.own.request == "" {
		return
	}
	request := named{pod.Namespace, of.own.request}
	if delete(w.consumers[request], pod); len(w.consumers[request]) == 0 {
		delete(w.consumers, request)
	}
}

// provisioned says anew what counts of the pods that name a ProvisioningRequest. The caller holds the lock.
func (w *Watch) provisioned(request named) {
	for _, pod := range slices.Collect(maps.Keys(w.consumers[request])) {
		w.reweigh(pod)
	}
}
