package eventstream

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/scheduler"
)

// permissions are the permissions of all streams. Streams of one caller that show the same have the
// same answers. So one question is asked for all of them, and an answer wakes only the streams that
// do not know it. If each of ten thousand idle streams asked for itself, the gateway would do
// little else.
type permissions struct {
	mu     sync.Mutex
	shared map[permissionKey]*sharedPermission
}

// permissionKey is the digest of everything that an answer depends on. The hash must have no known
// collisions, since two callers with the same key would share an answer.
type permissionKey [sha256.Size]byte

// sharedPermission asks on behalf of several streams, one question at a time.
type sharedPermission struct {
	hub       *Hub
	key       permissionKey
	id        auth.Identity
	questions []Question
	entry     scheduler.Entry // rings when the next question is due
	changed   atomic.Bool     // permissions may have changed since the last question

	// Guarded by permissions.mu.
	streams   []*session
	asking    bool
	asked     time.Time // when the last question was asked
	confirmed time.Time // when the last question was asked that was answered for all sources
	// known is the answer that all streams know, except those that are owed one; nil if they may know different ones.
	known *permissionAnswer
}

// sharePermission joins the session to those that ask the same, so that it is told from now on what its caller may see.
func (ss *session) sharePermission() {
	h, p := ss.hub, &ss.permission
	questions := make([]Question, len(ss.sources))
	for i, s := range ss.sources {
		questions[i] = s.Question()
	}
	key := permissionKeyOf(&ss.id, questions)
	all := &h.permissions
	all.mu.Lock()
	shared := all.shared[key]
	if shared == nil {
		shared = &sharedPermission{
			hub: h, key: key, id: ss.id, questions: questions, asked: p.asked, confirmed: p.confirmed,
		}
		shared.entry.Wake = shared.ask
		if all.shared == nil {
			all.shared = map[permissionKey]*sharedPermission{}
		}
		all.shared[key] = shared
		interval := h.opts.Times.Reauthorize
		h.alarm.Set(&shared.entry, h.alarm.Gathered(between(interval/2, interval)))
	}
	p.index, p.owed = len(shared.streams), true
	shared.streams = append(shared.streams, ss)
	late := shared.asking // the question under way is older than the stream, so its answer does not count for the stream
	all.mu.Unlock()
	p.shared.Store(shared)
	if late || p.changed.Load() {
		shared.askSoon()
	}
}

// permitAlso joins the session to those that ask what it does from now on, because its sources are
// others. Of what was asked for at a time, no earlier answer counts.
func (ss *session) permitAlso(asked time.Time) {
	if ss.permission.shared.Load() == nil {
		return // it has not joined any
	}
	ss.leavePermission()
	ss.permission.asked = asked
	lost := ss.permission.answer.Swap(nil) != nil // it is for the sources that there were
	ss.sharePermission()
	if lost {
		ss.permission.shared.Load().askSoon()
	}
}

// permissionKeyOf is the key of a caller and what they are shown. Strings are quoted, so that different ones never have
// the same text.
func permissionKeyOf(id *auth.Identity, questions []Question) permissionKey {
	digest := sha256.New()
	fmt.Fprintf(digest, "%q %q %#v %d %t %d %q %q %q", id.Username, id.Groups, id.Claims, id.ExpiresAt.UnixNano(), id.Anonymous,
		id.Begun.UnixNano(), id.Session, string(id.Token), id.Cluster)
	for _, q := range questions {
		fmt.Fprintf(digest, " %q", q.Key)
	}
	return permissionKey(digest.Sum(nil))
}

// leavePermission takes the session off, so that it is told nothing more.
func (ss *session) leavePermission() {
	shared := ss.permission.shared.Swap(nil)
	if shared == nil {
		return
	}
	all := &ss.hub.permissions
	all.mu.Lock()
	defer all.mu.Unlock()
	last := len(shared.streams) - 1
	moved := shared.streams[last]
	shared.streams[ss.permission.index], moved.permission.index = moved, ss.permission.index
	if shared.streams = slices.Delete(shared.streams, last, last+1); last == 0 {
		delete(all.shared, shared.key)
		ss.hub.alarm.Remove(&shared.entry)
	}
}

