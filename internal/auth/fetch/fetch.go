// Package fetch gets the documents of issuers: their metadata and their keys. An attacker who could change these on
// their way could sign in as any user. So they must come over TLS, or from this machine. Their size is bounded, and
// so is the wait for them.
package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// Timeout bounds the fetch of one document, which has at most maxDocument bytes.
	Timeout     = 10 * time.Second
	maxDocument = 1 << 20
)

// Client returns a client that follows redirects only to addresses from which documents may come.
func Client(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, Timeout: Timeout, CheckRedirect: refuseUnsafeRedirect}
}

// Document gets one document.
func Document(ctx context.Context, client *http.Client, where string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", where, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", where, err)
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("GET %s: more than %d bytes", where, maxDocument)
	}
	return data, nil
}

// Discovery reads the document in which an issuer says where its endpoints and its keys are (OpenID Connect Discovery
// 1.0, section 4) into a struct, and returns its address for the caller's errors. A document of another issuer is an
// error. The addresses in it are the caller's to check.
func Discovery(ctx context.Context, client *http.Client, issuer string, into any) (where string, err error) {
	where = strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
	data, err := Document(ctx, client, where)
	if err != nil {
		return where, err
	}
	var of struct {
		Issuer string `json:"issuer"`
	}
	if err = json.Unmarshal(data, &of); err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return where, fmt.Errorf("%s: %w", where, err)
	}
	if of.Issuer != issuer {
		return where, fmt.Errorf("%s: is of issuer %.200q; configured is %q, and they must be equal", where, of.Issuer, issuer)
	}
	return where, nil
}

// Safe reports whether documents and credentials may be exchanged with an address: only by https, or with this
// machine. On the way of a plain connection an attacker could replace the keys, and then sign tokens for any user.
func Safe(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return false
	}
	if u.Scheme == "http" {
		ip := net.ParseIP(u.Hostname())
		return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	}
	return u.Scheme == "https"
}

func refuseUnsafeRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return errors.New("more than 5 redirects")
	}
	if !Safe(req.URL.String()) {
		return fmt.Errorf("redirected to %s; allowed: https, and http on loopback", req.URL)
	}
	return nil
}
