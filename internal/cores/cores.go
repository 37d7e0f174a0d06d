// Package cores chooses among gateways that serve the same clusters: the cores of an edge. Any of them will do. A request
// goes to the one that answered last, and to the next one where that does not answer or takes nothing more. It is sent
// to each of them once at most, so what nobody answers costs one attempt at each.
//
// It knows nothing of what is asked. That a watch goes on where it ended at another core is shown by what that core says of
// its history (cluster.HistoryHeader).
package cores

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// Cores are the addresses of an edge's cores. They may be used concurrently.
type Cores struct {
	addresses []*url.URL // never empty; without a slash at their ends
	first     atomic.Int32
}

// New returns the cores at some addresses, of which there is at least one.
func New(addresses []string) (*Cores, error) {
	c := &Cores{}
	for _, text := range addresses {
		address, err := url.Parse(strings.TrimSuffix(text, "/"))
		if err != nil {
			return nil, err
		}
		c.addresses = append(c.addresses, address)
	}
	if len(c.addresses) == 0 {
		return nil, errors.New("no core is named")
	}
	return c, nil
}

// Wrap returns a transport that sends to one of the cores what is addressed to the first one. All of its transports agree on
// which core is asked.
func (c *Cores) Wrap(base http.RoundTripper) http.RoundTripper { return &transport{c, base} }

type transport struct {
	cores *Cores
	base  http.RoundTripper
}

// WrappedRoundTripper lets others find the transport below, as to close its connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.base }

// RoundTrip implements http.RoundTripper. What a core answers that takes nothing more now is the answer only if none
// of the others answers better.
func (t *transport) RoundTrip(r *http.Request) (response *http.Response, err error) {
	first := t.cores.first.Load()
	for i := range t.cores.addresses {
		n := (int(first) + i) % len(t.cores.addresses)
		attempt, rewound := t.cores.at(n, r, i > 0)
		if rewound != nil {
			break // what was sent cannot be sent again
		}
		refusal := response
		response, err = t.base.RoundTrip(attempt)
		switch {
		case err != nil && r.Context().Err() != nil:
			if errors.Is(r.Context().Err(), context.DeadlineExceeded) { // so that not all who come are kept waiting
				t.cores.first.CompareAndSwap(first, int32((n+1)%len(t.cores.addresses)))
			}
			closeBody(refusal)
			return nil, err
		case err != nil && refusal != nil:
			response, err = refusal, nil
			continue
		}
		closeBody(refusal)
		if err == nil && !isElsewhere(response.StatusCode) {
			t.cores.first.CompareAndSwap(first, int32(n))
			break
		}
	}
	return response, err
}

// isElsewhere reports whether another core may answer what one answers with a status: it drains, is not ready, or has
// too much to do, or a proxy finds it away, or it has not what it should have (package shards).
func isElsewhere(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusMisdirectedRequest:
		return true
	}
	return false
}

// at is a request as it is sent to a core. What gateways ask changes nothing, or the same if it is asked twice, so any
// of it may be sent again.
func (c *Cores) at(n int, r *http.Request, again bool) (*http.Request, error) {
	to, named := c.addresses[n], c.addresses[0]
	attempt := r.Clone(r.Context())
	attempt.URL.Scheme, attempt.URL.Host, attempt.Host = to.Scheme, to.Host, ""
	attempt.URL.Path = to.Path + strings.TrimPrefix(r.URL.Path, named.Path)
	if r.URL.RawPath != "" {
		attempt.URL.RawPath = to.Path + strings.TrimPrefix(r.URL.RawPath, named.Path)
	}
	if !again || r.Body == nil || r.Body == http.NoBody {
		return attempt, nil
	}
	if r.GetBody == nil {
		return nil, errors.New("its body can be read once only")
	}
	var err error
	attempt.Body, err = r.GetBody()
	return attempt, err
}

// closeBody gives a refusal up. It is not read first, so that its connection could be used again: a core that vanishes in the
// middle of it would keep the caller waiting, who may already have the answer of another core.
func closeBody(refusal *http.Response) {
	if refusal != nil {
		_ = refusal.Body.Close()
	}
}
