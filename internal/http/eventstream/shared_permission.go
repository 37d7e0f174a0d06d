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
)

// permissions are those of all streams. Streams of one caller that show the same have the same answers, so one question is
// asked for all of them, and a stream is woken only by an answer that it has not had: ten thousand idle streams that each
// asked for themselves would do little else.
type permissions struct {
	mu     sync.Mutex
	shared map[permissionKey]*sharedPermission
}

// permissionKey is the digest of all that an answer depends on. It is one without known collisions, for two callers with one
// key would share an answer.
type permissionKey [sha256.Size]byte

// sharedPermission asks for some streams, one question at a time.
type sharedPermission struct {
	hub       *Hub
	key       permissionKey
	id        auth.Identity
	questions []Question
	entry     entry       // rings when it is to be asked
	changed   atomic.Bool // since it was last asked

	// Guarded by permissions.mu.
	streams   []*session
	asking    bool
	asked     time.Time // when it last was
	confirmed time.Time // when it was last asked and answered for all sources
	// told is what all streams know that are owed nothing; nil: that is not sure.
	told *permissionAnswer
}

// sharePermission has the session told what its caller may see from now on.
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
			hub: h, key: key, id: ss.id, questions: questions, entry: entry{index: -1}, asked: p.asked, confirmed: p.confirmed,
		}
		shared.entry.wake = shared.ask
		if all.shared == nil {
			all.shared = map[permissionKey]*sharedPermission{}
		}
		all.shared[key] = shared
		interval := h.opts.Times.Reauthorize
		h.alarm.set(&shared.entry, h.alarm.gathered(between(interval/2, interval)))
	}
	p.place, p.owed = len(shared.streams), true
	shared.streams = append(shared.streams, ss)
	late := shared.asking // what is being asked is older than the stream, so it is not for it
	all.mu.Unlock()
	p.shared.Store(shared)
	if late || p.changed.Load() {
		shared.askSoon()
	}
}

// permissionKeyOf tells callers and what they are shown from all others. Strings are quoted, so that no two have the same text.
func permissionKeyOf(id *auth.Identity, questions []Question) permissionKey {
	digest := sha256.New()
	fmt.Fprintf(digest, "%q %q %#v %d %t %d %q %q %q", id.Username, id.Groups, id.Claims, id.ExpiresAt.UnixNano(), id.Anonymous,
		id.Begun.UnixNano(), id.Session, string(id.Token), id.Cluster)
	for _, q := range questions {
		fmt.Fprintf(digest, " %q", q.Key)
	}
	return permissionKey(digest.Sum(nil))
}

// leavePermission has the session told nothing more.
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
	shared.streams[ss.permission.place], moved.permission.place = moved, ss.permission.place
	shared.streams[last] = nil
	if shared.streams = shared.streams[:last]; last == 0 {
		delete(all.shared, shared.key)
		ss.hub.alarm.remove(&shared.entry)
	}
}

// askSoon has it asked again, since the answer may have become another. It returns at once.
func (p *sharedPermission) askSoon() {
	if p.changed.Swap(true) {
		return
	}
	all := &p.hub.permissions
	all.mu.Lock()
	defer all.mu.Unlock()
	if !p.asking { // else that is looked at in the end
		p.schedule()
	}
}

// schedule sets when it is asked next. The lock is held.
func (p *sharedPermission) schedule() {
	if len(p.streams) == 0 {
		return
	}
	alarm, interval := p.hub.alarm, p.hub.opts.Times.Reauthorize
	at := p.asked.Add(askAgain)
	if !p.changed.Load() {
		at = alarm.gathered(between(interval*8/10, interval))
	}
	alarm.set(&p.entry, at)
}

// ask begins to ask.
func (p *sharedPermission) ask() {
	all := &p.hub.permissions
	all.mu.Lock()
	defer all.mu.Unlock()
	if p.asking || len(p.streams) == 0 {
		return
	}
	p.asking, p.asked = true, time.Now()
	p.changed.Store(false) // before it is asked: what changes from here on is asked for again
	// An answer comes in any case: an authorizer that is busy with other questions confirms nothing.
	until := p.confirmed.Add(access.UnconfirmedFor)
	if soon := p.asked.Add(answerWithin); soon.After(until) {
		until = soon
	}
	answer := &permissionAnswer{asked: p.asked, visible: make([]visibleAnswer, len(p.questions))}
	p.hub.goroutines.Go(func() { // which are waited for when there are no streams any more
		ctx, cancel := context.WithDeadline(auth.WhileRunning(p.hub.serving), until)
		defer cancel()
		p.whatIsPermitted(ctx, answer)
		for _, ss := range p.answered(answer) {
			ss.Wake()
		}
	})
}

// answered gives an answer to those who have not had it, who are to be woken.
func (p *sharedPermission) answered(answer *permissionAnswer) (waiting []*session) {
	all := &p.hub.permissions
	all.mu.Lock()
	defer all.mu.Unlock()
	if answer.err == nil {
		p.confirmed = answer.asked
	}
	answer.confirmed = p.confirmed
	known := p.told != nil && p.told.same(answer)
	for _, ss := range p.streams {
		own := &ss.permission
		if answer.asked.Before(own.asked) || known && !own.owed {
			continue
		}
		own.owed = false
		own.answer.Store(answer)
		waiting = append(waiting, ss)
	}
	if p.told = nil; answer.plain() {
		p.told = answer
	}
	p.asking = false
	p.schedule()
	return waiting
}

// plain reports whether the answer says for all sources what is permitted, and nothing else.
func (a *permissionAnswer) plain() bool {
	return a.err == nil && !a.revoked && !a.ended &&
		!slices.ContainsFunc(a.visible, func(v visibleAnswer) bool { return !v.known })
}

// same reports whether another answer is a plain one that says the same.
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
		case err != nil && slices.ContainsFunc(p.questions, func(q Question) bool { return q.Live() }):
			answer.err = err
		}
	}
	ask := func(i int) {
		q := p.questions[i]
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
		default: // while the API server is away, permissions do not change there
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
