package visibility

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// Visibility is how much of a target a caller may see, if that is not all of it: some namespaces, or single objects.
// It never changes. A nil Visibility means all.
type Visibility struct {
	scope  auth.Scope
	where  stream.NamespaceSet // in which all of it is
	itself bool                // the kind is Namespace, and each counts as being within itself
	key    visibilityKey       // identifies it, on all replicas
}

// visibilityKey is a digest of what a visibility shows. Only equal digests mean the same visibility, and never a part
// of them: a user who can choose names that they may see could search for a match with a short part of another's.
type visibilityKey [sha256.Size]byte

func keyOf(scope auth.Scope) visibilityKey {
	text, err := json.Marshal(scope)
	if err != nil {
		panic(err) // it has only texts
	}
	return sha256.Sum256(text)
}

// text is the key in the form in which tags and tokens contain it.
func (k visibilityKey) text() string {
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(k[:]))
}

// maxNarrow is how many namespaces are read one by one. For a caller who may see more of them, but not all, all are
// read, and what the caller may not see is skipped.
const maxNarrow = 64

// Of returns what a scope shows of a target of a kind; ok is false if that is nothing.
func Of(scope auth.Scope, t Target, kind cluster.Kind) (_ *Visibility, ok bool) {
	if scope.All {
		return nil, true
	}
	v := &Visibility{scope: Applicable(scope, kind), itself: AreNamespaces(kind.Group, kind.Resource)}
	switch {
	case t.Namespace != "" && scope.SeesNamespace(t.Namespace):
		return nil, true
	case v.scope.Empty():
		return nil, false
	}
	namespaces := slices.AppendSeq(slices.Clone(scope.Namespaces), maps.Keys(scope.Names))
	switch {
	case t.Namespace != "":
		v.where = stream.Namespaces(t.Namespace)
	case kind.Namespaced && len(scope.Names[""]) == 0 && len(namespaces) <= maxNarrow:
		v.where = stream.Namespaces(namespaces...)
	}
	v.key = keyOf(v.scope)
	return v, true
}

// Applicable is the part of a scope that says something of a kind. What is in no namespace is not
// shown by a role in one. Namespaces are the exception, since each counts as being within itself.
func Applicable(scope auth.Scope, kind cluster.Kind) auth.Scope {
	if kind.Namespaced || AreNamespaces(kind.Group, kind.Resource) {
		return scope
	}
	scope.Namespaces, scope.Names = nil, maps.Clone(scope.Names)
	maps.DeleteFunc(scope.Names, func(namespace string, _ []string) bool { return namespace != "" })
	return scope
}

// Nothing is the visibility of a caller who may see nothing.
func Nothing() *Visibility {
	v := &Visibility{}
	v.key = keyOf(v.scope)
	return v
}

// Shows is what may be seen, as permissions say it.
func (v *Visibility) Shows() auth.Scope {
	if v == nil {
		return auth.Scope{All: true}
	}
	return v.scope
}

// Sees reports whether an object may be seen.
func (v *Visibility) Sees(o *cluster.Object) bool {
	switch {
	case v == nil:
		return true
	case v.itself:
		return v.scope.Sees(o.GetName(), o.GetName())
	}
	return v.scope.Sees(o.GetNamespace(), o.GetName())
}

// Covers reports whether everything that another visibility shows may be seen.
func (v *Visibility) Covers(other *Visibility) bool {
	switch {
	case v == nil:
		return true
	case other == nil:
		return false
	}
	for _, namespace := range other.scope.Namespaces {
		if !v.scope.SeesNamespace(namespace) {
			return false
		}
	}
	for namespace, names := range other.scope.Names {
		for _, name := range names {
			if !v.scope.Sees(namespace, name) {
				return false
			}
		}
	}
	return true
}

// Name is the visibility's name in event ids, which must be short; "" is all. It only distinguishes the visibilities
// of one client, to decide whether that client is reset. A client that invents a name deceives only itself.
func (v *Visibility) Name() string {
	if v == nil {
		return ""
	}
	return "s" + strings.ToLower(base32.HexEncoding.EncodeToString(v.key[:5]))
}

// Tag is the visibility's name in ETags and continue tokens; "" is all.
func (v *Visibility) Tag() string {
	if v == nil {
		return ""
	}
	return "s" + v.key.text()
}

// Same reports whether two visibilities show the same.
func (v *Visibility) Same(other *Visibility) bool {
	if v == nil || other == nil {
		return v == other
	}
	return v.key == other.key
}

// Summary is a visibility in the form that clients are told.
type Summary struct {
	All        bool                `json:"all,omitempty"`
	Namespaces []string            `json:"namespaces"`
	Names      map[string][]string `json:"names,omitempty"` // by namespace; names under "" are visible in every namespace
}

func (v *Visibility) Summary() Summary {
	if v == nil {
		return Summary{All: true, Namespaces: []string{}}
	}
	return Summary{Namespaces: append([]string{}, v.scope.Namespaces...), Names: v.scope.Names}
}

// VisibleTarget is what a request reads of a store: its target, as far as its caller may see it.
type VisibleTarget struct {
	Target
	Visible *Visibility
}

// VisibleTargetKey identifies a VisibleTarget.
type VisibleTargetKey struct {
	target  Target
	visible visibilityKey
	narrow  bool // not all of the target is visible; visible says what is
}

func (p VisibleTarget) Key() VisibleTargetKey {
	if p.Visible == nil {
		return VisibleTargetKey{target: p.Target}
	}
	return VisibleTargetKey{target: p.Target, visible: p.Visible.key, narrow: true}
}

// Namespaces are those in which all of it is.
func (p VisibleTarget) Namespaces() stream.NamespaceSet {
	switch {
	case p.Visible != nil:
		return p.Visible.where
	case p.Namespace != "":
		return stream.Namespaces(p.Namespace)
	}
	return stream.AllNamespaces()
}

// List returns the objects that a selector selects; see cache.Snapshot.List.
func (p VisibleTarget) List(snapshot *cache.Snapshot, selector cache.Selector, afterNamespace, afterName string) iter.Seq[*cluster.Object] {
	all := snapshot.List(p.Namespaces(), selector, afterNamespace, afterName)
	if p.Visible == nil {
		return all
	}
	return func(yield func(*cluster.Object) bool) {
		for o := range all {
			if p.Visible.Sees(o) && !yield(o) {
				return
			}
		}
	}
}

// IsBound reports whether it, or some of it, may be seen only because of permissions in namespaces.
func (p VisibleTarget) IsBound() bool {
	return p.Visible != nil || p.Namespace != "" || p.Name != "" && AreNamespaces(p.Group, p.Resource)
}

// BoundTo is the namespace in which it is permitted to see an object of it; "" if it is permitted
// in all.
func (p VisibleTarget) BoundTo(o *cluster.Object) (namespace string) {
	if namespace = o.GetNamespace(); AreNamespaces(p.Group, p.Resource) {
		namespace = o.GetName()
	}
	if !p.IsBound() || p.Visible != nil && has(p.Visible.scope.Names[""], o.GetName()) {
		return ""
	}
	return namespace
}

func has(sorted []string, s string) bool {
	_, found := slices.BinarySearch(sorted, s)
	return found
}

// AreNamespaces reports whether a resource is Kubernetes' own namespaces, each of which counts as
// being within itself.
func AreNamespaces(group, resource string) bool { return group == "" && resource == "namespaces" }
