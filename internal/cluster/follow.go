package cluster

import (
	"context"
	"math"
	"strings"

	toolscache "k8s.io/client-go/tools/cache"
)

// DefinitionFollower is told of each change of a cluster's CustomResourceDefinitions, in order, and of the health of
// the watch on them.
type DefinitionFollower interface {
	Health
	// DefinitionChanged is called for a definition that is new or has changed. At first it is called for all that
	// exist.
	DefinitionChanged(name string)
	// DefinitionRemoved is called for a definition that is gone, and with it the kind that it defined. The version is
	// that of the deletion. If that is not known, it is greater than all others.
	DefinitionRemoved(name string, version uint64)
}

// These media types ask for objects without their contents; a server that does not know them sends whole objects. A
// watch must not ask for the list's type, too: the API server would end it as soon as it has begun.
const (
	metadataOnly     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	metadataListOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// FollowDefinitions watches the metadata of all CustomResourceDefinitions until the context ends. If the cluster does
// not have that kind, or does not show it, it is asked again at client-go's long intervals.
func (c *Cluster) FollowDefinitions(ctx context.Context, follower DefinitionFollower) error {
	lw := c.ListWatch(definitionKind, follower)
	lw.metadata = true
	informer := toolscache.NewSharedIndexInformerWithOptions(lw, &Object{}, toolscache.SharedIndexInformerOptions{
		ObjectDescription: definitionKind.String(),
	})
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {
		// Nothing: the ListWatch reports failures.
	}); err != nil {
		return err
	}
	// Only the name and the uid are kept. The annotations of definitions may be larger than all else that the gateway
	// keeps of a cluster.
	if err := informer.SetTransform(func(object any) (any, error) {
		o, ok := object.(*Object)
		if !ok || o.IsMarker() {
			return object, nil
		}
		return &Object{name: strings.Clone(o.name), uid: strings.Clone(o.uid), version: o.version}, nil
	}); err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(definitionHandler(follower)); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	return nil
}

func definitionHandler(follower DefinitionFollower) toolscache.ResourceEventHandler {
	changed := func(o *Object) {
		if !o.IsMarker() {
			follower.DefinitionChanged(o.name)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { changed(object.(*Object)) },
		UpdateFunc: func(old, object any) {
			before, after := old.(*Object), object.(*Object)
			switch {
			case before.uid != after.uid: // another one of the same name
				follower.DefinitionRemoved(after.name, math.MaxUint64)
				changed(after)
			case before.version != after.version:
				changed(after)
			}
		},
		DeleteFunc: func(object any) {
			tombstone, late := object.(toolscache.DeletedFinalStateUnknown)
			if late {
				object = tombstone.Obj
			}
			o, ok := object.(*Object)
			switch {
			case !ok || o.IsMarker():
			case late:
				follower.DefinitionRemoved(o.name, math.MaxUint64)
			default:
				follower.DefinitionRemoved(o.name, o.version)
			}
		},
	}
}
