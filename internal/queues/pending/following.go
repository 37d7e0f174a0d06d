package pending

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// lookAgain is after how long it is looked again whether a cluster has queues.
const lookAgain = 5 * time.Second

// keep follows queues until the context ends, and says if it is certain that there are none. Follow returns nil where it is to
// begin anew at once, with more kinds than before.
func keep(ctx context.Context, follow func(context.Context) error, hasNone func()) {
	retry := backoff.New(time.Second, lookAgain)
	for ctx.Err() == nil {
		switch err := follow(ctx); {
		case err == nil:
			continue
		case isNone(err):
			hasNone()
		}
		retry.Wait(ctx)
	}
}

// isNone reports whether it is certain that the cluster has no such kind, or does not let the gateway list it.
func isNone(err error) bool {
	return errors.Is(err, cluster.ErrNoKind) || errors.Is(err, cache.ErrRefused) || errors.Is(err, cache.ErrNotWatchable) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// following is the board's reading of three kinds at most: LocalQueues, ClusterQueues and Workloads, in this order, or Volcano's.
type following struct {
	*board
	stores  []*cache.Store
	named   []string // of Volcano's stores: their kinds
	cursors []*cache.Cursor
	wakes   *stream.WakeChannel
	space   [128]*cache.Event
}

func (f *following) disarm() {
	for _, c := range f.cursors {
		c.Disarm()
	}
	f.cursors = nil
}

// until builds from the stores, and reads what changes, until that is not possible any more, or, with nil, until one of the
// kinds that are lacking may be listed, which is looked at as often as again says first, and then each lacksAgain.
func (f *following) until(ctx context.Context, build func(context.Context) bool, read func() bool, lacking []string, again <-chan time.Time) error {
	defer f.disarm()
	var gone [3]<-chan struct{}
	for i, store := range f.stores {
		gone[i] = store.Gone()
	}
	for build(ctx) {
		for read() {
			select {
			case <-f.wakes.C:
				continue
			case <-gone[0]:
			case <-gone[1]:
			case <-gone[2]:
			case <-again:
				if f.mayListSome(ctx, lacking) {
					return nil
				}
				again = time.After(lacksAgain)
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
			return cache.ErrNotServed
		}
		f.disarm()
	}
	return ctx.Err()
}

// mayListSome reports whether the gateway may list one of some kinds by now.
func (b *board) mayListSome(ctx context.Context, named []string) bool {
	ctx, cancel := context.WithTimeout(ctx, lookAgain)
	defer cancel()
	return slices.ContainsFunc(named, func(kind string) bool {
		_, err := b.mayList(ctx, kind)
		return err == nil
	})
}

// each calls take, under the lock, with each event that has come, and the place of its store. It is false if all has to be read
// anew: take says so, or events were missed.
func (f *following) each(take func(store int, event *cache.Event) bool) bool {
	defer clear(f.space[:]) // it must not keep objects alive
	for i, cursor := range f.cursors {
		for more := true; more; {
			batch, _, err := cursor.Next(f.space[:0], f.wakes)
			if err != nil {
				return false
			}
			f.mu.Lock()
			all := !slices.ContainsFunc(batch, func(event *cache.Event) bool { return !take(i, event) })
			f.mu.Unlock()
			if !all {
				return false
			}
			more = len(batch) == cap(f.space)
		}
	}
	return true
}
