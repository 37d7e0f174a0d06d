package auth

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// session is what a session's cookie says.
type session struct {
	Username string         `json:"u"`
	Groups   []string       `json:"g,omitempty"`
	Claims   map[string]any `json:"c,omitempty"`
	Expires  int64          `json:"e"` // seconds since 1970
	Cluster  string         `json:"k,omitempty"`
	// Of a session that can be renewed: what ties it to its renewal, and when it was sealed, in milliseconds since 1970.
	ID     string `json:"i,omitempty"`
	Sealed int64  `json:"s,omitempty"`
}

func sessionOf(id Identity) session {
	return session{Username: id.Username, Groups: id.Groups, Claims: id.Claims, Expires: id.ExpiresAt.Unix(), Cluster: id.Cluster}
}

func (s session) identity() Identity {
	return Identity{Username: s.Username, Groups: s.Groups, Claims: s.Claims, ExpiresAt: time.Unix(s.Expires, 0), Cluster: s.Cluster}
}

// maxCookie is what browsers keep of a cookie with its name (RFC 6265, section 6.1), less the name and attributes.
const maxCookie = 3800

// ErrTooLarge: the identity does not fit into a cookie.
var ErrTooLarge = errors.New("the identity has too many groups or claims for a cookie")

// Session seals an identity that ends, for a cookie. The gateway remembers nothing: the session lasts as long as the
// token did that it began with, whatever becomes of the token, and whoever has the cookie is its user.
func (s *Sealer) Session(id Identity) (string, error) {
	if id.Anonymous || id.ExpiresAt.IsZero() {
		return "", ErrNoCredentials
	}
	sealed, err := s.seal(purposeSession, sessionOf(id))
	if err == nil && len(sealed) > maxCookie {
		err = ErrTooLarge
	}
	if err != nil {
		return "", fmt.Errorf("begin a session: %w", err)
	}
	return sealed, nil
}

// OpenSession says whose session a cookie is. An error is an ErrBadToken (ErrTokenExpired).
func (s *Sealer) OpenSession(cookie string) (Identity, error) {
	var read session
	if err := s.open(purposeSession, cookie, &read); err != nil {
		return Identity{}, refused(fmt.Errorf("session: %w", err))
	}
	id := read.identity()
	if !time.Now().Before(id.ExpiresAt) {
		return Identity{}, refused(fmt.Errorf("session: %w: at %v", ErrTokenExpired, id.ExpiresAt))
	}
	return id, nil
}

// TicketTime is how long a ticket may be used.
const TicketTime = 30 * time.Second

// Tickets are for requests that can carry neither a header nor a cookie: each for one request of its caller, soon.
// The gateway remembers those that were used. Replicas share no memory, so each of them would take a ticket once.
type Tickets struct {
	sealer *Sealer
	used   once
}

type ticket struct {
	ID      string  `json:"i"`
	For     string  `json:"f"` // the request
	Expires int64   `json:"x"` // milliseconds since 1970
	Caller  session `json:"s"`
}

// NewTickets are sealed by the sealer.
func NewTickets(sealer *Sealer) *Tickets {
	return &Tickets{sealer: sealer}
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
	text, err = t.sealer.seal(purposeTicket, ticket{ID: rand.Text(), For: request, Expires: expires.UnixMilli(), Caller: sessionOf(id)})
	if err == nil && len(text) > maxSealed {
		err = ErrTooLarge
	}
	return text, expires, err
}

// Redeem says whose ticket it is, and takes it: it is of no more use, also if the request is another than that it is
// for. An error is an ErrBadToken (ErrTokenExpired).
func (t *Tickets) Redeem(text, request string) (Identity, error) {
	var read ticket
	if err := t.sealer.open(purposeTicket, text, &read); err != nil {
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
	return id, nil
}
