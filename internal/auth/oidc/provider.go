package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/kubecast/kubecast/internal/auth/fetch"
)

// provider is an issuer at which users sign in. Its metadata (OpenID Connect Discovery 1.0) is asked for when it is
// first needed. Metadata that is known stays in use while the provider is away.
type provider struct {
	issuer string
	client *http.Client
	flight singleflight.Group // of the only request that there is

	mu     sync.Mutex
	known  *providerMetadata
	failed error     // why the last request failed; nil: it did not
	until  time.Time // when it may be asked again
}

// providerMetadata is the part of the metadata that the gateway needs.
type providerMetadata struct {
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	EndSession    string   `json:"end_session_endpoint"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	Scopes        []string `json:"scopes_supported"`
	NamesItself   bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

const (
	metadataFor   = time.Hour
	metadataRetry = time.Second // while it does not answer: strangers can cause these requests
)

// metadata returns the provider's metadata, and asks for it if it is old. Concurrent callers share one request, since
// strangers can cause it. If older metadata is known, a caller waits only a moment.
func (p *provider) metadata(ctx context.Context) (*providerMetadata, error) {
	known, failed, fresh := p.state()
	if fresh {
		return orAway(known, failed)
	}
	answer := p.flight.DoChan("", func() (any, error) { // the request outlives the caller that began it
		if _, _, fresh := p.state(); fresh {
			return nil, nil // an earlier caller has just been answered
		}
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetch.Timeout)
		defer cancel()
		found, err := p.discover(asking)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failed, p.until = err, time.Now().Add(metadataRetry)
		if err == nil {
			p.known, p.until = found, time.Now().Add(metadataFor)
		}
		return nil, nil
	})
	waiting := ctx
	if known != nil {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, metadataRetry)
		defer cancel()
	}
	select {
	case <-answer:
	case <-waiting.Done():
		if known == nil {
			return nil, fmt.Errorf("%w: %w", ErrProviderAway, ctx.Err())
		}
	}
	known, failed, _ = p.state()
	return orAway(known, failed)
}

// state returns what is known, and whether it is too early to ask the provider again.
func (p *provider) state() (known *providerMetadata, failed error, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known, p.failed, time.Now().Before(p.until)
}

func orAway(known *providerMetadata, failed error) (*providerMetadata, error) {
	if known == nil {
		return nil, fmt.Errorf("%w: %w", ErrProviderAway, failed)
	}
	return known, nil
}

func (p *provider) discover(ctx context.Context) (*providerMetadata, error) {
	var m providerMetadata
	where, err := fetch.Discovery(ctx, p.client, p.issuer, &m)
	if err != nil {
		return nil, err
	}
	for name, endpoint := range map[string]string{"authorization_endpoint": m.Authorization, "token_endpoint": m.Token} {
		if !fetch.Safe(endpoint) {
			return nil, fmt.Errorf("%s: %s is %.200q; allowed: https, and http on loopback", where, name, endpoint)
		}
	}
	// A sign-in does not need these.
	if !fetch.Safe(m.EndSession) {
		m.EndSession = ""
	}
	if !fetch.Safe(m.Revocation) {
		m.Revocation = ""
	}
	return &m, nil
}

// authStyle is how the gateway authenticates where a code or a token is exchanged. The library would detect that by
// trying, but a wrong guess would use up the code.
func (m *providerMetadata) authStyle(secret string) oauth2.AuthStyle {
	basic := len(m.AuthMethods) == 0 || slices.Contains(m.AuthMethods, "client_secret_basic")
	if secret == "" || !basic {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// defaultScopes are asked for if the provider has them: for the user's identity and groups, and for the renewal of
// the session.
var defaultScopes = []string{"openid", "profile", "email", "groups", "offline_access"}

func (m *providerMetadata) scopes() []string {
	scopes := []string{"openid"}
	for _, scope := range defaultScopes[1:] {
		if slices.Contains(m.Scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// refuseRedirect is for requests whose secrets must not be sent to another address.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// providerError returns the error of a failed request to the provider. The answer's text may repeat what was sent, so
// only the error code is kept.
func providerError(doing string, err error) error {
	var told *oauth2.RetrieveError
	if !errors.As(err, &told) {
		return fmt.Errorf("%w: %s: %w", ErrProviderAway, doing, err)
	}
	status, code := told.Response.StatusCode, errorCode(told.ErrorCode)
	switch {
	case code == "invalid_grant", code == "invalid_request", code == "invalid_scope", code == "access_denied":
		return &loginError{kind: ErrRefused, cause: fmt.Errorf("%s: the provider answers %d %s", doing, status, code)}
	default: // a fault of the provider or of the configuration, and not of the browser
		return fmt.Errorf("%w: %s: the provider answers %d %s", ErrProviderAway, doing, status, code)
	}
}

// errorCode returns an OAuth error code, or "unknown_error" if the text, which may come from a stranger, is none.
func errorCode(text string) string {
	const most = 64
	for _, c := range text {
		if (c < 'a' || c > 'z') && c != '_' {
			return "unknown_error"
		}
	}
	if text == "" || len(text) > most {
		return "unknown_error"
	}
	return text
}
