package reasons

import (
	"context"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/pods"
	"github.com/kubecast/kubecast/internal/ownerref"
)

// kindOf names a kind as references do.
type kindOf struct{ group, kind string }

// upward is a kind that is read, and may stand between a pod and its job.
type upward struct {
	source string
	store  *cache.Store
	isJob  bool // its history is kept
}

// reads notes that a kind is read, or with nil that it is not any more: until it is read again, or
// is not there, it is not known what belongs to its objects.
func (w *Watch) reads(s source, kind cluster.Kind, using *cache.Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := kindOf{kind.Group, kind.Kind}
	if using == nil {
		delete(w.upwards, of)
		w.unread[s.kind] = true
		return
	}
	w.upwards[of] = upward{s.kind, using, slices.Contains(w.opts.Jobs, s.kind)}
}

// up is the kind of an owner; ok is false if no such kind is read, and known whether that will stay so.
func (w *Watch) up(owner ownerref.ID) (u upward, ok, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u, ok = w.upwards[kindOf{owner.Group, owner.Kind}]; ok {
		return u, true, true
	}
	for kind := range w.unread {
		if _, group, _ := strings.Cut(kind, "."); group == owner.Group {
			return u, false, false
		}
	}
	return u, false, true
}

// Settle waits until all kinds were read that the cluster has and lets the gateway list, or until the context ends.
func (w *Watch) Settle(ctx context.Context) {
	w.want()
	for _, read := range []<-chan struct{}{w.settled, w.eventsAreRead} {
		select {
		case <-read:
		case <-ctx.Done():
		}
	}
}

// JobOf is the topmost job to which a pod, or another job, belongs, as far as what controls it
// leads there; the zero Ref if it belongs to none. Known is false while something on the way was
// not read, or is not there any more: then it may belong to another one. Whether there is a job as
// it is named, who asks has to find out. The names are parts of objects.
func (w *Watch) JobOf(pod *cluster.Object) (job jobs.Ref, known bool) {
	known = true
	var resource string
	top, ok := ownerref.Topmost(pod, func(at ownerref.ID) (above ownerref.ID, controlled, counts bool) {
		u, ok, settled := w.up(at)
		if !ok {
			known = known && settled
			return above, false, false
		}
		if u.isJob {
			resource = u.source
		}
		o := u.store.Snapshot().Get(at.Namespace, at.Name)
		if o == nil || o.UID() != at.UID {
			known = false
			return above, false, u.isJob
		}
		above, controlled = ownerref.Controller(o)
		return above, controlled, u.isJob
	})
	if ok {
		job = jobs.Ref{Resource: resource, Name: top.Name, UID: top.UID}
	}
	return job, known
}

const (
	// mostClaims is of how many claims of a pod, and of how many classes, it is said what is claimed.
	mostClaims = 8
	// mostOfMessage is how much of a message stands before that.
	mostOfMessage = 384
)

// withClasses is a reason, and of a pod for which no node has free devices also which classes of them it claims. The caller
// holds the lock.
func (w *Watch) withClasses(said *statement) jobs.Reason {
	u, ok := w.upwards[kindOf{"resource.k8s.io", "ResourceClaim"}]
	if said.claims == "" || !ok {
		return said.Reason
	}
	snapshot, classes := u.store.Snapshot(), []string{}
	for name := range strings.SplitSeq(said.claims, ",") {
		o := snapshot.Get(said.namespace, name)
		if o == nil || o.Path("status.allocation").Exists() {
			continue
		}
		for _, class := range pods.DeviceClasses(o) {
			if len(classes) < mostClaims && !slices.Contains(classes, class) {
				classes = append(classes, class)
			}
		}
	}
	why := said.Reason
	if len(classes) > 0 {
		why.Message = jobs.WithDeviceClasses(beginning(why.Message, mostOfMessage), classes)
	}
	return why
}

// beginning is what of a message has at most so many bytes, without the part of a list at which it is cut.
func beginning(message string, most int) string {
	if len(message) <= most {
		return message
	}
	if at := strings.LastIndex(message[:min(len(message), most+len(", "))], ", "); at > 0 {
		return message[:at]
	}
	return strings.ToValidUTF8(message[:most], "")
}

// DevicesOf says which devices a resource claim of a namespace was given, by its name; nothing
// while claims are not read.
func (w *Watch) DevicesOf(namespace string) func(claim string) []jobs.Device {
	return func(claim string) []jobs.Device {
		u, ok, _ := w.up(ownerref.ID{Group: "resource.k8s.io", Kind: "ResourceClaim"})
		if !ok {
			return nil
		}
		o := u.store.Snapshot().Get(namespace, claim)
		if o == nil {
			return nil
		}
		return pods.Devices(o)
	}
}
