package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/kubecast/kubecast/internal/auth/fetch"
)

// provider is an issuer as the place where people sign in: what it says of itself (OpenID Connect Discovery 1.0), asked for
// when it is first needed. What was known once stays in use while the provider is away.
type provider struct {
	issuer string
	client *http.Client
	flight singleflight.Group // of the one question that there is

	mu     sync.Mutex
	known  *providerMetadata
	failed error     // of the last time it was asked; nil: it answered
	until  time.Time // after which it is asked again
}

// providerMetadata is what the gateway needs of it.
type providerMetadata struct {
	Issuer        string   `json:"issuer"`
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
	metadataRetry = time.Second // while it does not answer: strangers can cause questions
)

// metadata asks the provider if it is time to, once for all who come meanwhile: strangers can cause questions. Who comes
// when something is known already waits a moment at most.
func (p *provider) metadata(ctx context.Context) (*providerMetadata, error) {
	known, failed, fresh := p.state()
	if fresh {
		return orAway(known, failed)
	}
	answer := p.flight.DoChan("", func() (any, error) { // it outlives who asks first
		if _, _, fresh := p.state(); fresh {
			return nil, nil // who came before has just been answered
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

// state is what is known, and whether the provider need not be asked yet.
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
	where := strings.TrimSuffix(p.issuer, "/") + "/.well-known/openid-configuration"
	data, err := fetch.Document(ctx, p.client, where)
	if err != nil {
		return nil, err
	}
	var m providerMetadata
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if m.Issuer != p.issuer {
		return nil, fmt.Errorf("%s: is of issuer %.200q; configured is %q, and they must be equal", where, m.Issuer, p.issuer)
	}
	for name, endpoint := range map[string]string{"authorization_endpoint": m.Authorization, "token_endpoint": m.Token} {
		if !fetch.Safe(endpoint) {
			return nil, fmt.Errorf("%s: %s is %.200q; allowed: https, and http on loopback", where, name, endpoint)
		}
	}
	// One can sign in without these, too.
	if !fetch.Safe(m.EndSession) {
		m.EndSession = ""
	}
	if !fetch.Safe(m.Revocation) {
		m.Revocation = ""
	}
	return &m, nil
}

// authStyle is how the gateway says who it is where a code or a token is exchanged. A wrong guess would spend the code, so
// the library's own detection by trying is not used.
func (m *providerMetadata) authStyle(secret string) oauth2.AuthStyle {
	basic := len(m.AuthMethods) == 0 || slices.Contains(m.AuthMethods, "client_secret_basic")
	if secret == "" || !basic {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// defaultScopes are asked for if the provider has them: who it is, his groups, and that the session can be renewed.
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

// refuseRedirect is for requests that carry what must not go elsewhere.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// providerError says what came of a request to the provider. The answer's text is the provider's, and may repeat what was
// sent, so only the code of the error is kept.
func providerError(doing string, err error) error {
	var told *oauth2.RetrieveError
	if !errors.As(err, &told) {
		return fmt.Errorf("%w: %s: %w", ErrProviderAway, doing, err)
	}
	status, code := told.Response.StatusCode, errorCode(told.ErrorCode)
	switch {
	case code == "invalid_grant", code == "invalid_request", code == "invalid_scope", code == "access_denied":
		return &loginError{kind: ErrRefused, cause: fmt.Errorf("%s: the provider answers %d %s", doing, status, code)}
	default: // its own fault, or the configuration's: the browser has done nothing wrong
		return fmt.Errorf("%w: %s: the provider answers %d %s", ErrProviderAway, doing, status, code)
	}
}

// errorCode is an OAuth error code, as far as it is one: it is a stranger's text.
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
