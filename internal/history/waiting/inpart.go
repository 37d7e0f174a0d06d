package waiting

import (
	"fmt"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/ownerref"
	"github.com/kubecast/kubecast/internal/stream"
)

// WhyInPart is why a part of a job does not run that runs: how many of its pods cannot begin, of how many that have not ended, and why not. The zero Reason: all can.
// Known and steps are as Why's. Pods that run are not kept, so the pods of its namespace are walked, but only if one of its own cannot begin.
func (w *Watch) WhyInPart(job ownerref.ID) (why history.Reason, known bool, steps int) {
	best, known, steps := w.best(job)
	if best == nil || best.weight < aPodIsGated || best.weight > aPodCannotBegin {
		return why, known, steps
	}
	store := w.podStore()
	if store == nil {
		return why, false, steps
	}
	n, of := 0, 0
	belongs := w.belongs(job)
	for o := range store.Snapshot().List(stream.Namespaces(job.Namespace), cache.Selector{}, "", "") {
		steps++
		if !belongs(o) || o.Path("metadata.deletionTimestamp").Exists() {
			continue
		}
		if phase := o.Path("status.phase").Str; phase == "Succeeded" || phase == "Failed" {
			continue
		}
		of++
		if said, ok := pod(o); ok && said.weight >= aPodIsGated {
			n++
		}
	}
	if n == 0 { // it has begun meanwhile
		return why, known, steps
	}
	why = best.Reason
	why.Message = fmt.Sprintf("%d of %d pods: %s", n, of, why.Message)
	return why, known, steps
}

// podStore has the pods; nil while they are not read.
func (w *Watch) podStore() *cache.Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.upwards[kindOf{kind: "Pod"}].store
}

// belongs tells pods of a job, of a namespace, from others. It asks once for each of their owners.
func (w *Watch) belongs(job ownerref.ID) func(*cluster.Object) bool {
	asked := map[ownerref.ID]bool{}
	return func(o *cluster.Object) bool {
		for _, owner := range ownerref.Owners(o) {
			is, before := asked[owner]
			if !before {
				ownerref.Above([]ownerref.ID{owner}, func(above ownerref.ID) ([]ownerref.ID, bool) {
					is = is || above.UID == job.UID
					w.mu.Lock()
					defer w.mu.Unlock()
					_, owners, _ := w.objects.Get(above)
					return owners, !is
				})
				asked[owner] = is
			}
			if is {
				return true
			}
		}
		return false
	}
}
