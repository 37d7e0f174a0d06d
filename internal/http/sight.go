package http

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/trail"
	"github.com/kubecast/kubecast/internal/stream"
)

// sight is what a caller may see of what a path names, if that is not all of it: who may see some namespaces, or single
// objects, is shown these. It never changes; a nil one is all.
type sight struct {
	scope  auth.Scope
	where  stream.Scope // in which all of that is
	itself bool         // the kind is that of namespaces, each of which is in itself
	key    sightKey     // tells it from all others, on all replicas
}

// sightKey is the digest of what a sight shows. Two callers are taken for the same only by the whole of it: of a shorter
// one, somebody who can choose names that they may see could search for another's.
type sightKey [sha256.Size]byte

// text is the key as it stands in tags and tokens.
func (k sightKey) text() string {
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(k[:]))
}

// maxNarrow is how many namespaces are looked into one by one. Who may see more of them, but not all, is served from
// all, and passed over what he may not see.
const maxNarrow = 64

// permitted asks what a caller may do a verb to, of what a target names. Of what is served already it is known that it exists; a
// kind that is removed ends its streams by itself, and not for want of a permission.
func (s *Server) permitted(ctx context.Context, kinds *cache.Kinds, id auth.Identity, t target, verb string, exists bool) (auth.Scope, error) {
	request := t.request(kinds.Cluster().Name(), verb)
	decision, err := s.opts.Authorizer.Authorize(ctx, id, request)
	switch {
	case err != nil:
		return auth.Scope{}, err
	case decision.Allowed:
		return auth.Scope{All: true}, nil
	case t.name != "":
		return auth.Scope{}, nil
	case t.namespace == "" && !exists && s.isMadeUp(ctx, kinds, id, func(ctx context.Context) (cluster.Kind, error) {
		return kinds.Cluster().Resolve(ctx, t.group, t.version, t.resource)
	}):
		return auth.Scope{}, nil
	}
	return s.opts.Authorizer.Scope(ctx, id, request)
}

// sightOf is what a scope shows of a target, which is of a kind; ok is false if that is nothing.
func sightOf(scope auth.Scope, t target, kind cluster.Kind) (_ *sight, ok bool) {
	s := &sight{scope: scope, itself: kind.Group == "" && kind.Resource == "namespaces"}
	if !kind.Namespaced && !s.itself { // then it is in no namespace, whatever one may see in them
		s.scope.Namespaces, s.scope.Names = nil, maps.Clone(scope.Names)
		maps.DeleteFunc(s.scope.Names, func(namespace string, _ []string) bool { return namespace != "" })
	}
	switch {
	case scope.All, t.namespace != "" && scope.SeesNamespace(t.namespace):
		return nil, true
	case s.scope.Empty():
		return nil, false
	}
	namespaces := slices.AppendSeq(slices.Clone(scope.Namespaces), maps.Keys(scope.Names))
	switch {
	case t.namespace != "":
		s.where = stream.Namespaces(t.namespace)
	case kind.Namespaced && len(scope.Names[""]) == 0 && len(namespaces) <= maxNarrow:
		s.where = stream.Namespaces(namespaces...)
	}
	s.key = sha256.Sum256([]byte(reply.MustJSON(s.scope)))
	return s, true
}

// sees reports whether an object is within sight.
func (s *sight) sees(o *cluster.Object) bool {
	switch {
	case s == nil:
		return true
	case s.itself:
		return s.scope.Sees(o.GetName(), o.GetName())
	}
	return s.scope.Sees(o.GetNamespace(), o.GetName())
}

// covers reports whether all that another one shows is within sight.
func (s *sight) covers(other *sight) bool {
	switch {
	case s == nil:
		return true
	case other == nil:
		return false
	}
	for _, namespace := range other.scope.Namespaces {
		if !s.scope.SeesNamespace(namespace) {
			return false
		}
	}
	for namespace, names := range other.scope.Names {
		for _, name := range names {
			if !s.scope.Sees(namespace, name) {
				return false
			}
		}
	}
	return true
}

// name is the sight's in event ids, which are to be short; "" is all. It tells a client's own sights from each other, by which
// the client is reset, and nobody else's: whoever makes one up deceives themselves.
func (s *sight) name() string {
	if s == nil {
		return ""
	}
	return "s" + strings.ToLower(base32.HexEncoding.EncodeToString(s.key[:5]))
}

// tag is the sight's wherever an answer is named; "" is all.
func (s *sight) tag() string {
	if s == nil {
		return ""
	}
	return "s" + s.key.text()
}

// same reports whether two sights show the same.
func (s *sight) same(other *sight) bool {
	if s == nil || other == nil {
		return s == other
	}
	return s.key == other.key
}

// visible is a sight as clients are told it.
type visible struct {
	All        bool                `json:"all,omitempty"`
	Namespaces []string            `json:"namespaces"`
	Names      map[string][]string `json:"names,omitempty"` // by namespace; under "" those of every namespace
}

func (s *sight) visible() visible {
	if s == nil {
		return visible{All: true, Namespaces: []string{}}
	}
	return visible{Namespaces: append([]string{}, s.scope.Namespaces...), Names: s.scope.Names}
}

// identity is what remains of an object that may not be seen any more.
type identity struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   identityMetadata `json:"metadata"`
}

type identityMetadata struct {
	Name            string `json:"name"`
	Namespace       string `json:"namespace,omitempty"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
}

func identityOf(kind cluster.Kind, o *cluster.Object, version uint64) identity {
	return identity{kind.APIVersion(), kind.Kind, identityMetadata{o.GetName(), o.GetNamespace(), o.UID(), strconv.FormatUint(version, 10)}}
}

// part is what a request reads of a store: what its path names, within its caller's sight.
type part struct {
	target
	sight *sight
}

// partKey tells parts from each other.
type partKey struct {
	target target
	sight  sightKey
	narrow bool // there is a sight, and the key is its
}

// read is the part as the audit log names it.
func (p part) read(verb string) trail.Read {
	read := p.target.read(verb)
	read.Partly = p.sight != nil
	return read
}

func (p part) key() partKey {
	if p.sight == nil {
		return partKey{target: p.target}
	}
	return partKey{target: p.target, sight: p.sight.key, narrow: true}
}

// scope is where all of the part is.
func (p part) scope() stream.Scope {
	switch {
	case p.sight != nil:
		return p.sight.where
	case p.namespace != "":
		return stream.Namespaces(p.namespace)
	}
	return stream.AllNamespaces()
}

// list is the part's objects that a selector selects; see cache.Snapshot.List.
func (p part) list(snapshot *cache.Snapshot, selector cache.Selector, afterNamespace, afterName string) iter.Seq[*cluster.Object] {
	all := snapshot.List(p.scope(), selector, afterNamespace, afterName)
	if p.sight == nil {
		return all
	}
	return func(yield func(*cluster.Object) bool) {
		for o := range all {
			if p.sight.sees(o) && !yield(o) {
				return
			}
		}
	}
}
