package reasons

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/ownerref"
)

// Autoscalers say what they do for a pod that finds no node in Events, and nowhere else. There is one watch on all Events
// of pods but those that kubelets and kube-scheduler write, which are most by far; of those that come, only autoscalers'
// are kept. So it costs the API server the same however many pods wait.

// otherEvents selects Events of pods, without those of which there are most and none is an autoscaler's.
const otherEvents = "involvedObject.kind=Pod,source!=kubelet,source!=default-scheduler"

// autoscalers are the components that write as autoscalers do: Karpenter has another name in managed clusters.
var autoscalers = map[string]string{"cluster-autoscaler": "cluster-autoscaler", "karpenter": "karpenter", "eks-auto-mode/compute": "karpenter"}

// addsNodes says of what autoscalers say whether they add nodes, or do not.
var addsNodes = map[string]map[string]bool{
	"cluster-autoscaler": {"TriggeredScaleUp": true, "NotTriggerScaleUp": false, "FailedScaleUp": false},
	"karpenter":          {"Nominated": true, "FailedScheduling": false},
}

const (
	// maxEvents is how many Events of one pod are kept, of each autoscaler the newest.
	maxEvents = 32
	// nodesComeWithin is for how long it counts that an autoscaler adds nodes. Autoscalers give a node up that has not come
	// within a quarter of an hour, and do not always say so.
	nodesComeWithin = 20 * time.Minute
	// maxEventMessage is how many bytes of an Event's message are kept.
	maxEventMessage = 1024
)

// event is what an autoscaler says of a pod.
type event struct {
	key     string // namespace and name
	by      string // which autoscaler
	adds    bool   // it adds nodes
	version uint64
	jobs.Reason
}

// autoscalerEvents is a Watch as a cluster.Follower of Events, for as long as these may be listed.
type autoscalerEvents struct {
	*Watch
	end context.CancelCauseFunc
}

var _ cluster.Follower = (*autoscalerEvents)(nil)

// keepEvents follows autoscalers' Events where the gateway serves Events and may list them, until the context ends.
func (w *Watch) keepEvents(ctx context.Context) {
	if !w.opts.Serves("", "events") {
		w.eventsRead()
		return
	}
	w.opts.Kinds.Retry(ctx, mostWait, w.followEvents, func(err error) {
		if areNotToBeHad(err) {
			w.eventsRead()
		}
		w.opts.Log.Debug("autoscalers do not say why jobs wait", "cluster", w.opts.Kinds.Cluster().Name(), "error", err)
	})
}

// followEvents follows autoscalers' Events, and returns why that has ended.
func (w *Watch) followEvents(ctx context.Context) error {
	c := w.opts.Kinds.Cluster()
	kind, err := c.Named(ctx, "events")
	if err == nil {
		err = c.Lists(ctx, kind)
	}
	if err != nil {
		return err
	}
	following, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := c.FollowSome(following, kind, otherEvents, &autoscalerEvents{w, end}); err != nil {
		return err
	}
	if ctx.Err() == nil { // else others may still ask, who end with this one
		w.forgetEvents()
	}
	return context.Cause(following)
}

// areNotToBeHad reports whether a cluster does not have Events, does not let them be listed, or cannot select them.
func areNotToBeHad(err error) bool { return isLacking(err) || apierrors.IsBadRequest(err) }

// forgetEvents ends all that autoscalers say, until Events are read anew.
func (w *Watch) forgetEvents() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pod := range slices.Collect(maps.Keys(w.events)) {
		delete(w.events, pod)
		w.reweigh(pod)
	}
}

// forgetOldEvents ends that autoscalers add nodes once that was said too long ago, until the context ends.
func (w *Watch) forgetOldEvents(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.mu.Lock()
		for pod := range w.events {
			w.reweigh(pod)
		}
		w.mu.Unlock()
	}
}

func (*autoscalerEvents) Up(int64) {}

func (a *autoscalerEvents) Synced() { a.eventsRead() }

func (a *autoscalerEvents) Down(err error) {
	if areNotToBeHad(err) { // else what they said last would count for ever
		a.end(err)
	}
	a.opts.Log.Debug("Events of autoscalers are not watched", "cluster", a.opts.Kinds.Cluster().Name(), "error", err)
}

