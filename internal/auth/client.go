package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Client is the gateway as a client of an issuer at which users sign in (package oidc). It checks the provider's
// tokens like any token, and also that they are from this very issuer and for this very client.
type Client struct {
	authenticator *Authenticator
	issuer        string
	id            string
}

// RenewalTime is how long after it was sealed a session can be renewed. After that, the user must sign in anew.
// Revocations must be kept for longer (RevocationOptions.Keep).
const RenewalTime = 24 * time.Hour

// Client returns the client with an id at one of the issuers. The id must be one of the issuer's audiences. Errors
// name the field.
func (a *Authenticator) Client(issuer, id string) (*Client, error) {
	iss := a.issuer(issuer)
	switch {
	case iss == nil:
		return nil, fmt.Errorf("Issuer: %q is none of the authenticator's", issuer)
	case !slices.Contains(iss.Audiences, id):
		return nil, fmt.Errorf("ClientID: %q is none of the issuer's audiences, so its ID tokens would be refused", id)
	}
	return &Client{authenticator: a, issuer: issuer, id: id}, nil
}

// RoundTrip sends a request to the issuer, as the Authenticator does.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	iss := c.authenticator.issuer(c.issuer)
	if iss == nil {
		return nil, fmt.Errorf("%q is no issuer any more", c.issuer)
	}
	return iss.transport.RoundTrip(r)
}

// Confirm is the Authenticator's Confirm.
func (c *Client) Confirm(ctx context.Context, id Identity) (Identity, error) {
	return c.authenticator.Confirm(ctx, id)
}

// Revoke records in the Authenticator's Revocations what a logout token of the provider ended.
func (c *Client) Revoke(ctx context.Context, jti string, entry Revocation) error {
	return c.authenticator.revocations.revokeLogout(ctx, c.issuer, jti, entry)
}

// IDToken returns the identity in an ID token that the provider has just sent (OpenID Connect Core, section 3.1.3.7).
// Its errors are those of Authenticate.
func (c *Client) IDToken(ctx context.Context, token string) (Identity, error) {
	id, err := c.authenticator.Authenticate(ctx, token)
	iss := c.authenticator.issuer(c.issuer)
	if iss == nil {
		return Identity{}, Refused(fmt.Errorf("%q is no issuer any more", c.issuer))
	}
	if keys, ok := iss.keys.(*remoteKeys); ok && errors.Is(err, ErrBadToken) && !errors.Is(err, ErrRevoked) {
		// The provider itself sent the token. If no known key fits, its keys are new; no stranger can have caused
		// that.
		keys.wait(ctx, 0)
		id, err = c.authenticator.Authenticate(ctx, token)
	}
	if err != nil {
		return Identity{}, err
	}
	party, named := id.Claims["azp"].(string)
	switch {
	case id.Claims["iss"] != c.issuer:
		return Identity{}, Refused(errors.New("of another issuer"))
	case !slices.Contains(claimTexts(id.Claims["aud"]), c.id), named && party != c.id:
		return Identity{}, Refused(errors.New("for another client"))
	}
	return id, nil
}

// claimTexts returns the values of a claim that may be a string or a list of strings.
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
