package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ErrRevoked means that the token or session was good, and was ended before its time. It is an ErrBadToken, too.
var ErrRevoked = errors.New("revoked")

// maxOwnRevocations bounds the entries that wait to be shared, or cannot be shared.
const maxOwnRevocations = 100_000

// RevocationOptions configure Revocations.
type RevocationOptions struct {
	// ConfigMap is the name of the ConfigMap that replicas share, if there is one. Its values are entries, under any
	// keys.
	ConfigMap string
	// Keep is how long after its Before an entry without an Until counts. It must be longer than any token lasts.
	Keep       time.Duration
	Registerer prometheus.Registerer // may be nil
	Log        *slog.Logger          // may be nil
}

// Revocations knows what was ended before its time: the entries of a ConfigMap in the default cluster, which it
// watches, and this replica's own entries until the ConfigMap has them. Its methods may be called concurrently.
//
// While the cluster is away, the known entries count. Nothing can be confirmed, and so all credentials are refused,
// before the ConfigMap has been read once. The same holds when it could not be read for UnreadFor while the API
// server answered other requests.
type Revocations struct {
	opts RevocationOptions

	known atomic.Pointer[revocationIndex]
	home  atomic.Pointer[revocationsHome]

	mu        sync.Mutex
	shared    map[string]Revocation
	own       map[string]Revocation // by key: entries not seen in the ConfigMap yet
	synced    bool
	failed    error // why the ConfigMap cannot be read; nil: it can
	since     time.Time
	lost      time.Duration   // for how long of that time the API server answered other requests
	unread    map[string]bool // keys of malformed entries that were logged
	listeners map[*func()]struct{}
	unwritten chan struct{} // has a token when there is something to write
	unreadNow chan struct{} // has a token when the ConfigMap has just become unreadable
	live      prometheus.Gauge
}

// NewRevocations returns a Revocations that knows nothing before Run.
func NewRevocations(opts RevocationOptions) *Revocations {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	r := &Revocations{
		opts: opts, own: map[string]Revocation{}, unread: map[string]bool{}, listeners: map[*func()]struct{}{},
		unwritten: make(chan struct{}, 1), unreadNow: make(chan struct{}, 1),
		live: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kubecast_auth_revocations_live", Help: "1 if the list of what was revoked is watched, 0 if not; -1 if none is configured.",
		}),
	}
	r.known.Store(&revocationIndex{})
	if opts.ConfigMap == "" {
		r.live.Set(-1)
	}
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(r.live, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "kubecast_auth_revocations", Help: "Entries of what was revoked.",
		}, func() float64 {
			r.mu.Lock()
			defer r.mu.Unlock()
			return float64(len(r.shared) + len(r.own))
		}))
	}
	return r
}

// Check returns nil if an identity was not revoked. The error wraps ErrRevoked, or ErrUnavailable if that is not
// known.
func (r *Revocations) Check(id Identity) error {
	if err := r.Ready(); err != nil {
		return err
	}
	if entry, found := r.known.Load().find(id, time.Now()); found {
		return fmt.Errorf("%w by %v", ErrRevoked, entry)
	}
	return nil
}

// Ready says why it is not known what was revoked; nil if it is known.
func (r *Revocations) Ready() error {
	if r.opts.ConfigMap == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.synced && r.failed != nil:
		return fmt.Errorf("%w: ConfigMap %s: what was revoked: %w", ErrUnavailable, r.opts.ConfigMap, r.failed)
	case !r.synced:
		return fmt.Errorf("%w: ConfigMap %s: what was revoked is not read yet", ErrUnavailable, r.opts.ConfigMap)
	case r.failed != nil && r.lost >= UnreadFor:
		return fmt.Errorf("%w: ConfigMap %s: what was revoked cannot be read any more, though the cluster answers: %w", ErrUnavailable, r.opts.ConfigMap, r.failed)
	}
	return nil
}

// Changes arranges for changed to be called when something was revoked. Changed must return at once. The caller must
// call stop in the end; further calls do nothing.
func (r *Revocations) Changes(changed func()) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners[&changed] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.listeners, &changed)
	}
}

// Revoke adds an entry under a name. It counts here at once, and at the other replicas once it is written to the
// ConfigMap. Revoke returns when it is written. An error means that it was not; Run tries again. The same name twice
// makes one entry.
func (r *Revocations) Revoke(ctx context.Context, name string, entry Revocation) error {
	if entry.Until.IsZero() && !entry.Before.IsZero() {
		entry.Until = entry.Before.Add(r.opts.Keep)
	}
	r.mu.Lock()
	r.forget(time.Now())
	if len(r.own) >= maxOwnRevocations {
		r.mu.Unlock()
		return errors.New("too many entries wait to be shared")
	}
	entry = r.gather(name, entry)
	r.own[name] = entry
	listeners := r.rebuild()
	r.mu.Unlock()
	notify(listeners)
	if r.opts.ConfigMap == "" {
		return nil
	}
	err := r.write(ctx)
	if err != nil {
		select {
		case r.unwritten <- struct{}{}:
		default:
		}
	}
	return err
}

// revokeLogout is Revoke for what an issuer ended, by the logout token with the id jti.
func (r *Revocations) revokeLogout(ctx context.Context, issuer, jti string, entry Revocation) error {
	sum := sha256.Sum256([]byte(issuer + "\n" + jti))
	return r.Revoke(ctx, logoutPrefix+strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])), entry)
}

// rebuild makes the index anew, and returns the listeners. The caller holds the lock, and must release it before it
// calls them.
func (r *Revocations) rebuild() (listeners []*func()) {
	index, now := revocationIndex{}, time.Now()
	for _, entries := range []map[string]Revocation{r.shared, r.own} {
		for _, entry := range entries {
			if !entry.over(now) {
				index.add(entry)
			}
		}
	}
	r.known.Store(&index)
	return slices.Collect(maps.Keys(r.listeners))
}

func notify(listeners []*func()) {
	for _, changed := range listeners {
		(*changed)()
	}
}

// forgetAll forgets entries that are over, once an hour.
func (r *Revocations) forgetAll(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			r.mu.Lock()
			r.forget(now)
			r.mu.Unlock()
		}
	}
}

// forget forgets this replica's own entries that are over. The caller holds the lock.
func (r *Revocations) forget(now time.Time) {
	maps.DeleteFunc(r.own, func(_ string, entry Revocation) bool { return entry.over(now) })
}
