package http

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// permission asks again and again whether the caller may still see what a stream shows. It asks beside the stream,
// which goes on meanwhile: an authorizer may take its time.
type permission struct {
	answer    atomic.Pointer[permissionAnswer] // to the session
	confirmed time.Time                        // when it was last asked and said yes to
}

type permissionAnswer struct {
	asked   time.Time
	revoked bool  // for one watch at least
	err     error // why it is not known for one watch at least, though that one's events come in
}

// unconfirmedFor is how long a stream may go on that nobody can say is still permitted.
const unconfirmedFor = time.Minute

// askPermission begins to ask; there is one question at a time.
func (ss *session) askPermission() {
	ss.server.carriers.Go(func() {
		answer := ss.stillAllowed(ss.server.serving)
		ss.permission.answer.Store(&answer)
		ss.Wake()
	})
}

// stillAllowed asks for all watches at once.
func (ss *session) stillAllowed(ctx context.Context) permissionAnswer {
	answer := permissionAnswer{asked: time.Now()}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, w := range ss.watches {
		asking.Go(func() {
			decision, err := ss.server.opts.Authorizer.Authorize(ctx, ss.id, w.target.request(w.kinds.Cluster().Name(), "watch"))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				answer.revoked = answer.revoked || !decision.Allowed
			case w.store.Upstream().Live:
				answer.err = err
			default: // while the API server is away, permissions do not change there
			}
		})
	}
	asking.Wait()
	return answer
}

// judge takes an answer, and returns a reason if the stream has to end for it.
func (ss *session) judge(answer *permissionAnswer) string {
	interval := ss.server.opts.Stream.Reauthorize
	ss.times.in(dueCheck, between(interval*8/10, interval))
	switch {
	case answer.revoked:
		return goodbyeRevoked
	case answer.err == nil:
		ss.permission.confirmed = answer.asked
		return ""
	}
	ss.logger().Warn("a stream's permission could not be checked", "path", ss.path, "error", answer.err)
	if time.Since(ss.permission.confirmed) > unconfirmedFor {
		return goodbyeUnavailable
	}
	return ""
}
