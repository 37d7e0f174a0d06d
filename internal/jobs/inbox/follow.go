package inbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/jobs/feed"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/stream"
)

// headsAtOnce is how many inboxes with news are read at once.
const headsAtOnce = 1000

// follows are the inboxes that are followed at this replica. One question to the database is asked
// for all of them, however many there are: what inboxes have changed since the last one.
type follows struct {
	poller feed.Poller

	mu      sync.Mutex
	byOwner map[string]*followed
	changes int64         // all changes up to this one are known
	settled chan struct{} // closed once changes is known, or cannot be
	asked   bool          // changes is known
	outage  feed.Outage
}

// followed is what is known of an inbox that is followed. Its fields are guarded by follows.mu.
type followed struct {
	head    uint64 // the last number that is known; 0: none has come since it is followed
	ended   bool   // the database was restored: what followers know may be of another time
	readers int
	waiting map[stream.Waiter]struct{}
}

func newFollows() follows {
	return follows{poller: feed.NewPoller(), byOwner: map[string]*followed{}, settled: make(chan struct{})}
}

// Follower is one reader's following of an inbox.
type Follower struct {
	inbox *Inbox
	owner string
	of    *followed
}

// Follow begins to follow a user's inbox. The caller must call Leave.
func (i *Inbox) Follow(owner string) *Follower {
	all := &i.follows
	all.mu.Lock()
	defer all.mu.Unlock()
	of := all.byOwner[owner]
	if of == nil {
		of = &followed{waiting: map[stream.Waiter]struct{}{}}
		all.byOwner[owner] = of
		if len(all.byOwner) == 1 {
			all.poller.Nudge()
		}
	}
	of.readers++
	i.metrics.readers.Inc()
	return &Follower{i, owner, of}
}

// Leave ends it. The waiter is not woken any more.
func (f *Follower) Leave(w stream.Waiter) {
	all := &f.inbox.follows
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(f.of.waiting, w)
	if f.of.readers--; f.of.readers == 0 && all.byOwner[f.owner] == f.of {
		delete(all.byOwner, f.owner)
	}
	f.inbox.metrics.readers.Dec()
}

// Ready waits until nothing that is written from then on escapes Next. The error wraps ErrAway, or is of the context.
func (f *Follower) Ready(ctx context.Context) error {
	all := &f.inbox.follows
	all.mu.Lock()
	settled := all.settled
	all.mu.Unlock()
	select {
	case <-settled:
	case <-ctx.Done():
		return ctx.Err()
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.outage.Err()
}

// Next reports whether there may be something behind a number. If not, the waiter is woken once,
// when there may be. The error wraps ErrAway.
func (f *Follower) Next(after uint64, w stream.Waiter) (more bool, err error) {
	all := &f.inbox.follows
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case f.of.head > after:
		return true, nil
	case all.outage.Err() != nil:
		return false, all.outage.Err()
	case f.of.ended:
		return false, fmt.Errorf("%w: it was restored", ErrAway)
	}
	f.of.waiting[w] = struct{}{}
	return false, nil
}

// Wake has the database asked at once. It does not wait.
func (i *Inbox) Wake() { i.follows.poller.Nudge() }

// follow asks what is new until the context ends.
func (i *Inbox) follow(ctx context.Context) { i.follows.poller.Run(ctx, i.isFollowed, i.askNews) }

// isFollowed reports whether anybody follows an inbox. While nobody does, it is not known what is new.
func (i *Inbox) isFollowed() bool {
	all := &i.follows
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.byOwner) > 0 {
		return true
	}
	if all.asked || all.outage.Err() != nil {
		all.asked, all.outage, all.settled = false, feed.Outage{}, make(chan struct{})
	}
	return false
}

// news is what has changed.
type news struct {
	changes int64
	heads   map[string]uint64
	more    bool // there is more
}

// askNews asks what is new, and wakes the followers whom it concerns.
func (i *Inbox) askNews(ctx context.Context) error {
	all, began := &i.follows, time.Now()
	asking, cancel := context.WithTimeout(ctx, feed.AwayAfter)
	defer cancel()
	all.mu.Lock()
	since, asked := all.changes, all.asked
	all.mu.Unlock()
	var found news
	err := i.ask(asking, "look for news", func(ctx context.Context) (err error) {
		found, err = i.news(ctx, since, asked)
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, w := range all.answered(began, found, err) {
		w.Wake()
	}
	if found.more {
		all.poller.Nudge()
	}
	return err
}

func (i *Inbox) news(ctx context.Context, since int64, asked bool) (found news, err error) {
	if err := i.store.QueryRow(ctx, "SELECT changes FROM inbox_news WHERE id = 1").Scan(&found.changes); err != nil || !asked || found.changes <= since {
		return found, err
	}
	found.heads = map[string]uint64{}
	var n int
	var last int64
	take := func(where string, args ...any) error {
		return i.store.Each(ctx, func(scan store.Scan) error {
			var owner string
			var seq uint64
			err := scan(&owner, &seq, &last)
			n, found.heads[owner] = n+1, max(seq, found.heads[owner])
			return err
		}, "SELECT owner, seq, news FROM inbox_heads WHERE "+where, args...)
	}
	if err := take("news > ? AND news <= ? ORDER BY news LIMIT ?", since, found.changes, headsAtOnce); err != nil || n < headsAtOnce {
		return found, err
	}
	// The last change may concern further inboxes.
	found.changes, found.more = last, true
	return found, take("news = ?", last)
}

// answered takes an answer, and returns whom to wake.
func (all *follows) answered(began time.Time, found news, err error) (woken []stream.Waiter) {
	all.mu.Lock()
	defer all.mu.Unlock()
	wake := func(of *followed) {
		for w := range of.waiting {
			woken = append(woken, w)
		}
		clear(of.waiting)
	}
	defer func() {
		select {
		case <-all.settled:
		default:
			close(all.settled)
		}
	}()
	if changed := all.outage.Take(began, err, all.asked); err != nil {
		for _, of := range all.byOwner {
			if changed {
				wake(of)
			}
		}
		return woken
	}
	if all.asked && found.changes < all.changes { // the database was restored
		for owner, of := range all.byOwner {
			of.ended = true
			wake(of)
			delete(all.byOwner, owner)
		}
	}
	for owner, seq := range found.heads {
		if of := all.byOwner[owner]; of != nil && seq > of.head {
			of.head = seq
			wake(of)
		}
	}
	all.changes, all.asked = found.changes, true
	return woken
}

var _ store.Writer = (*Inbox)(nil)
