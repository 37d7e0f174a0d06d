package http

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// permission is what a stream knows of what its caller may see. It asks again when it is told that something has changed,
// and from time to time, since not all changes are told. It asks beside the stream, which goes on meanwhile: an
// authorizer may take its time.
type permission struct {
	stop    func()                           // being told of changes
	changed atomic.Bool                      // since it was last asked
	answer  atomic.Pointer[permissionAnswer] // to the session
	asking  bool
	asked   time.Time // when it last was
	// confirmed is when it was last asked and answered for all watches.
	confirmed time.Time
}

type permissionAnswer struct {
	asked   time.Time
	revoked bool          // one watch at least shows nothing that may be seen
	ended   bool          // nothing counts any more that was permitted: it cannot be confirmed
	sights  []sightAnswer // by watch
	err     error         // why it is not known for one watch at least, though that one's events come in
}

type sightAnswer struct {
	known bool
	sight *sight
}

const (
	// unconfirmedFor is how long a stream may go on that nobody can say is still permitted.
	unconfirmedFor = time.Minute
	// answerWithin is how long one question may take at least.
	answerWithin = 10 * time.Second
	// askAgain is how soon a stream asks again if permissions change all the time.
	askAgain = 100 * time.Millisecond
)

// follow begins to follow the permissions of the session's caller. It comes before the first question, so that no change
// is missed.
func (ss *session) follow(id auth.Identity) {
	ss.id = id
	ss.permission.asked = time.Now()
	ss.permission.confirmed = ss.permission.asked
	ss.permission.stop = ss.server.opts.Authorizer.Changes(id, func() {
		if !ss.permission.changed.Swap(true) {
			ss.Wake()
		}
	})
}

// checkPermission takes the answer, if there is one, and asks if there is reason to. It returns a reason if the stream
// has to end.
func (ss *session) checkPermission() (stop string) {
	p := &ss.permission
	if answer := p.answer.Swap(nil); answer != nil {
		p.asking = false
		if stop := ss.judge(answer); stop != "" {
			return stop
		}
	}
	if !p.asking && p.changed.Load() {
		// The timer has it done at once, or a little later.
		if again := p.asked.Add(askAgain); again.Before(ss.times.due[dueCheck]) {
			ss.times.at(dueCheck, again)
		}
	}
	return ""
}

// askPermission begins to ask; there is one question at a time.
func (ss *session) askPermission() {
	p := &ss.permission
	if p.asking {
		return
	}
	p.asking, p.asked = true, time.Now()
	p.changed.Store(false) // before it is asked: what changes from here on is asked for again
	// An answer comes in any case: an authorizer that is busy with other questions confirms nothing.
	until := p.confirmed.Add(unconfirmedFor)
	if soon := p.asked.Add(answerWithin); soon.After(until) {
		until = soon
	}
	ss.server.carriers.Go(func() {
		ctx, cancel := context.WithDeadline(auth.WhileRunning(ss.server.serving), until)
		defer cancel()
		answer := ss.whatIsPermitted(ctx)
		p.answer.Store(&answer)
		ss.Wake()
	})
}

// whatIsPermitted asks for all watches at once.
func (ss *session) whatIsPermitted(ctx context.Context) permissionAnswer {
	answer := permissionAnswer{asked: time.Now(), sights: make([]sightAnswer, len(ss.watches))}
	var mu sync.Mutex
	var asking sync.WaitGroup
	asking.Go(func() {
		err := ss.confirm(ctx)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, auth.ErrBadToken):
			answer.revoked = true
		case err != nil && slices.ContainsFunc(ss.watches, func(w *watch) bool { return w.store.Upstream().Live }):
			answer.err = err
		}
	})
	for i, w := range ss.watches {
		asking.Go(func() {
			scope, err := ss.server.permitted(ctx, w.kinds, ss.id, w.target, "watch", true)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				sight, ok := sightOf(scope, w.target, w.store.Kind())
				answer.sights[i] = sightAnswer{known: true, sight: sight}
				answer.revoked = answer.revoked || !ok
			case errors.Is(err, auth.ErrUnconfirmed):
				answer.ended, answer.err = true, err
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
	ss.times.about(dueCheck, between(interval*8/10, interval))
	if answer.revoked {
		return goodbyeRevoked
	}
	for i, w := range ss.watches {
		if a := answer.sights[i]; a.known {
			w.resight, w.outdated = a.sight, !a.sight.same(w.sight)
		}
	}
	if answer.err == nil {
		ss.permission.confirmed = answer.asked
		return ""
	}
	ss.logger().Warn("a stream's permission could not be checked", "path", ss.path, "error", answer.err)
	if answer.ended || time.Since(ss.permission.confirmed) >= unconfirmedFor {
		return goodbyeUnavailable
	}
	return ""
}
