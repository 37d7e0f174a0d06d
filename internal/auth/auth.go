// Package auth answers two questions: who is calling, and may they see that.
//
// An Authenticator turns a bearer token into an Identity. It accepts JSON Web Tokens of configured issuers, signed
// with a key of that issuer and an algorithm that fits the key, meant for a configured audience, and not expired. Run
// fetches and refreshes the keys. While keys are known, a request for a token that fits one of them waits for no
// fetch.
//
// An Authorizer turns an Identity and a Request into a Decision. It fails closed: an error is never an
// allow and is never remembered.
//
// Challenge and PublicText say what a caller is told about a bad token. The errors themselves name the cause, and are
// for the log. They never contain a token.
//
// Package session lets a browser keep an Identity, and package oidc signs users in at a provider. Packages sar, rbac
// and policy are the Authorizers. This package serves no HTTP and reads no cookies: its callers find the tokens.
package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Names that Kubernetes gives to callers, and the prefix that it reserves.
const (
	anonymousUser        = "system:anonymous"
	unauthenticatedGroup = "system:unauthenticated"
	authenticatedGroup   = "system:authenticated"
	reservedPrefix       = "system:"
)

// Identity is who is calling, as Kubernetes would know them. It must not be changed.
type Identity struct {
	// Username and Groups are those of a SubjectAccessReview. Every identity has a group: system:authenticated, or
	// system:unauthenticated if it is anonymous.
	Username string
	Groups   []string
	// Claims are the token's verified claims, as decoded from JSON; nil for the anonymous identity.
	Claims map[string]any
	// ExpiresAt is when the token expires, and with it everything that began under it; zero: never.
	ExpiresAt time.Time
	// Anonymous says that no credentials were given. From is then the network that the request came from, if the
	// caller of the authenticator has set it.
	Anonymous bool
	From      string
	// Begun is when the caller signed in, by the issuer's clock: the claim iat, for a renewed session that of its
	// first token; zero: not known. Session is the issuer's name of that session (the claim sid), if it has one.
	Begun   time.Time
	Session string
	// Token, if not empty, is the token of a ServiceAccount, about which the cluster is asked again and again.
	Token Secret
	// Cluster, if not empty, is the gateway's name of the cluster whose service account this is. The name means
	// nothing elsewhere: a service account of the same name in another cluster is another one. See Guard.
	Cluster string
	// Gateway says that it is another gateway, which asks for many: limits of single users are none for it.
	Gateway bool
}

// gatewayOwner begins the names to which the costs of other gateways are charged. Its prefix is reserved.
const gatewayOwner = reservedPrefix + "kubecast:gateway "

// IsGateway reports whether a name of Identity.QuotaOwner is another gateway's.
func IsGateway(quotaOwner string) bool { return strings.HasPrefix(quotaOwner, gatewayOwner) }

// QuotaOwner is the name to which the costs of an identity's requests are charged. For a user it is the user's own.
// Anonymous callers share one name for each network, so that no network can use up the share of all others. The service
// accounts of a namespace share one, since whoever works in a namespace may make as many of them as they like. Another
// gateway has one of its own. No user can have such a name, since its prefix is reserved.
func (id Identity) QuotaOwner() string {
	if id.Gateway {
		return gatewayOwner + id.Username
	}
	if id.Anonymous {
		return id.Username + " from " + id.From
	}
	if name, is := strings.CutPrefix(id.Username, serviceAccountPrefix); is {
		namespace, _, _ := strings.Cut(name, ":")
		return "system:serviceaccounts:" + namespace + " of " + id.Cluster
	}
	return id.Username
}

// Secret is a text that is hidden where values are printed.
type Secret string

// String hides it.
func (Secret) String() string { return "[secret]" }

// GoString hides it.
func (Secret) GoString() string { return "[secret]" }

// MarshalText hides it from loggers that write JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// Request is one question to an Authorizer: may this verb be done on that resource.
type Request struct {
	Cluster     string // the gateway's name of the cluster
	Verb        string // get, list or watch
	Group       string // empty: the core group
	Version     string
	Resource    string // plural, as in paths
	Subresource string
	Namespace   string // empty: all namespaces, or a cluster-scoped resource
	Name        string // empty: all names
	// Path, if not empty, makes it a question about a URL that is not a resource, such as /apis. Of the other fields,
	// only Cluster and Verb then count. Such a request must not be passed to Scope.
	Path string
}

// Decision answers a Request. Reason is for logs; it may name roles and bindings, so callers must not see it.
type Decision struct {
	Allowed bool
	Reason  string
}

// Authorizer decides what an identity may see. It is declared here and not by a consumer, because app, http and the
// implementations all use it.
//
// An error means that the question could not be answered. The caller must refuse the request, and may say that trying
// again could help.
type Authorizer interface {
	// Authorize answers one question.
	Authorize(ctx context.Context, id Identity, req Request) (Decision, error)
	// Scope answers where Authorize would say yes: in all namespaces, in some, or only for objects by name. If the
	// request names a namespace, the answer is only about that. The request's Name is ignored.
	Scope(ctx context.Context, id Identity, req Request) (Scope, error)
	// Changes arranges for changed to be called when answers about an identity may have changed. Changed must return
	// at once, and may still be called while stop runs. The caller must call stop in the end; further calls do
	// nothing.
	//
	// A caller that first asks for Changes and then for a Scope misses no change of which the authorizer is notified.
	// Kubernetes sends no notification when a SubjectAccessReview would be answered differently.
	Changes(id Identity, changed func()) (stop func())
}

// Errors of Authenticate and Authorize.
var (
	// ErrNoCredentials means that no token was given, and anonymous requests are not allowed.
	ErrNoCredentials = errors.New("credentials required")
	// ErrBadToken means that the token is not accepted, whatever the reason.
	ErrBadToken = errors.New("invalid token")
	// ErrTokenExpired means that the token was good and has expired. It is an ErrBadToken, too.
	ErrTokenExpired = errors.New("token expired")
	// ErrUnavailable means that the token cannot be checked at the moment, as when its issuer's keys were never
	// fetched.
	ErrUnavailable = errors.New("the issuer's keys are not known yet")
	// ErrUndecided means that the cluster's API server could not be asked for a decision, or gave none.
	ErrUndecided = errors.New("authorization could not be decided")
	// ErrUnconfirmed means that permissions do not count any more, because they could not be confirmed for too long
	// although the cluster answers. It is an ErrUndecided, too. What goes on by an earlier answer must end.
	ErrUnconfirmed = fmt.Errorf("%w: permissions could not be confirmed for too long", ErrUndecided)
)
