// Package ownerref owns what objects say of the objects to which they belong: which of it counts, and how it is walked,
// upwards (Above) and downwards (Graph).
//
// What it promises: a reference counts as it does for Kubernetes' garbage collector, that is, if
// the object that it names is there with that uid, name and kind; and only within one namespace, so
// that nothing that somebody writes in one namespace is ever found from another. Each object is
// visited once in a walk, however many ways lead to it, and no walk visits more than it may:
// whoever makes objects that own each other pays with their own answers, and not with others' time.
//
// What it refuses: owners without a namespace of objects that are in one. Anybody could name them, in any namespace.
package ownerref

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
)

const (
	// MaxHeight is how many levels above an object are looked at: a Pod of a Job of a JobSet of a
	// TrainJob of a pipeline.
	MaxHeight = 5
	// maxOwners is how many owners of one object count.
	maxOwners = 4
	// maxAbove is how many objects above one are visited.
	maxAbove = 64
)

// ID identifies an object within a cluster. One that lacks all but Namespace and UID, as a label gives it, stands for
// whatever object has that uid in that namespace.
type ID struct{ Namespace, UID, Group, Kind, Name string }

// Of identifies an object of a kind. Its strings are parts of the object.
func Of(kind cluster.Kind, o *cluster.Object) ID {
	return ID{o.GetNamespace(), o.UID(), kind.Group, kind.Kind, o.GetName()}
}

// Labelled identifies the object of the namespace of another object that has a uid.
func Labelled(o *cluster.Object, uid string) ID { return ID{Namespace: o.GetNamespace(), UID: uid} }

func (id ID) label() ID { return ID{Namespace: id.Namespace, UID: id.UID} }

// matches reports whether an ID is of an object.
func (id ID) matches(object ID) bool { return id == object || id == object.label() }

// Clone is the same, in strings of its own.
func (id ID) Clone() ID {
	return ID{strings.Clone(id.Namespace), strings.Clone(id.UID), strings.Clone(id.Group), strings.Clone(id.Kind), strings.Clone(id.Name)}
}

// Owners are what an object names as its owners: what controls it comes first, and of many only the first few count. An
// object that names itself names nobody. The strings are parts of the object.
func Owners(o *cluster.Object) (owners []ID) {
	each(o, func(id ID, controls bool) {
		switch {
		case controls:
			owners = slices.Insert(owners, 0, id)
		case len(owners) < maxOwners:
			owners = append(owners, id)
		}
	})
	return owners[:min(len(owners), maxOwners)]
}

// Controller is what controls an object; ok is false if nothing does.
func Controller(o *cluster.Object) (owner ID, ok bool) {
	each(o, func(id ID, controls bool) {
		if controls && !ok {
			owner, ok = id, true
		}
	})
	return owner, ok
}

// each visits what an object names as its owners. The API server accepts one controller at most,
// and no reference that lacks a uid, name or kind.
func each(o *cluster.Object, visit func(id ID, controls bool)) {
	controlled := false
	o.Path("metadata.ownerReferences").ForEach(func(_, ref gjson.Result) bool {
		group, _, grouped := strings.Cut(ref.Get("apiVersion").Str, "/")
		if !grouped {
			group = ""
		}
		id := ID{o.GetNamespace(), ref.Get("uid").Str, group, ref.Get("kind").Str, ref.Get("name").Str}
		if id.UID != "" && (id.UID != o.UID() || id.Name != o.GetName()) {
			controls := ref.Get("controller").Bool() && !controlled
			controlled = controlled || controls
			visit(id, controls)
		}
		return true
	})
}

// Above visits what is above an object whose owners are known: these first, then their owners, and
// so on, each once. Next says whose an owner is, and whether to go on at all; it must name no
// owners of one that is not there as it is named.
func Above(owners []ID, next func(owner ID) (owners []ID, goOn bool)) {
	seen := make(map[ID]struct{}, len(owners))
	for range MaxHeight {
		var above []ID
		for _, id := range owners {
			if _, before := seen[id]; before {
				continue
			}
			if len(seen) == maxAbove {
				return
			}
			seen[id] = struct{}{}
			found, goOn := next(id)
			if !goOn {
				return
			}
			above = append(above, found...)
		}
		if owners = above; len(owners) == 0 {
			return
		}
	}
}

// Topmost is the highest of what controls an object, directly or through others, that counts: the
// one thing of which the object is a part. Look says what controls one of them, and whether it
// counts; of one that is not there as it is named it must say neither. Things that control each
// other are looked at once, and the one that was found first is no higher than the others.
func Topmost(o *cluster.Object, look func(ID) (above ID, controlled, counts bool)) (top ID, ok bool) {
	at, controlled := Controller(o)
	var seen []ID
	for range MaxHeight {
		if !controlled || slices.Contains(seen, at) {
			break
		}
		seen = append(seen, at)
		above, next, counts := look(at)
		if counts {
			top, ok = at, true
		}
		at, controlled = above, next
	}
	return top, ok
}
