package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// session is the content of a session's cookie.
type session struct {
	Username string         `json:"u,omitempty"`
	Groups   []string       `json:"g,omitempty"`
	Claims   map[string]any `json:"c,omitempty"`
	Expires  int64          `json:"e"` // seconds since 1970
	Cluster  string         `json:"k,omitempty"`
	Begun    int64          `json:"b,omitempty"` // in the same form; 0: not known
	SignedIn string         `json:"l,omitempty"` // auth.Identity.Session
	// Token is the only content of a ServiceAccount's session: what its cluster now says of the token counts, and not
	// what it said once.
	Token string `json:"t,omitempty"`
	// A session that can be renewed has these: the id that ties it to its renewal, and when it was sealed, in
	// milliseconds since 1970.
	ID     string `json:"i,omitempty"`
	Sealed int64  `json:"s,omitempty"`
}

func sessionOf(id auth.Identity) session {
	if id.Token != "" {
		return session{Token: string(id.Token), Expires: id.ExpiresAt.Unix()}
	}
	s := session{
		Username: id.Username, Groups: id.Groups, Claims: id.Claims, Expires: id.ExpiresAt.Unix(), Cluster: id.Cluster, SignedIn: id.Session,
	}
	if !id.Begun.IsZero() {
		s.Begun = id.Begun.Unix()
	}
	return s
}

func (s session) identity() auth.Identity {
	id := auth.Identity{
		Username: s.Username, Groups: s.Groups, Claims: s.Claims, ExpiresAt: time.Unix(s.Expires, 0), Cluster: s.Cluster, Session: s.SignedIn,
		Token: auth.Secret(s.Token),
	}
	if s.Begun != 0 {
		id.Begun = time.Unix(s.Begun, 0)
	}
	return id
}

// MaxCookie is the size of a value that fits into a browser's cookie, in bytes: the limit of RFC 6265, section 6.1,
// less the name and attributes.
const MaxCookie = 3800

// ErrTooLarge means that the identity does not fit into a cookie.
var ErrTooLarge = errors.New("the identity has too many groups or claims for a cookie")

// Confirmer checks whether the credentials of an identity still count, and returns the identity as it is now.
// Authenticator implements it.
type Confirmer interface {
	Confirm(ctx context.Context, id auth.Identity) (auth.Identity, error)
}

// Sessions are identities in cookies. The gateway remembers none of them: a session lasts as long as the token with
// which it began, and a client that has the cookie is its user. Each time that a session is opened, it is confirmed,
// so that it is worth no more than its token.
type Sessions struct {
	sealer    *Sealer
	confirmer Confirmer
}

// NewSessions returns Sessions that are sealed by the sealer, and confirmed by the confirmer.
func NewSessions(sealer *Sealer, confirmer Confirmer) *Sessions {
	return &Sessions{sealer: sealer, confirmer: confirmer}
}

// Seal makes a cookie for an identity, which must expire and not be anonymous.
func (s *Sessions) Seal(id auth.Identity) (string, error) {
	if id.Anonymous || id.ExpiresAt.IsZero() {
		return "", auth.ErrNoCredentials
	}
	return s.sealer.SealSession(Sealed{Identity: id})
}

// Open returns the identity of a session's cookie. An error wraps auth.ErrBadToken (also ErrTokenExpired) or
// auth.ErrUnavailable, or is the context's.
func (s *Sessions) Open(ctx context.Context, cookie string) (auth.Identity, error) {
	read, err := s.sealer.OpenSession(cookie)
	if err != nil {
		return auth.Identity{}, err
	}
	id := read.Identity
	if !time.Now().Before(id.ExpiresAt) {
		return auth.Identity{}, auth.Refused(fmt.Errorf("session: %w: at %v", auth.ErrTokenExpired, id.ExpiresAt))
	}
	return s.confirmer.Confirm(ctx, id)
}

// Sealed is the content of a session's cookie.
type Sealed struct {
	Identity auth.Identity
	// ID ties a session to its renewal; empty: it cannot be renewed. At is when a session that can be renewed was
	// sealed.
	ID string
	At time.Time
}

// SealSession makes a session's cookie. The error may be ErrTooLarge.
func (s *Sealer) SealSession(sealed Sealed) (string, error) {
	write := sessionOf(sealed.Identity)
	if sealed.ID != "" {
		write.ID, write.Sealed = sealed.ID, sealed.At.UnixMilli()
	}
	cookie, err := s.Seal(purposeSession, write)
	if err == nil && len(cookie) > MaxCookie {
		err = ErrTooLarge
	}
	if err != nil {
		return "", fmt.Errorf("begin a session: %w", err)
	}
	return cookie, nil
}

// OpenSession reads a session's cookie. The session may have ended, and is not confirmed. An error wraps
// auth.ErrBadToken.
func (s *Sealer) OpenSession(cookie string) (Sealed, error) {
	var read session
	if err := s.Open(purposeSession, cookie, &read); err != nil {
		return Sealed{}, auth.Refused(fmt.Errorf("session: %w", err))
	}
	return Sealed{Identity: read.identity(), ID: read.ID, At: time.UnixMilli(read.Sealed)}, nil
}
