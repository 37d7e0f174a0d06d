package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// session is what a session's cookie says.
type session struct {
	Username string         `json:"u,omitempty"`
	Groups   []string       `json:"g,omitempty"`
	Claims   map[string]any `json:"c,omitempty"`
	Expires  int64          `json:"e"` // seconds since 1970
	Cluster  string         `json:"k,omitempty"`
	Begun    int64          `json:"b,omitempty"` // likewise; 0: not known
	SignedIn string         `json:"l,omitempty"` // Identity.Session
	// Token is all that the session of a ServiceAccount is: what its cluster says of it counts, not what it said once.
	Token string `json:"t,omitempty"`
	// Of a session that can be renewed: what ties it to its renewal, and when it was sealed, in milliseconds since 1970.
	ID     string `json:"i,omitempty"`
	Sealed int64  `json:"s,omitempty"`
}

func sessionOf(id Identity) session {
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

func (s session) identity() Identity {
	id := Identity{
		Username: s.Username, Groups: s.Groups, Claims: s.Claims, ExpiresAt: time.Unix(s.Expires, 0), Cluster: s.Cluster, Session: s.SignedIn,
		Token: Secret(s.Token),
	}
	if s.Begun != 0 {
		id.Begun = time.Unix(s.Begun, 0)
	}
	return id
}

// maxCookie is what browsers keep of a cookie with its name (RFC 6265, section 6.1), less the name and attributes.
const maxCookie = 3800

// ErrTooLarge: the identity does not fit into a cookie.
var ErrTooLarge = errors.New("the identity has too many groups or claims for a cookie")

// Confirmer says whether what an identity once stood on still counts, and who that is now. Authenticator is one.
type Confirmer interface {
	Confirm(ctx context.Context, id Identity) (Identity, error)
}

// Sessions are identities in cookies. The gateway remembers none of them: a session lasts as long as the token did that it
// began with, and whoever has the cookie is its user. But each time that one is opened it is confirmed, so that it is
// worth no more than its token would be.
type Sessions struct {
	sealer    *Sealer
	confirmer Confirmer
}

// NewSessions are sealed by the sealer, and confirmed by the confirmer.
func NewSessions(sealer *Sealer, confirmer Confirmer) *Sessions {
	return &Sessions{sealer: sealer, confirmer: confirmer}
}

// Seal makes a cookie of an identity that ends.
func (s *Sessions) Seal(id Identity) (string, error) {
	if id.Anonymous || id.ExpiresAt.IsZero() {
		return "", ErrNoCredentials
	}
	sealed, err := s.sealer.seal(purposeSession, sessionOf(id))
	if err == nil && len(sealed) > maxCookie {
		err = ErrTooLarge
	}
	if err != nil {
		return "", fmt.Errorf("begin a session: %w", err)
	}
	return sealed, nil
}

// Open says whose session a cookie is. An error is an ErrBadToken (ErrTokenExpired), ErrUnavailable, or the context's.
func (s *Sessions) Open(ctx context.Context, cookie string) (Identity, error) {
	var read session
	if err := s.sealer.open(purposeSession, cookie, &read); err != nil {
		return Identity{}, refused(fmt.Errorf("session: %w", err))
	}
	id := read.identity()
	if !time.Now().Before(id.ExpiresAt) {
		return Identity{}, refused(fmt.Errorf("session: %w: at %v", ErrTokenExpired, id.ExpiresAt))
	}
	return s.confirmer.Confirm(ctx, id)
}

// TicketTime is how long a ticket may be used.
const TicketTime = 30 * time.Second

// Tickets are for requests that can carry neither a header nor a cookie: each for one request of its caller, soon.
// The gateway remembers those that were used. Replicas share no memory, so each of them would take a ticket once.
type Tickets struct {
	sessions *Sessions
	used     once
}

type ticket struct {
	ID      string  `json:"i"`
	For     string  `json:"f"` // the request
	Expires int64   `json:"x"` // milliseconds since 1970
	Caller  session `json:"s"`
}

// NewTickets are sealed and confirmed as the sessions are.
func NewTickets(sessions *Sessions) *Tickets {
	return &Tickets{sessions: sessions}
}

// Issue makes a ticket for one request, in whatever form the caller of Redeem gives it, too.
func (t *Tickets) Issue(id Identity, request string) (text string, expires time.Time, err error) {
	if id.Anonymous || id.ExpiresAt.IsZero() {
		return "", time.Time{}, ErrNoCredentials
	}
	expires = time.Now().Add(TicketTime)
	if id.ExpiresAt.Before(expires) {
		expires = id.ExpiresAt
	}
	text, err = t.sessions.sealer.seal(purposeTicket, ticket{ID: rand.Text(), For: request, Expires: expires.UnixMilli(), Caller: sessionOf(id)})
	if err == nil && len(text) > maxSealed {
		err = ErrTooLarge
	}
	return text, expires, err
}

// Redeem says whose ticket it is, and takes it: it is of no more use, also if the request is another than that it is
// for. An error is an ErrBadToken (ErrTokenExpired), ErrUnavailable, or the context's.
func (t *Tickets) Redeem(ctx context.Context, text, request string) (Identity, error) {
	var read ticket
	if err := t.sessions.sealer.open(purposeTicket, text, &read); err != nil {
		return Identity{}, refused(fmt.Errorf("ticket: %w", err))
	}
	now, expires, id := time.Now(), time.UnixMilli(read.Expires), read.Caller.identity()
	switch {
	case !now.Before(expires), !now.Before(id.ExpiresAt):
		return Identity{}, refused(fmt.Errorf("ticket: %w: at %v", ErrTokenExpired, expires))
	case !t.used.take(read.ID, now, expires):
		return Identity{}, refused(errors.New("ticket: used before"))
	case read.For != request:
		return Identity{}, refused(errors.New("ticket: for another request"))
	}
	return t.sessions.confirmer.Confirm(ctx, id)
}