// askSoon arranges for another question, since the answer may have changed. It returns at once.
func (p *sharedPermission) askSoon() {
	if p.changed.Swap(true) {
		return
	}
	all := &p.hub.permissions
	all.mu.Lock()
	defer all.mu.Unlock()
	if !p.asking { // while a question is under way, its end looks at changed
		p.schedule()
	}
}

// schedule sets when the next question is asked. The caller holds the lock.
func (p *sharedPermission) schedule() {
	if len(p.streams) == 0 {
		return
	}
	alarm, interval := p.hub.alarm, p.hub.opts.Times.Reauthorize
	at := p.asked.Add(askAgain)
	if !p.changed.Load() {
		at = alarm.Gathered(between(interval*8/10, interval))
	}
	alarm.Set(&p.entry, at)
}

// ask begins a question.
func (p *sharedPermission) ask() {
	all := &p.hub.permissions
	all.mu.Lock()
	defer all.mu.Unlock()
	if p.asking || len(p.streams) == 0 {
		return
	}
	p.asking, p.asked = true, time.Now()
	p.changed.Store(false) // before the question, so that what changes from here on leads to another question
	// An answer comes in any case: an authorizer that is busy with other questions confirms nothing.
	until := p.confirmed.Add(access.UnconfirmedFor)
	if soon := p.asked.Add(answerWithin); soon.After(until) {
		until = soon
	}
	answer := &permissionAnswer{asked: p.asked, visible: make([]visibleAnswer, len(p.questions))}
	p.hub.goroutines.Go(func() { // Run waits for these goroutines after the last stream has ended
		ctx, cancel := context.WithDeadline(auth.WhileRunning(p.hub.serving), until)
		defer cancel()
		p.whatIsPermitted(ctx, answer)
		for _, ss := range p.answered(answer) {
			ss.Wake()
		}
	})
}

// answered hands out an answer, and returns the sessions that did not know it and have to be woken.
func (p *sharedPermission) answered(answer *permissionAnswer) (waiting []*session) {
	all := &p.hub.permissions
	all.mu.Lock()
	defer all.mu.Unlock()
	if answer.err == nil {
		p.confirmed = answer.asked
	}
	answer.confirmed = p.confirmed
	same := p.known != nil && p.known.same(answer)
	for _, ss := range p.streams {
		own := &ss.permission
		if answer.asked.Before(own.asked) || same && !own.owed {
			continue
		}
		own.owed = false
		own.answer.Store(answer)
		waiting = append(waiting, ss)
	}
	if p.known = nil; answer.plain() {
		p.known = answer
	}
	p.asking = false
	p.schedule()
	return waiting
}

// plain reports whether the answer says what is permitted for all sources, and nothing else.
func (a *permissionAnswer) plain() bool {
	return a.err == nil && !a.revoked && !a.ended &&
		!slices.ContainsFunc(a.visible, func(v visibleAnswer) bool { return !v.known })
}

// same reports whether another answer is also plain, and says the same.
func (a *permissionAnswer) same(other *permissionAnswer) bool {
	return other.plain() && slices.EqualFunc(a.visible, other.visible, func(x, y visibleAnswer) bool { return x.visible.Same(y.visible) })
}

// whatIsPermitted asks for all sources at once.
func (p *sharedPermission) whatIsPermitted(ctx context.Context, answer *permissionAnswer) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	confirm := func() {
		err := p.hub.opts.Confirm(ctx, p.id)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, auth.ErrBadToken):
			answer.revoked = true
		case err != nil && slices.ContainsFunc(p.questions, func(q Question) bool { return q.See != nil && q.Live() }):
			answer.err = err
		}
	}
	ask := func(i int) {
		q := p.questions[i]
		if q.See == nil { // it is asked about when it is opened
			return
		}
		visible, ok, err := q.See(ctx, p.id)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			answer.visible[i] = visibleAnswer{known: true, visible: visible}
			answer.revoked = answer.revoked || !ok
		case errors.Is(err, auth.ErrUnconfirmed):
			answer.ended, answer.err = true, err
		case q.Live():
			answer.err = err
		default: // the cluster is away, and permissions do not change there meanwhile
		}
	}
	if p.id.Token == "" {
		confirm() // nobody is asked
	} else {
		asking.Go(confirm)
	}
	for i := 1; i < len(p.questions); i++ {
		asking.Go(func() { ask(i) })
	}
	if len(p.questions) > 0 {
		ask(0)
	}
	asking.Wait()
}
