package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Client is the gateway as a client of one of an Authenticator's issuers, at which people sign in (package oidc). It checks what the
// provider sends: as any token, and that it is of this very issuer and for this very client.
type Client struct {
	authenticator *Authenticator
	issuer        *issuer
	id            string
}

// RenewalTime is how long after it was sealed a session can be renewed; after that, one signs in anew. What is revoked must be
// known for longer (RevocationOptions.Keep).
const RenewalTime = 24 * time.Hour

// Client is for one of the issuers, of whose audiences the id must be one. Errors name the field.
func (a *Authenticator) Client(issuer, id string) (*Client, error) {
	iss := a.issuers[issuer]
	switch {
	case iss == nil:
		return nil, fmt.Errorf("Issuer: %q is none of the authenticator's", issuer)
	case !slices.Contains(iss.Audiences, id):
		return nil, fmt.Errorf("ClientID: %q is none of the issuer's audiences, so its ID tokens would be refused", id)
	}
	return &Client{authenticator: a, issuer: iss, id: id}, nil
}

// Transport is how the issuer is reached.
func (c *Client) Transport() http.RoundTripper { return c.issuer.transport }

// Confirm is the Authenticator's.
func (c *Client) Confirm(ctx context.Context, id Identity) (Identity, error) {
	return c.authenticator.Confirm(ctx, id)
}

// Revoke is that of the Authenticator's Revocations, for what the provider ended.
func (c *Client) Revoke(ctx context.Context, jti string, entry Revocation) error {
	return c.authenticator.revocations.revokeLogout(ctx, c.issuer.Issuer.Issuer, jti, entry)
}

// IDToken says who an ID token that the provider has just sent is for (OpenID Connect Core, section 3.1.3.7). Errors are those of
// Authenticate.
func (c *Client) IDToken(ctx context.Context, token string) (Identity, error) {
	id, err := c.authenticator.Authenticate(ctx, token)
	if keys, ok := c.issuer.keys.(*remoteKeys); ok && errors.Is(err, ErrBadToken) && !errors.Is(err, ErrRevoked) {
		// The provider itself sent the token, so if its keys do not fit, they are new; there is no stranger to be wary of.
		keys.wait(ctx, 0)
		id, err = c.authenticator.Authenticate(ctx, token)
	}
	if err != nil {
		return Identity{}, err
	}
	party, named := id.Claims["azp"].(string)
	switch {
	case id.Claims["iss"] != c.issuer.Issuer.Issuer:
		return Identity{}, Refused(errors.New("of another issuer"))
	case !slices.Contains(claimTexts(id.Claims["aud"]), c.id), named && party != c.id:
		return Identity{}, Refused(errors.New("for another client"))
	}
	return id, nil
}

// claimTexts is a claim that may be a string or a list of them.
func claimTexts(claim any) (texts []string) {
	switch claim := claim.(type) {
	case string:
		return []string{claim}
	case []any:
		for _, element := range claim {
			if text, ok := element.(string); ok {
				texts = append(texts, text)
			}
		}
	}
	return texts
}
