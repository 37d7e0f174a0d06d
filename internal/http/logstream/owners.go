package logstream

import (
	"context"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/ownerref"
)

// family knows which pods belong to an object: those that name it as an owner, or whose owners belong to it, such as the pods of a
// JobSet's jobs. What its caller may not get is as if it were not there, and what is there under a reference's name but is another
// object, too.
type family struct {
	access    *access.Access
	kinds     *cache.Kinds
	id        auth.Identity
	head      access.Target
	headKind  cluster.Kind
	headStore *cache.Store
	release   func()
	between   map[kindName]*generation
}

// kindName is what an ownerReference says of a kind, in whatever version.
type kindName struct{ group, kind string }

// generation is the objects of a kind that may stand between the head of a family and its pods.
type generation struct {
	kind    cluster.Kind
	store   *cache.Store // nil: the caller may see none of them, or there is no such kind
	release func()
	visible *access.Visibility
	asked   time.Time // when it was asked what the caller may see
	unknown error     // why there was no answer; nil: there was one
}

// newFamily returns the family of an object that a caller may get.
func newFamily(a *access.Access, kinds *cache.Kinds, id auth.Identity, head access.Target, kind cluster.Kind) (*family, error) {
	f := &family{access: a, kinds: kinds, id: id, head: head, headKind: kind, between: map[kindName]*generation{}}
	var err error
	f.headStore, f.release, err = kinds.Use(kind, id.Payer())
	return f, err
}

// belongs reports whether an object belongs to the family. Known is false as long as that cannot be said: an object may come
// before its owner, by another watch. If what stands between cannot be read at all for now, unread says how that is. It takes no less time
// where the caller may not know.
func (f *family) belongs(ctx context.Context, o *cluster.Object) (yes, known bool, unread *cache.Upstream) {
	known = true
	ownerref.Above(ownerref.Owners(o), func(up ownerref.ID) ([]ownerref.ID, bool) {
		isHead := up.Group == f.headKind.Group && up.Kind == f.headKind.Kind && up.Name == f.head.Name
		store, visible := f.headStore, (*access.Visibility)(nil)
		if !isHead {
			g := f.of(ctx, up)
			if how := g.unread(); how != nil {
				known, unread = false, how
				return nil, true
			}
			if store, visible = g.store, g.visible; store == nil {
				return nil, true
			}
		}
		parent := store.Snapshot().Get(f.head.Namespace, up.Name)
		if parent == nil || parent.UID() != up.UID || !visible.Sees(parent) {
			known = false
			return nil, true
		}
		yes = isHead
		return ownerref.Owners(parent), !yes
	})
	return yes, yes || known, unread
}

// unread is how the kind is whose objects cannot be known for now; nil: they can.
func (g *generation) unread() *cache.Upstream {
	switch {
	case g.unknown != nil:
		return &cache.Upstream{Since: g.asked, Err: g.unknown}
	case g.store == nil || g.store.Err() != nil || g.store.Upstream().Synced:
		return nil
	}
	how := g.store.Upstream()
	how.Live = false // or it were as if nothing was missing
	return &how
}

// askedAgain is how often it is asked what a caller may see of a kind that stands between, while new pods come.
const askedAgain = time.Second

// of is the generation of an owner.
func (f *family) of(ctx context.Context, up ownerref.ID) *generation {
	if up.Group == "" && up.Kind != "ReplicationController" { // nothing else of the core group makes pods, and some of it is large, or secret
		return &generation{}
	}
	name := kindName{up.Group, up.Kind}
	g := f.between[name]
	if g == nil {
		g = &generation{}
		f.between[name] = g
	}
	if !g.asked.IsZero() && time.Since(g.asked) < askedAgain {
		return g
	}
	g.asked = time.Now()
	if g.unknown = f.ask(ctx, name, g); g.unknown != nil {
		g.close()
	}
	return g
}

// ask finds the kind of a generation, and what the caller may see of it. It fails if that cannot be known now.
func (f *family) ask(ctx context.Context, name kindName, g *generation) error {
	if g.kind.Kind == "" {
		kinds, err := f.kinds.Cluster().Kinds(ctx)
		if err != nil {
			return err
		}
		for _, kind := range kinds {
			if kind.Group == name.group && kind.Kind == name.kind && kind.Namespaced && kind.Watchable && f.kinds.Cluster().Serves(kind.Group, kind.Resource) {
				g.kind = kind
				break
			}
		}
	}
	if g.kind.Kind == "" {
		return nil
	}
	target := access.Target{Cluster: f.head.Cluster, Group: g.kind.Group, Version: g.kind.Version, Resource: g.kind.Resource, Namespace: f.head.Namespace}
	visible, may, err := f.access.See(ctx, f.kinds, f.id, target, g.kind, "get")
	if err != nil {
		return err
	}
	if g.visible = visible; !may {
		g.close()
		return nil
	}
	if g.store == nil {
		g.store, g.release, err = f.kinds.Use(g.kind, f.id.Payer())
	}
	return err
}

// close gives back what was read.
func (g *generation) close() {
	if g.store != nil {
		g.release()
		g.store = nil
	}
}

// close gives back what was read.
func (f *family) close() {
	if f == nil {
		return
	}
	for _, g := range f.between {
		g.close()
	}
	f.release()
}