// Reduce keeps of an autoscaler's Event what it says and of which pod, and nothing of others.
func (*autoscalerEvents) Reduce(o *cluster.Object) *cluster.Object {
	by := autoscalers[cmp.Or(o.Path("source.component").Str, o.Path("reportingComponent").Str)]
	if _, says := addsNodes[by][o.Path("reason").Str]; !says || o.Path("involvedObject.kind").Str != "Pod" {
		return nil
	}
	at := ""
	for _, path := range []string{"series.lastObservedTime", "lastTimestamp", "eventTime", "metadata.creationTimestamp"} {
		at = cmp.Or(at, o.Path(path).Str)
	}
	message := o.Path("message").Str
	text, err := json.Marshal(map[string]any{
		"metadata":       map[string]any{"namespace": o.GetNamespace(), "name": o.GetName(), "uid": o.UID(), "resourceVersion": strconv.FormatUint(o.Version(), 10)},
		"involvedObject": map[string]any{"name": o.Path("involvedObject.name").Str, "uid": o.Path("involvedObject.uid").Str},
		"by":             by, "reason": o.Path("reason").Str, "at": at, "message": strings.ToValidUTF8(message[:min(len(message), maxEventMessage)], ""),
	})
	if err != nil {
		return nil
	}
	kept, err := cluster.NewObject(string(text))
	if err != nil {
		return nil
	}
	return kept
}

// Changed takes what an Event that was reduced says of a pod, in place of what it said before.
func (a *autoscalerEvents) Changed(before, now *cluster.Object) {
	w := a.Watch
	w.mu.Lock()
	defer w.mu.Unlock()
	var was, is ownerref.ID
	if before != nil {
		if was = podOf(before); was.UID != "" {
			w.events[was] = slices.DeleteFunc(w.events[was], func(e event) bool { return e.key == before.Key() })
		}
	}
	if now != nil {
		if is = podOf(now); is.UID != "" {
			w.events[is] = kept(append(w.events[is], eventOf(now, jobs.At(w.opts.Kinds.Cluster().Now()))))
		}
	}
	for _, pod := range []ownerref.ID{was, is} {
		if len(w.events[pod]) == 0 {
			delete(w.events, pod)
		}
		w.reweigh(pod)
	}
}

// podOf is the pod of which an Event that was reduced says something; the zero ID if it says nothing.
func podOf(o *cluster.Object) ownerref.ID {
	if uid := o.Path("involvedObject.uid").Str; uid != "" {
		return ownerref.ID{Namespace: o.GetNamespace(), UID: uid, Kind: "Pod", Name: o.Path("involvedObject.name").Str}
	}
	return ownerref.ID{}
}

// eventOf is what an Event says that was reduced. One of the future is of now: its writer's clock is fast.
func eventOf(o *cluster.Object, now jobs.Time) event {
	by, reason := o.Path("by").Str, o.Path("reason").Str
	return event{o.Key(), by, addsNodes[by][reason], o.Version(), jobs.Reason{
		At: min(jobs.ParseTime(o.Path("at").Str), now), Reason: reason, Message: o.Path("message").Str, Source: jobs.EventSays, Version: o.Version(),
	}}
}

// kept are those of a pod's Events that are kept: first the newest of each autoscaler, the newest of these first, and then the
// others likewise, as many as there may be.
func kept(events []event) []event {
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(b.version, a.version) })
	heard := map[string]bool{}
	var last, others []event
	for _, e := range events {
		if heard[e.by] {
			others = append(others, e)
			continue
		}
		heard[e.by] = true
		last = append(last, e)
	}
	events = append(last, others...)
	return events[:min(len(events), maxEvents)]
}

// withOthers is what counts of a pod: of one that finds no node, what is said of the nodes that it names, else what
// autoscalers say of it, else what it says itself. The caller holds the lock.
func (w *Watch) withOthers(pod ownerref.ID, own *statement) *statement {
	if said, ok := w.ofRequest(named{pod.Namespace, own.request}); ok && said.weight > own.weight {
		said.ofPod = true
		return &said
	}
	if best, ok := newestOf(w.events[pod], jobs.At(w.opts.Kinds.Cluster().Now())); ok {
		w := anAutoscalerAddsNone
		if best.adds {
			w = anAutoscalerAddsNodes
		}
		return &statement{weight: w, Reason: best.Reason}
	}
	return own
}

// newestOf is what counts of what autoscalers say, the newest first. Of each the last counts, whatever it said before. Where
// there are several, one that adds nodes counts, whatever the others do not.
func newestOf(events []event, now jobs.Time) (best event, ok bool) {
	heard := map[string]bool{}
	for _, e := range events {
		if heard[e.by] {
			continue
		}
		heard[e.by] = true
		if e.adds && now-e.At > jobs.Time(nodesComeWithin.Milliseconds()) {
			continue
		}
		if !ok || e.adds && !best.adds {
			best, ok = e, true
		}
	}
	return best, ok
}

// reweigh says anew what counts of a pod, after something else is said of it. The caller holds the lock.
func (w *Watch) reweigh(pod ownerref.ID) {
	was, owners, ok := w.objects.Get(pod)
	if !ok || was.own == nil {
		return
	}
	now := was
	now.says = w.withOthers(pod, was.own)
	if was.sameAs(now) {
		now.says.At = was.says.At // else a job's reason would alternate as autoscalers repeat what they say of its pods
		w.objects.Replace(pod, now)
		return
	}
	w.forget(pod)
	w.put(pod, owners, now)
}
