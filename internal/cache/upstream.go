package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Upstream is the state of a store's watch on the API server.
type Upstream struct {
	Synced bool      // the first list was complete
	Live   bool      // a watch stands
	Since  time.Time // when Live last changed
	Err    error     // the newest failure while not live; nil before the first
}

// Refused reports whether the API server will not let the gateway list or watch the kind.
func (u Upstream) Refused() bool {
	return !u.Live && (apierrors.IsForbidden(u.Err) || apierrors.IsUnauthorized(u.Err) ||
		apierrors.IsMethodNotSupported(u.Err) || apierrors.IsNotFound(u.Err))
}

// unsynced says why there is no complete list yet; nil if there is one.
func (u Upstream) unsynced(kind cluster.Kind) error {
	switch {
	case u.Synced:
		return nil
	case u.Err != nil:
		return fmt.Errorf("%w: %s: %w", ErrNotSynced, kind, u.Err)
	}
	return fmt.Errorf("%w: %s: the first list is not complete", ErrNotSynced, kind)
}

// unservable is an ErrVersions if the first list showed that the kind cannot be served.
func (u Upstream) unservable(kind cluster.Kind) error {
	if u.Synced || !errors.Is(u.Err, cluster.ErrNoNumber) {
		return nil
	}
	return fmt.Errorf("%w: %s: %w", ErrVersions, kind, u.Err)
}

// upstream holds an Upstream and lets others wait for it to change.
type upstream struct {
	now atomic.Pointer[Upstream] // replaced, never changed: all streams look at it at each event, without the lock

	mu      sync.Mutex    // held to replace now, and guards what follows
	changed chan struct{} // closed at the next change
	newest  int64         // the watch that was proved to stand last
	lost    int64         // the last watch that counts no more
}

func newUpstream() *upstream {
	u := &upstream{changed: make(chan struct{})}
	u.now.Store(&Upstream{Since: time.Now()})
	return u
}

func (u *upstream) get() Upstream { return *u.now.Load() }

func (u *upstream) isSynced() bool { return u.get().Synced }

func (u *upstream) setSynced() {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.get()
	now.Synced = true
	u.tell(now)
}

// proved takes that a watch stands. What it has to deliver first may still be under way.
func (u *upstream) proved(watch int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.newest = watch
}

// stands takes that a watch stands and all that was missed has been delivered, unless the watch was
// lost meanwhile. It reports whether that is news.
func (u *upstream) stands(watch int64) (news bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return watch > u.lost && u.set(nil)
}

// fails takes the failure of a request. It reports whether that is news.
func (u *upstream) fails(err error) (news bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lost = u.newest
	return u.set(err)
}

// set takes the outcome of a request. It reports whether that is news: the watch became live, was lost, or failed for
// the first time. The caller holds the lock.
func (u *upstream) set(err error) (news bool) {
	now, live := u.get(), err == nil
	news = live != now.Live || !live && now.Err == nil
	if live != now.Live {
		now.Live, now.Since = live, time.Now()
	}
	now.Err = err
	u.tell(now)
	return news
}

func (u *upstream) tell(now Upstream) {
	u.now.Store(&now)
	close(u.changed)
	u.changed = make(chan struct{})
}

// wait waits for the first complete list. If away is not nil, wait returns the error with which away says that the
// cluster cannot be reached.
func (u *upstream) wait(ctx context.Context, kind cluster.Kind, gone *gone, away func() error) error {
	for {
		if err := gone.get(); err != nil {
			return err
		}
		u.mu.Lock()
		now, changed := u.get(), u.changed
		u.mu.Unlock()
		switch {
		case now.Synced:
			return nil
		case now.Refused():
			return fmt.Errorf("%w: the gateway may not list and watch %s (grant its identity the verbs list and watch on it): %w",
				ErrRefused, kind, now.Err)
		}
		if err := now.unservable(kind); err != nil {
			return err
		}
		if away != nil {
			if err := away(); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-gone.done:
		case <-ctx.Done():
			return now.unsynced(kind)
		}
	}
}
