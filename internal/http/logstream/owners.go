package logstream

import (
	"context"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/ownerref"
	"github.com/kubecast/kubecast/internal/visibility"
)

// ownerTree knows which pods belong to an object: those that name it as an owner, or whose owners
// belong to it, such as the pods of a JobSet's jobs. What its caller may not get is as if it were
// not there, and what is there under a reference's name but is another object, too.
type ownerTree struct {
	access    *access.Access
	kinds     *cache.Kinds
	id        auth.Identity
	head      visibility.Target
	headKind  cluster.Kind
	headStore *cache.Store
	release   func()
	between   map[kindName]*ownerKind
}

// kindName is what an ownerReference says of a kind, in whatever version.
type kindName struct{ group, kind string }

// ownerKind is the objects of a kind that may stand between the head of an owner tree and its pods.
type ownerKind struct {
	kind    cluster.Kind
	store   *cache.Store // nil: the caller may see none of them, or there is no such kind
	release func()
	visible *visibility.Visibility
	asked   time.Time // when it was asked what the caller may see
	unknown error     // why there was no answer; nil: there was one
}

// newOwnerTree returns the owner tree of an object that a caller may get.
func newOwnerTree(a *access.Access, kinds *cache.Kinds, id auth.Identity, head visibility.Target, kind cluster.Kind) (*ownerTree, error) {
	t := &ownerTree{access: a, kinds: kinds, id: id, head: head, headKind: kind, between: map[kindName]*ownerKind{}}
	var err error
	t.headStore, t.release, err = kinds.Use(kind, id.QuotaOwner())
	return t, err
}

// belongs reports whether an object belongs to the tree. Known is false as long as that cannot be
// said: an object may come before its owner, by another watch. If what stands between cannot be
// read at all for now, unread says how that is. It takes no less time where the caller may not
// know.
func (t *ownerTree) belongs(ctx context.Context, o *cluster.Object) (yes, known bool, unread *cache.Upstream) {
	known = true
	ownerref.Above(ownerref.Owners(o), func(up ownerref.ID) ([]ownerref.ID, bool) {
		isHead := up.Group == t.headKind.Group && up.Kind == t.headKind.Kind && up.Name == t.head.Name
		store, visible := t.headStore, (*visibility.Visibility)(nil)
		if !isHead {
			k := t.of(ctx, up)
			if how := k.unread(); how != nil {
				known, unread = false, how
				return nil, true
			}
			if store, visible = k.store, k.visible; store == nil {
				return nil, true
			}
		}
		parent := store.Snapshot().Get(t.head.Namespace, up.Name)
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
func (k *ownerKind) unread() *cache.Upstream {
	switch {
	case k.unknown != nil:
		return &cache.Upstream{Since: k.asked, Err: k.unknown}
	case k.store == nil || k.store.Err() != nil || k.store.Upstream().Synced:
		return nil
	}
	how := k.store.Upstream()
	how.Live = false // or it were as if nothing was missing
	return &how
}

// askedAgain is how often it is asked what a caller may see of a kind that stands between, while new pods come.
const askedAgain = time.Second

// of is the kind of an owner.
func (t *ownerTree) of(ctx context.Context, up ownerref.ID) *ownerKind {
	if up.Group == "" && up.Kind != "ReplicationController" { // nothing else of the core group makes pods, and some of it is large, or secret
		return &ownerKind{}
	}
	name := kindName{up.Group, up.Kind}
	k := t.between[name]
	if k == nil {
		k = &ownerKind{}
		t.between[name] = k
	}
	if !k.asked.IsZero() && time.Since(k.asked) < askedAgain {
		return k
	}
	k.asked = time.Now()
	if k.unknown = t.ask(ctx, name, k); k.unknown != nil {
		k.close()
	}
	return k
}

// ask finds a kind, and what the caller may see of it. It fails if that cannot be known now.
func (t *ownerTree) ask(ctx context.Context, name kindName, k *ownerKind) error {
	if k.kind.Kind == "" {
		kinds, err := t.kinds.Cluster().Kinds(ctx)
		if err != nil {
			return err
		}
		for _, kind := range kinds {
			if kind.Group == name.group && kind.Kind == name.kind && kind.Namespaced && kind.Watchable && t.kinds.Cluster().Serves(kind.Group, kind.Resource) {
				k.kind = kind
				break
			}
		}
	}
	if k.kind.Kind == "" {
		return nil
	}
	target := visibility.Target{Cluster: t.head.Cluster, Group: k.kind.Group, Version: k.kind.Version, Resource: k.kind.Resource, Namespace: t.head.Namespace}
	visible, may, err := t.access.See(ctx, t.kinds, t.id, target, k.kind, "get")
	if err != nil {
		return err
	}
	if k.visible = visible; !may {
		k.close()
		return nil
	}
	if k.store == nil {
		k.store, k.release, err = t.kinds.Use(k.kind, t.id.QuotaOwner())
	}
	return err
}

// close gives back what was read.
func (k *ownerKind) close() {
	if k.store != nil {
		k.release()
		k.store = nil
	}
}

// close gives back what was read.
func (t *ownerTree) close() {
	if t == nil {
		return
	}
	for _, k := range t.between {
		k.close()
	}
	t.release()
}
