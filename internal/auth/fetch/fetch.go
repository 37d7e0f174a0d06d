// Package fetch gets the documents of issuers: what they say of themselves, and their keys. Whoever can change these on their way
// can sign in as anybody, so they come over TLS, or from this very machine; they are of a bounded size, and waited for only so long.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// Timeout is of one document.
	Timeout     = 10 * time.Second
	maxDocument = 1 << 20
)

// Client goes by a transport, and follows redirects to where documents may come from.
func Client(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, Timeout: Timeout, CheckRedirect: refuseUnsafeRedirect}
}

// Document gets one.
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

// Safe says whether documents, and what is sent to sign somebody in, may be exchanged with an address: whoever is on the way of a plain connection
// could replace them, and then sign as anybody.
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
