// Package shards divides kinds among gateways that each hold a part of the objects (experimental), and puts the parts together again.
//
// A shard is a range of the hashes of uids. A core of a shard asks its API server for that range only (ToServer; Kubernetes' alpha
// ShardedListAndWatch), and answers nobody but edges that expect this very shard (Only). An edge asks all shards, and its transport
// (Merge) makes one list and one watch of what they answer.
//
// What is merged is what one server of all objects would have answered: a list at one version, and events in the order of
// versions, each told once every shard has told all that is older. So a position means what it means anywhere else, and an edge
// goes on where another one ended. The price is that an edge waits for the shard that is furthest behind: it tells nothing
// while one is away, and an event is as late as the next event or bookmark of the quietest shard.
//
// Whatever does not fit together (a core of another shard, shards that tell of different histories, an object in two of them, a
// version that goes back) is an error, and never a smaller or an older state.
package shards

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"net/http"
	"net/url"
	"strings"
)

// Header is a header of requests and answers. An edge says in it which shard it expects, as K/N, or */N where any will do. A core of a
// shard says in the answer to whoever reads a kind of which shard that is; without the header, an answer is of all objects.
const Header = "Kubecast-Shard"

// Shard is one of several ranges of uids. The zero Shard has all.
type Shard struct {
	Number int // from 1
	Of     int
}

// Is reports whether it is a part, and not all.
func (s Shard) Is() bool { return s.Of > 0 }

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Number, s.Of) }

// start is the least hash of a shard.
func start(number, of int) uint64 {
	quotient, _ := bits.Div64(uint64(number-1), 0, uint64(of))
	return quotient
}

// Selector is the shard as a shardSelector of Kubernetes: metav1.ListOptions says what that is.
func (s Shard) Selector() string {
	end := "0x10000000000000000"
	if s.Number < s.Of {
		end = fmt.Sprintf("0x%016x", start(s.Number+1, s.Of))
	}
	return fmt.Sprintf("shardRange(object.metadata.uid, '0x%016x', '%s')", start(s.Number, s.Of), end)
}

// Has reports whether an object is in the shard.
func (s Shard) Has(uid string) bool {
	if !s.Is() {
		return true
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid)) // cannot fail
	hash := h.Sum64()
	return hash >= start(s.Number, s.Of) && (s.Number == s.Of || hash < start(s.Number+1, s.Of))
}

// Share is what a core has of which kinds. The zero Share has all of all.
type Share struct {
	Shard Shard
	Kinds func(group, resource string) bool // which are divided; all others each core has whole
}

// Of is the shard of a kind that the core has.
func (p Share) Of(group, resource string) Shard {
	if !p.Shard.Is() || !p.Kinds(group, resource) {
		return Shard{}
	}
	return p.Shard
}

// shardOf is the shard that a request is for, if it reads a kind that is divided, and whether it lists or watches that.
func (p Share) shardOf(method, path string) (shard Shard, lists bool) {
	group, resource, rest := kindOf(method, path)
	if resource == "" {
		return Shard{}, false
	}
	return p.Of(group, resource), rest == 0
}

// kindOf names the kind that a request reads, and says how many segments of a path of Kubernetes' API follow: none if it lists or watches.
func kindOf(method, path string) (group, resource string, rest int) {
	if method != http.MethodGet {
		return "", "", 0
	}
	segments := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(segments) > 2 && segments[0] == "api":
		segments = segments[2:]
	case len(segments) > 3 && segments[0] == "apis":
		group, segments = segments[1], segments[3:]
	default:
		return "", "", 0
	}
	if len(segments) > 2 && segments[0] == "namespaces" {
		segments = segments[2:]
	}
	return group, segments[0], len(segments) - 1
}

// ofCluster is a gateway's path without the cluster that it begins with. Whatever follows may be anybody's: a pod may be named api, and be
// in a namespace that is named clusters.
func ofCluster(path string) string {
	if rest, is := strings.CutPrefix(path, "/clusters/"); is {
		_, rest, _ = strings.Cut(rest, "/")
		return "/" + rest
	}
	return path
}

// ofServer is an API server's path without what it begins with where others stand before the server.
func ofServer(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if s == "api" || s == "apis" {
			return "/" + strings.Join(segments[i:], "/")
		}
	}
	return path
}

// ToServer returns a transport to an API server by which a core asks for its part only.
func (p Share) ToServer(base http.RoundTripper) http.RoundTripper {
	if !p.Shard.Is() {
		return base
	}
	return &toServer{p, base}
}

type toServer struct {
	share Share
	base  http.RoundTripper
}

// WrappedRoundTripper lets others find the transport below, as to close its connections.
func (t *toServer) WrappedRoundTripper() http.RoundTripper { return t.base }

// RoundTrip implements http.RoundTripper. That the answer has no more than the part is not looked at here: an API server that does not
// know shardSelector ignores it, and so Refuse looks at each object.
func (t *toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	shard, lists := t.share.shardOf(r.Method, ofServer(r.URL.Path))
	if !shard.Is() || !lists {
		return t.base.RoundTrip(r)
	}
	narrowed := r.Clone(r.Context())
	if narrowed.URL.RawQuery != "" {
		narrowed.URL.RawQuery += "&"
	}
	narrowed.URL.RawQuery += "shardSelector=" + url.QueryEscape(shard.Selector())
	return t.base.RoundTrip(narrowed)
}

// Refuse is an error if an object is not in a shard, of which the API server was asked for no other.
func (s Shard) Refuse(uid string) error {
	if s.Has(uid) {
		return nil
	}
	return fmt.Errorf("the API server told of an object outside of shard %s: it ignores shardSelector (Kubernetes 1.36 or later, with the feature gate ShardedListAndWatch, has it)", s)
}
