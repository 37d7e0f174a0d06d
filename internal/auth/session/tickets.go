package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// TicketTime is how long a ticket may be used.
const TicketTime = 30 * time.Second

// Tickets are for requests that can carry neither a header nor a cookie. Each is for one request of its caller,
// within TicketTime. The gateway remembers used tickets. Replicas do not share that memory, so each of them would
// accept a ticket once.
type Tickets struct {
	sessions *Sessions
	used     Once
}

type ticket struct {
	ID      string  `json:"i"`
	For     string  `json:"f"` // the request that it is for
	Expires int64   `json:"x"` // milliseconds since 1970
	Caller  session `json:"s"`
}

// NewTickets returns Tickets that are sealed and confirmed like the sessions.
func NewTickets(sessions *Sessions) *Tickets {
	return &Tickets{sessions: sessions}
}

// Issue makes a ticket for one request. The request may be written in any form, as long as the caller of Redeem uses
// the same.
func (t *Tickets) Issue(id auth.Identity, request string) (text string, expires time.Time, err error) {
	if id.Anonymous || id.ExpiresAt.IsZero() {
		return "", time.Time{}, auth.ErrNoCredentials
	}
	expires = time.Now().Add(TicketTime)
	if id.ExpiresAt.Before(expires) {
		expires = id.ExpiresAt
	}
	text, err = t.sessions.sealer.Seal(purposeTicket, ticket{ID: rand.Text(), For: request, Expires: expires.UnixMilli(), Caller: sessionOf(id)})
	if err == nil && len(text) > maxSealed {
		err = ErrTooLarge
	}
	return text, expires, err
}

// Redeem returns the identity of a ticket, and uses the ticket up, even if the request is not the one that it is for.
// An error wraps auth.ErrBadToken (also ErrTokenExpired) or auth.ErrUnavailable, or is the context's.
func (t *Tickets) Redeem(ctx context.Context, text, request string) (auth.Identity, error) {
	var read ticket
	if err := t.sessions.sealer.Open(purposeTicket, text, &read); err != nil {
		return auth.Identity{}, auth.Refused(fmt.Errorf("ticket: %w", err))
	}
	now, expires, id := time.Now(), time.UnixMilli(read.Expires), read.Caller.identity()
	switch {
	case !now.Before(expires), !now.Before(id.ExpiresAt):
		return auth.Identity{}, auth.Refused(fmt.Errorf("ticket: %w: at %v", auth.ErrTokenExpired, expires))
	case !t.used.Take(read.ID, now, expires):
		return auth.Identity{}, auth.Refused(errors.New("ticket: used before"))
	case read.For != request:
		return auth.Identity{}, auth.Refused(errors.New("ticket: for another request"))
	}
	return t.sessions.confirmer.Confirm(ctx, id)
}
