package oidc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// EndAt takes a logout token, by which the provider says that a session, or all sessions of a user, ended there
// (OpenID Connect Back-Channel Logout 1.0). They end here, too, and on all replicas that share the list of what was
// revoked. The error is ErrRefused, or auth.ErrUnavailable if sending the same again may help. Whenever the sessions
// ended here, the revocation is returned.
func (l *Login) EndAt(ctx context.Context, logoutToken string) (ended auth.Revocation, err error) {
	defer func() { l.count("ended", err) }()
	entry, jti, err := l.client.LogoutToken(ctx, logoutToken)
	switch {
	case errors.Is(err, auth.ErrUnavailable), ctx.Err() != nil:
		return auth.Revocation{}, err
	case err != nil:
		return auth.Revocation{}, refused("logout token: %w", err)
	}
	// The same token makes the same entry. So sending it again does no harm if it did not get through before. If it
	// did, it is refused.
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
