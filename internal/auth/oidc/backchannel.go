package oidc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// EndAt takes the provider's word that a session, or all of a user's, ended there (OpenID Connect Back-Channel Logout 1.0):
// it ends here, too, and on all replicas if they share what was revoked. An error is ErrRefused; or auth.ErrUnavailable if
// it can help to send the same again. Whose session it is that ended is returned whenever it ended here.
func (l *Login) EndAt(ctx context.Context, logoutToken string) (ended auth.Revocation, err error) {
	defer func() { l.count("ended", err) }()
	entry, jti, err := l.client.LogoutToken(ctx, logoutToken)
	switch {
	case errors.Is(err, auth.ErrUnavailable), ctx.Err() != nil:
		return auth.Revocation{}, err
	case err != nil:
		return auth.Revocation{}, refused("logout token: %w", err)
	}
	// The same token is the same entry, so that to send it again does no harm if it did not get through; one that did is
	// refused.
	if l.ended.Taken(jti) {
		return auth.Revocation{}, refused("logout token: used before")
	}
	if err := l.client.Revoke(ctx, jti, entry); err != nil {
		return entry, fmt.Errorf("%w: a logout is known to this replica only: %w", auth.ErrUnavailable, err)
	}
	now := time.Now()
	l.ended.Take(jti, now, now.Add(2*auth.LogoutLasts))
	return entry, nil
}
