// Package auth answers two questions: who is calling, and may they see that.
//
// An Authenticator turns a bearer token into an Identity. It accepts JSON Web Tokens of configured
// issuers only, signed with a key of that issuer and an algorithm that fits the key, meant for a
// configured audience, and not expired. It never calls out while keys are known; keys are fetched
// and refreshed by Run.
//
// An Authorizer turns an Identity and a Request into a Decision. It fails closed: an error is never an
// allow and is never remembered.
//
// What a caller is told about a bad token is Challenge's and PublicText's to say; the errors themselves
// name the cause and are for the log. They never contain a token.
//
// Package session keeps an Identity in a browser's hands, package oidc signs people in at a provider; packages sar, rbac and policy are
// the Authorizers. The package serves no HTTP and reads no cookies: where a token comes from is its caller's business.
package auth

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Names that Kubernetes gives to callers, and what it keeps for itself.
const (
	anonymousUser        = "system:anonymous"
	unauthenticatedGroup = "system:unauthenticated"
	authenticatedGroup   = "system:authenticated"
	reservedPrefix       = "system:"
)

// Identity is who is calling, as Kubernetes would know them. It must not be changed once returned.
type Identity struct {
	// Username and Groups are what a SubjectAccessReview asks about. Every identity has a group:
	// system:authenticated, or system:unauthenticated for the anonymous one.
	Username string
	Groups   []string
	// Claims are the token's verified claims as JSON decodes them; nil for the anonymous identity.
	Claims map[string]any
	// ExpiresAt is when the token ends, and with it everything that began under it; zero: never.
	ExpiresAt time.Time
	// Anonymous says that no credentials were given. From is then the network that the request came from, if the caller of
	// the authenticator has filled it in.
	Anonymous bool
	From      string
	// Begun is when the caller signed in, as the issuer's clock has it: the claim iat, and of a session that was renewed that
	// of its first token; zero: not known. Session is the issuer's own name of it (the claim sid), if it has one.
	Begun   time.Time
	Session string
	// Token, if not empty, is what somebody is known by who is asked about again and again: a ServiceAccount.
	Token Secret
	// Cluster, if not empty, is the only one where the name means anything: the gateway's name of the cluster
	// whose service account this is. Another cluster's of the same name is somebody else. See Guard.
	Cluster string
}

// Payer is to whom is charged what an identity asks for: a user; or of those who are nobody in particular all of a network, or one
// of them could have the share of all. No user has such a name, since names that begin so are reserved.
func (id Identity) Payer() string {
	if id.Anonymous {
		return id.Username + " from " + id.From
	}
	return id.Username
}

// Secret is a text that is not to be seen where values are printed.
type Secret string

// String hides it.
func (Secret) String() string { return "[secret]" }

// GoString hides it.
func (Secret) GoString() string { return "[secret]" }

// MarshalText hides it from loggers that write JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

// Request is one question to an Authorizer: may this verb be done to that.
type Request struct {
	Cluster     string // the gateway's name of the cluster
	Verb        string // get, list or watch
	Group       string // empty: the core group
	Version     string
	Resource    string // plural, as in paths
	Subresource string
	Namespace   string // empty: all namespaces, or a cluster-scoped resource
	Name        string // empty: all names
	// Path, if not empty, makes it a question about a URL that is no resource, such as /apis; then Cluster and Verb count
	// besides, and nothing else. Its Scope is not asked for.
	Path string
}

// Decision answers a Request. Reason is the authorizer's own, for logs; it may name roles and
// bindings, so it is not for the caller.
type Decision struct {
	Allowed bool
	Reason  string
}

// Authorizer decides what an identity may see. It stands beside its implementations, not its consumer,
// because app, http and the implementations all speak of it.
//
// An error means that the question could not be answered: the caller must refuse, and may say that
// asking again could help.
type Authorizer interface {
	// Authorize answers one question.
	Authorize(ctx context.Context, id Identity, req Request) (Decision, error)
	// Scope answers where Authorize would say yes: in all namespaces, in some, or to objects by their name
	// only. If the request names a namespace, only there. The request's Name is not looked at.
	Scope(ctx context.Context, id Identity, req Request) (Scope, error)
	// Changes has changed called when answers about an identity may have become others; it must return at once, and
	// may still be called while stop is. Who asks first for the changes and then for a Scope misses none of those that
	// the authorizer is told of; Kubernetes tells nobody of what a SubjectAccessReview would answer. stop must be
	// called, and may be called again.
	Changes(id Identity, changed func()) (stop func())
}

// Errors of Authenticate and Authorize.
var (
	// ErrNoCredentials: no token was given, and anonymous requests are not allowed.
	ErrNoCredentials = errors.New("credentials required")
	// ErrBadToken: the token is not one of ours, whatever the reason.
	ErrBadToken = errors.New("invalid token")
	// ErrTokenExpired: the token was good and has ended. It is an ErrBadToken, too.
	ErrTokenExpired = errors.New("token expired")
	// ErrUnavailable: the issuer's keys were never fetched, so no token of it can be checked.
	ErrUnavailable = errors.New("the issuer's keys are not known yet")
	// ErrUndecided: the cluster's API server could not be asked for a decision, or gave none.
	ErrUndecided = errors.New("authorization could not be decided")
	// ErrUnconfirmed: what the permissions are could not be confirmed for so long, though the cluster answers, that they do
	// not count any more. It is an ErrUndecided, too. What goes on by an earlier answer must end.
	ErrUnconfirmed = fmt.Errorf("%w: permissions could not be confirmed for too long", ErrUndecided)
)
