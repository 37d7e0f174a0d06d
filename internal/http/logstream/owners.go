package logstream

import (
	"context"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
)

// family knows which pods belong to an object: those that name it as an owner, or whose owners belong to it, such as the pods of a
// JobSet's jobs. Owners count by name, so that an object which is made anew has its pods again.
type family struct {
	kinds     *cache.Kinds
	payer     string
	head      owner
	namespace string
	between   map[owner]*generation // by kind, without the name; nil: the cluster does not show it
}

// owner is what an ownerReference names, in whatever version.
type owner struct{ group, kind, name string }

// generation is the objects of a kind that may stand between the head of a family and its pods.
type generation struct {
	store   *cache.Store
	release func()
}

// maxDepth is how far above its pods an owner may stand: TrainJob, JobSet, Job, Pod.
const maxDepth = 5

// belongs reports whether an object belongs to the family. Known is false as long as that cannot be said.
func (f *family) belongs(ctx context.Context, o *cluster.Object) (yes, known bool) {
	return f.isBelow(ctx, o, maxDepth, map[step]verdict{})
}

// step is an owner at a height, and verdict what isBelow says of it. Each is looked at once: those who own each other, which anybody
// can make, have more ways among them than can be walked.
type (
	step struct {
		owner
		depth int
	}
	verdict struct{ yes, known bool }
)

func (f *family) isBelow(ctx context.Context, o *cluster.Object, depth int, seen map[step]verdict) (yes, known bool) {
	known = true
	o.Path("metadata.ownerReferences").ForEach(func(_, ref gjson.Result) bool {
		group, _, versioned := strings.Cut(ref.Get("apiVersion").Str, "/")
		if !versioned {
			group = ""
		}
		up := owner{group, ref.Get("kind").Str, ref.Get("name").Str}
		if yes = up == f.head; yes || depth == 1 {
			return !yes
		}
		next := f.of(ctx, up)
		if next == nil {
			return true
		}
		if !next.store.Upstream().Synced {
			known = false
			return true
		}
		parent := next.store.Snapshot().Get(f.namespace, up.name)
		if parent == nil { // this one may have come before its owner, by another watch
			known = false
			return true
		}
		at := step{up, depth - 1}
		of, before := seen[at]
		if !before {
			of.yes, of.known = f.isBelow(ctx, parent, depth-1, seen)
			seen[at] = of
		}
		yes, known = of.yes, known && of.known
		return !yes
	})
	return yes, yes || known
}

// of is the generation of an owner; nil if there is none.
func (f *family) of(ctx context.Context, up owner) *generation {
	up.name = ""
	if up.group == "" && up.kind != "ReplicationController" { // nothing else of the core group makes pods, and some of it is large, or secret
		return nil
	}
	if found, ok := f.between[up]; ok {
		return found
	}
	f.between[up] = nil
	kinds, err := f.kinds.Cluster().Kinds(ctx)
	if err != nil {
		delete(f.between, up)
		return nil
	}
	for _, kind := range kinds {
		if kind.Group == up.group && kind.Kind == up.kind && kind.Namespaced && kind.Watchable && f.kinds.Cluster().Serves(kind.Group, kind.Resource) {
			if store, release, err := f.kinds.Use(kind, f.payer); err == nil {
				f.between[up] = &generation{store, release}
			}
			break
		}
	}
	return f.between[up]
}

// close gives back what was read.
func (f *family) close() {
	if f == nil {
		return
	}
	for _, g := range f.between {
		if g != nil {
			g.release()
		}
	}
}
