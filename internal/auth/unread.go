package auth

import (
	"context"
	"time"
)

const (
	// UnreadFor is how long the gateway still goes by what it once read in a cluster if it can no longer read it,
	// whatever the reason, while the API server answers other requests. After that, nobody is let in. While the API
	// server is away, what was read counts without limit, since nobody can change it there.
	UnreadFor = time.Minute
	// confirmEvery is how often the API server is sent another request while something cannot be read.
	confirmEvery = 5 * time.Second
)

// CountUnread counts, until the context ends, for how long something in a cluster cannot be read. Time counts only if
// the API server answered another request in it: while it is away, nothing changes there. So an API server that
// restarts shuts nobody out, nor does a proxy that answers for it.
//
// Unread tells whether there is something that cannot be read. It is called at the beginning, after each token from
// changed, and after each request. Whoever finds that something cannot be read, or can be read again, puts a token
// into changed. If nothing was unread before, time counts from that token on; otherwise it goes on.
//
// While there is something, answers sends the API server a request every confirmEvery, and returns nil if it is
// answered. Then count is told the time since the request before. That is at most twice confirmEvery, since a machine
// that slept did not ask. The functions are called one after another, and so they can share what they keep.
func CountUnread(ctx context.Context, changed <-chan struct{}, unread func() bool, answers func(context.Context) error, count func(passed time.Duration)) {
	asked := time.Now()
	for {
		var again <-chan time.Time
		if unread() {
			again = time.After(max(confirmEvery-time.Since(asked), 0))
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if again == nil {
				asked = time.Now()
			}
		case <-again:
			passed := min(time.Since(asked), 2*confirmEvery)
			asked = time.Now()
			if answers(ctx) == nil {
				count(passed)
			}
		}
	}
}
