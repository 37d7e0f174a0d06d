package inbox

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

const (
	// expireAtOnce is how many rows are removed in one transaction, of which others wait for their users' heads only.
	expireAtOnce = 500
	// expireRest is how long nothing is removed after a removal, as a multiple of the time that it
	// took; at least leastRest.
	expireRest, leastRest = 3, 200 * time.Millisecond
	// expireAgain is how long after everything was removed the next search for more begins.
	expireAgain = time.Minute
)

// expire removes what was kept for long enough, little by little, until the context ends.
func (i *Inbox) expire(ctx context.Context) {
	var news backoff.News
	for wait := leastRest; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		began := time.Now()
		more, err := i.expireSome(ctx)
		if wait = expireAgain; more {
			wait = max(leastRest, expireRest*time.Since(began))
		}
		switch {
		case err == nil:
			news.Over()
		case ctx.Err() == nil && news.Is(err):
			i.opts.Log.Warn("old notifications are not removed for now", "error", err)
		}
	}
}

// expireSome removes some rows that are too old, and then heads that nobody needs; more says that there may be others.
func (i *Inbox) expireSome(ctx context.Context) (more bool, err error) {
	err = i.ask(ctx, "remove old notifications", func(ctx context.Context) error {
		more = false
		upTo := map[string]uint64{}
		n := 0
		if err := i.store.Each(ctx, func(scan store.Scan) error {
			var owner string
			var seq uint64
			err := scan(&owner, &seq)
			n, upTo[owner] = n+1, max(upTo[owner], seq)
			return err
		}, "SELECT owner, seq FROM inbox WHERE at < "+i.store.Now()+" - ? ORDER BY at LIMIT ?", i.keep().Milliseconds(), expireAtOnce); err != nil {
			return err
		}
		for _, owner := range slices.Sorted(maps.Keys(upTo)) {
			var removed int64
			if err := i.store.Transact(ctx, func(tx *store.Tx) (err error) {
				removed, err = remove(ctx, tx, owner, upTo[owner])
				return err
			}); err != nil {
				return err
			}
			i.metrics.removed.WithLabelValues("row").Add(float64(removed))
		}
		if n == expireAtOnce {
			more = true
			return nil
		}
		heads, err := i.forget(ctx)
		more = heads == expireAtOnce
		return err
	})
	return more, err
}

// remove removes the rows of an inbox up to a number, and returns how many these were.
func remove(ctx context.Context, tx *store.Tx, owner string, upTo uint64) (n int64, err error) {
	h, err := lockOne(ctx, tx, owner)
	if err != nil || h == nil {
		return 0, err
	}
	if n, err = tx.Exec(ctx, "DELETE FROM inbox WHERE owner = ? AND seq <= ?", owner, int64(upTo)); err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, "UPDATE inbox_heads SET expired = ? WHERE owner = ?", int64(max(upTo, h.expired)), owner)
	return n, err
}

// forget removes the heads of users who have no notifications, have chosen nothing, and were told
// nothing for long: whoever invents owners leaves nothing for ever. It returns how many it has
// looked at.
func (i *Inbox) forget(ctx context.Context) (looked int, err error) {
	// Whoever writes to an inbox moves its head. So where that has happened meanwhile, the head stays.
	unused := "moved < " + i.store.Now() + " - ? AND states = '' AND digest = -1 AND paused = 0 AND due = 0 AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.owner = inbox_heads.owner)"
	owners, err := i.owners(ctx, "SELECT owner FROM inbox_heads WHERE "+unused+" LIMIT ?", i.keep().Milliseconds(), expireAtOnce)
	if err != nil {
		return 0, err
	}
	slices.Sort(owners)
	var removed int64
	err = i.store.Transact(ctx, func(tx *store.Tx) error {
		removed = 0
		for _, owner := range owners {
			n, err := tx.Exec(ctx, "DELETE FROM inbox_heads WHERE owner = ? AND "+unused, owner, i.keep().Milliseconds())
			if err != nil {
				return err
			}
			removed += n
		}
		return nil
	})
	i.metrics.removed.WithLabelValues("head").Add(float64(removed))
	return len(owners), err
}
