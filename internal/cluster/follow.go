package cluster

import (
	"context"
	"math"
	"strings"

	toolscache "k8s.io/client-go/tools/cache"
)

// DefinitionFollower is told what becomes of the CustomResourceDefinitions of a cluster, in order, and how the watch on
// them is.
type DefinitionFollower interface {
	Health
	// DefinitionChanged: one came, or is another than before. All that there are come first.
	DefinitionChanged(name string)
	// DefinitionRemoved: one is gone, and with it the kind that it defined, since a version; or, if that is not known, by
	// now, and the version is greater than all others.
	DefinitionRemoved(name string, version uint64)
}

// What is asked for to have objects without their contents; who does not know how sends them whole. A watch that asks for
// lists as well is ended by the API server as soon as it has begun.
const (
	metadataOnly     = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	metadataListOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// FollowDefinitions watches the metadata of all CustomResourceDefinitions until the context ends. A cluster that does
// not have any, or does not show them, is asked again and again, but not often.
func (c *Cluster) FollowDefinitions(ctx context.Context, follower DefinitionFollower) error {
	lw := c.ListWatch(definitionKind, follower)
	lw.metadata = true
	informer := toolscache.NewSharedIndexInformerWithOptions(lw, &Object{}, toolscache.SharedIndexInformerOptions{
		ObjectDescription: definitionKind.String(),
	})
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *toolscache.Reflector, error) {
		// Told by the ListWatch.
	}); err != nil {
		return err
	}
	// What is read is a name and a uid; annotations may be larger than all else that the gateway keeps of a cluster.
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
