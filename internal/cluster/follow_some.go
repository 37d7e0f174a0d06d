package cluster

import (
	"context"
	"strings"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
)

// Follower is told of objects, one after the other. It says of each how much of it is kept, which is what it is told of.
type Follower interface {
	Health
	// Reduce returns what is kept of an object, of the same name and version; nil: nothing but these.
	Reduce(o *Object) *Object
	// Changed is called for an object that is new, has changed, or is gone (then now is nil).
	Changed(before, now *Object)
	// Synced is called once it was told of all that the first list had.
	Synced()
}

// FollowSome lists and watches the objects of a kind that match a field selector until the context ends. It is for kinds of
// which the gateway itself needs few objects, and not to be served from: it is one list and one watch, however many objects
// there are, and the API server leaves out the others. If the cluster is away, client-go asks again.
func (c *Cluster) FollowSome(ctx context.Context, kind Kind, fields string, follower Follower) error {
	lw := c.ListWatch(kind, follower)
	lw.fields = fields
	informer := toolscache.NewSharedIndexInformerWithOptions(lw, &Object{}, toolscache.SharedIndexInformerOptions{ObjectDescription: kind.String()})
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {
		// Nothing: the ListWatch reports failures.
	}); err != nil {
		return err
	}
	if err := informer.SetTransform(func(object any) (any, error) {
		o, ok := object.(*Object)
		if !ok || o.IsMarker() {
			return object, nil
		}
		if kept := follower.Reduce(o); kept != nil {
			return kept, nil
		}
		return &Object{namespace: strings.Clone(o.namespace), name: strings.Clone(o.name), uid: strings.Clone(o.uid), version: o.version}, nil
	}); err != nil {
		return err
	}
	handler, err := informer.AddEventHandler(someHandler(follower))
	if err != nil {
		return err
	}
	var syncing sync.WaitGroup
	defer syncing.Wait()
	syncing.Go(func() {
		if toolscache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
			follower.Synced()
		}
	})
	informer.RunWithContext(ctx)
	return nil
}

func someHandler(follower Follower) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if o := object.(*Object); !o.IsMarker() {
				follower.Changed(nil, o)
			}
		},
		UpdateFunc: func(old, object any) {
			if o := object.(*Object); !o.IsMarker() {
				follower.Changed(old.(*Object), o)
			}
		},
		DeleteFunc: func(object any) {
			if tombstone, late := object.(toolscache.DeletedFinalStateUnknown); late {
				object = tombstone.Obj
			}
			if o, ok := object.(*Object); ok && !o.IsMarker() {
				follower.Changed(o, nil)
			}
		},
	}
}
