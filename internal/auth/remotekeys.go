package auth

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/auth/fetch"
)

const (
	refreshEvery = 10 * time.Minute // within this time, a key that the issuer withdrew is refused
	firstRetry   = time.Second      // after a failed fetch; doubled up to lastRetry
	lastRetry    = time.Minute

	// askEvery is how often tokens that fit no key may cause a fetch. Strangers can make any number of such tokens,
	// and must not cause load at the issuer.
	askEvery = 10 * time.Second
	// waitAtMost is how long a request waits for a fetch. The fetch itself goes on.
	waitAtMost = 5 * time.Second
)

// remoteKeys are keys that are fetched from a JWKS URL, which is either given or found by OIDC discovery. Known keys
// stay in use during an outage of the issuer, however long. A new answer replaces all of them, so that keys that the
// issuer withdrew are gone.
//
// jwkset parses the keys, but its own storage is not used, for four reasons: its constructor starts a goroutine that
// cannot be waited for; requests wait while its limiter is exhausted; a failed first fetch is repeated only after the
// whole interval; and one malformed key, or an empty set, removes all keys.
type remoteKeys struct {
	issuer string
	url    string // empty: by discovery
	client *http.Client
	logger *slog.Logger
	// fetched is called after each fetch.
	fetched func(keys int, err error)

	known atomic.Pointer[keySet] // nil: never fetched
	wake  chan struct{}          // asks run for a fetch; has room for one token

	mu      sync.Mutex
	attempt chan struct{} // closed at the end of the fetch that is due or under way; nil: there is none
	ended   time.Time     // when the last one ended
	stopped bool
}

func newRemoteKeys(issuer, url string, client *http.Client, logger *slog.Logger) *remoteKeys {
	return &remoteKeys{
		issuer:  issuer,
		url:     url,
		client:  client,
		logger:  logger,
		wake:    make(chan struct{}, 1),
		fetched: func(int, error) {},
		// The first fetch is due as soon as run begins. Requests that come earlier wait for it.
		attempt: make(chan struct{}),
	}
}

func (r *remoteKeys) current(ctx context.Context) (keySet, error) {
	if known := r.known.Load(); known != nil {
		return *known, nil
	}
	r.wait(ctx, askEvery)
	if known := r.known.Load(); known != nil {
		return *known, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnavailable, r.issuer)
}

func (r *remoteKeys) newer(ctx context.Context, known keySet) (keySet, bool) {
	r.wait(ctx, askEvery)
	now := *r.known.Load()
	return now, &now[0] != &known[0]
}

// wait starts a fetch, unless one is under way, and waits for its end. If the last one ended more recently than that,
// it does neither.
func (r *remoteKeys) wait(ctx context.Context, recently time.Duration) {
	r.mu.Lock()
	first := r.attempt == nil && !r.stopped && time.Since(r.ended) >= recently
	if first {
		r.attempt = make(chan struct{})
	}
	attempt := r.attempt
	r.mu.Unlock()
	if attempt == nil {
		return
	}
	// Only the first caller asks for the fetch: one that joins just when the fetch ends would cause another.
	if first {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	timer := time.NewTimer(waitAtMost)
	defer timer.Stop()
	select {
	case <-attempt:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (r *remoteKeys) run(ctx context.Context) {
	defer r.end(true)
	retry := firstRetry
	for {
		err := r.refresh(ctx)
		if ctx.Err() == nil {
			r.fetched(r.count(), err) // before the waiting requests go on
		}
		r.end(false)
		pause := refreshEvery
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause, retry = retry, min(2*retry, lastRetry)
			r.logger.Warn("keys of the issuer cannot be fetched; those known stay in use",
				"error", err, "known", r.count(), "retry", pause)
		default:
			retry = firstRetry
		}
		// The pause is spread, so that replicas do not fetch at the same time.
		timer := time.NewTimer(pause - rand.N(pause/5))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-r.wake:
		}
		timer.Stop()
		r.begin()
	}
}

// begin makes the coming fetch one that requests can wait for.
func (r *remoteKeys) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempt == nil {
		r.attempt = make(chan struct{})
	}
}

// end releases the requests that waited for the fetch.
func (r *remoteKeys) end(stopped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempt != nil {
		close(r.attempt)
		r.attempt = nil
	}
	r.ended, r.stopped = time.Now(), stopped
	// This fetch has served all requests for one.
	select {
	case <-r.wake:
	default:
	}
}

func (r *remoteKeys) count() int {
	if known := r.known.Load(); known != nil {
		return len(*known)
	}
	return 0
}

func (r *remoteKeys) refresh(ctx context.Context) error {
	where := r.url
	if where == "" {
		var err error
		if where, err = r.discover(ctx); err != nil {
			return err
		}
	}
	data, err := fetch.Document(ctx, r.client, where)
	if err != nil {
		return err
	}
	keys, skipped, err := parseJWKS(data)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if before := r.known.Swap(&keys); before == nil || !sameIDs(*before, keys) {
		r.logger.Info("keys of the issuer fetched", "keys", len(keys), "unusable", len(skipped))
		for _, why := range skipped {
			r.logger.Debug("key passed over", "why", why)
		}
	}
	return nil
}

func sameIDs(a, b keySet) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].id != b[i].id {
			return false
		}
	}
	return true
}

// discover asks the issuer where its keys are. It asks before each fetch,
// since the place may change.
func (r *remoteKeys) discover(ctx context.Context) (string, error) {
	var doc struct {
		JWKSURI string `json:"jwks_uri"`
	}
	where, err := fetch.Discovery(ctx, r.client, r.issuer, &doc)
	if err != nil {
		return "", err
	}
	if !fetch.Safe(doc.JWKSURI) {
		return "", fmt.Errorf("%s: jwks_uri is %.200q; allowed: https, and http on loopback", where, doc.JWKSURI)
	}
	return doc.JWKSURI, nil
}
