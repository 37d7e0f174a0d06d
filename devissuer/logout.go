package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// endAtClients tells all clients that the user who signed in last was signed out (OpenID Connect Back-Channel Logout
// 1.0). Dex itself does not do that, so the logout token is made here and signed with Dex's keys.
func endAtClients(ctx context.Context, issuer string, redirects []string, keys *keys) error {
	now := time.Now()
	payload, err := json.Marshal(map[string]any{
		"iss": issuer, "aud": "kubecast", "sub": keys.lastSubject(), "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(2 * time.Minute).Unix(),
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	})
	if err != nil {
		return err
	}
	token, err := keys.Sign(ctx, payload)
	if err != nil {
		return err
	}
	for _, redirect := range redirects {
		to, err := url.Parse(redirect)
		if err != nil {
			return err
		}
		to = to.ResolveReference(&url.URL{Path: "backchannel-logout"}) // it is beside the callback
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), strings.NewReader(url.Values{"logout_token": {token}}.Encode()))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", to, response.Status)
		}
	}
	return nil
}
