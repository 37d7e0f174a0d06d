package access

import (
	"crypto/sha256"
	"encoding/base32"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/trail"
	"github.com/kubecast/kubecast/internal/stream"
)

// Visibility is what a caller may see of what a path names, if that is not all of it: who may see some namespaces, or single
// objects, is shown these. It never changes; a nil one is all.
type Visibility struct {
	scope  auth.Scope
	where  stream.Scope  // in which all of that is
	itself bool          // the kind is that of namespaces, each of which is in itself
	key    visibilityKey // tells it from all others, on all replicas
}

// visibilityKey is the digest of what it shows. Two callers are taken for the same only by the whole of it: of a shorter
// one, somebody who can choose names that they may see could search for another's.
type visibilityKey [sha256.Size]byte

// text is the key as it stands in tags and tokens.
func (k visibilityKey) text() string {
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(k[:]))
}

// maxNarrow is how many namespaces are looked into one by one. Who may see more of them, but not all, is served from
// all, and passed over what he may not see.
const maxNarrow = 64

// VisibilityOf is what a scope shows of a target, which is of a kind; ok is false if that is nothing.
func VisibilityOf(scope auth.Scope, t Target, kind cluster.Kind) (_ *Visibility, ok bool) {
	s := &Visibility{scope: scope, itself: kind.Group == "" && kind.Resource == "namespaces"}
	if !kind.Namespaced && !s.itself { // then it is in no namespace, whatever one may see in them
		s.scope.Namespaces, s.scope.Names = nil, maps.Clone(scope.Names)
		maps.DeleteFunc(s.scope.Names, func(namespace string, _ []string) bool { return namespace != "" })
	}
	switch {
	case scope.All, t.Namespace != "" && scope.SeesNamespace(t.Namespace):
		return nil, true
	case s.scope.Empty():
		return nil, false
	}
	namespaces := slices.AppendSeq(slices.Clone(scope.Namespaces), maps.Keys(scope.Names))
	switch {
	case t.Namespace != "":
		s.where = stream.Namespaces(t.Namespace)
	case kind.Namespaced && len(scope.Names[""]) == 0 && len(namespaces) <= maxNarrow:
		s.where = stream.Namespaces(namespaces...)
	}
	s.key = sha256.Sum256([]byte(reply.MustJSON(s.scope)))
	return s, true
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

// Covers reports whether all that another one shows may be seen.
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

// Name is what it is called in event ids, which are to be short; "" is all. It tells one client's visibilities from each other, by which
// the client is reset, and nobody else's: whoever makes one up deceives themselves.
func (v *Visibility) Name() string {
	if v == nil {
		return ""
	}
	return "s" + strings.ToLower(base32.HexEncoding.EncodeToString(v.key[:5]))
}

// Tag is what it is called wherever an answer is named; "" is all.
func (v *Visibility) Tag() string {
	if v == nil {
		return ""
	}
	return "s" + v.key.text()
}

// Same reports whether two show the same.
func (v *Visibility) Same(other *Visibility) bool {
	if v == nil || other == nil {
		return v == other
	}
	return v.key == other.key
}

// Summary is a visibility as clients are told it.
type Summary struct {
	All        bool                `json:"all,omitempty"`
	Namespaces []string            `json:"namespaces"`
	Names      map[string][]string `json:"names,omitempty"` // by namespace; under "" those of every namespace
}

func (v *Visibility) Summary() Summary {
	if v == nil {
		return Summary{All: true, Namespaces: []string{}}
	}
	return Summary{Namespaces: append([]string{}, v.scope.Namespaces...), Names: v.scope.Names}
}

// Part is what a request reads of a store: what its path names, of that, what its caller may see.
type Part struct {
	Target
	Visible *Visibility
}

// PartKey tells parts from each other.
type PartKey struct {
	target  Target
	visible visibilityKey
	narrow  bool // it is not all of the target; the key tells what it is
}

// Read is the part as the audit log names it.
func (p Part) Read(verb string) trail.Read {
	read := p.Target.Read(verb)
	read.Partly = p.Visible != nil
	return read
}

func (p Part) Key() PartKey {
	if p.Visible == nil {
		return PartKey{target: p.Target}
	}
	return PartKey{target: p.Target, visible: p.Visible.key, narrow: true}
}

// Scope is where all of the part is.
func (p Part) Scope() stream.Scope {
	switch {
	case p.Visible != nil:
		return p.Visible.where
	case p.Namespace != "":
		return stream.Namespaces(p.Namespace)
	}
	return stream.AllNamespaces()
}

// List is the part's objects that a selector selects; see cache.Snapshot.List.
func (p Part) List(snapshot *cache.Snapshot, selector cache.Selector, afterNamespace, afterName string) iter.Seq[*cluster.Object] {
	all := snapshot.List(p.Scope(), selector, afterNamespace, afterName)
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
