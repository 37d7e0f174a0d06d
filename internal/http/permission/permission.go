// Package permission owns when a caller no longer sees what they were permitted to see: an event
// stream, or a log. It follows changes of permissions. It also asks again from time to time, since
// not every change is announced. And it says when there has been no answer for too long.
//
// What it promises: for a caller who is shown something, only those answers count that were asked
// for after that began. What cannot be confirmed ends after access.UnconfirmedFor. It does not end
// while the cluster is away: its permissions do not change meanwhile.
//
// What it leaves to others: what a caller is shown, and how they are told that it ends. That is up
// to each Subscriber: a session of package eventstream, or a request for a log in package podlog.
package permission

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/scheduler"
	"github.com/kubecast/kubecast/internal/visibility"
)

// Options configure Permissions; all are required unless they say otherwise.
type Options struct {
	Authorizer auth.Authorizer // tells when somebody's permissions may have changed
	// Confirm says whether what somebody signed in with still counts; if not, its error is an auth.ErrBadToken.
	Confirm     func(context.Context, auth.Identity) error
	Revocations *auth.Revocations // may be nil
	Reauthorize time.Duration     // how often it is asked again
	Alarm       *scheduler.Alarm  // says when
}

// Question is what is asked again and again: what the caller may see.
type Question struct {
	// Key identifies the question. Of the same caller, questions with the same key are asked once.
	Key string
	// See answers; ok is false if the caller may see nothing. It is nil if there is nothing to ask.
	See func(ctx context.Context, id auth.Identity) (visible *visibility.Visibility, ok bool, err error)
	// Live reports whether an error of See counts. It does not while the cluster is away, since
	// permissions do not change there.
	Live func() bool
}

// Permissions are those of all subscribers. Subscribers of one caller that show the same have the
// same answers. So one question is asked for all of them, and an answer wakes only the subscribers
// that do not know it. If each of ten thousand idle streams asked for itself, the gateway would do
// little else.
type Permissions struct {
	opts   Options
	life   context.Context // ends the questions
	end    context.CancelFunc
	asking sync.WaitGroup

	mu     sync.Mutex
	ended  bool // there are no further questions
	shared map[key]*shared
}

// New returns Permissions without subscribers.
func New(opts Options) *Permissions {
	p := &Permissions{opts: opts, shared: map[key]*shared{}}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// End ends the questions, and waits for those that are being asked.
func (p *Permissions) End() {
	p.end()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.asking.Wait()
}

// Questions is how many questions are asked again and again; subscribers may share one.
func (p *Permissions) Questions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.shared)
}

// Revoked is nil unless what a caller signed in with was revoked; then it is an auth.ErrRevoked.
func (p *Permissions) Revoked(id auth.Identity) error {
	if p.opts.Revocations == nil {
		return nil
	}
	if err := p.opts.Revocations.Check(id); errors.Is(err, auth.ErrRevoked) {
		return err
	}
	return nil
}

// Revocations calls changed whenever something was revoked, until it is stopped.
func (p *Permissions) Revocations(changed func()) (stop func()) {
	if p.opts.Revocations == nil {
		return func() {}
	}
	return p.opts.Revocations.Changes(changed)
}

// Expired reports whether a caller's token has come to its end by the wall clock. A machine's monotonic clock stands still while
// the machine sleeps.
func Expired(id auth.Identity, now time.Time) bool {
	return !id.ExpiresAt.IsZero() && !now.Round(0).Before(id.ExpiresAt)
}

// Subscriber goes on showing a caller something, and is told when what the caller may see has changed.
type Subscriber interface {
	// Wake has it look at its Subscription's answer. Any goroutine may call it at any time.
	Wake()
	// Permission is its Subscription, always the same.
	Permission() *Subscription
}

// Subscription is what a Subscriber knows of its caller's permission. Whoever serves the subscriber
// calls its methods, and those of Permissions for the subscriber, one after the other.
type Subscription struct {
	stop    func()                 // ends the notifications of changes; nil: there are none
	changed atomic.Bool            // permissions may have changed before the subscriber had joined
	shared  atomic.Pointer[shared] // nil before the subscriber has joined
	answer  atomic.Pointer[Answer] // the newest answer that is meant for this subscriber
	// asked is when the subscriber's permission was first asked for. An answer counts only if it was
	// asked for later.
	asked time.Time
	// confirmed is when the newest complete answer was asked for that the subscriber knows.
	confirmed time.Time

	// Guarded by Permissions.mu.
	index int  // its index in shared.subscribers
	owed  bool // no answer has come since the subscriber joined
}

// Answer says what a caller may see.
type Answer struct {
	asked     time.Time
	confirmed time.Time // when all questions were last answered
	refused   error     // why what the caller signed in with counts no more
	nothing   bool      // of some question the answer is that they may see nothing
	ended     bool      // what was permitted counts no more, since it could not be confirmed for too long
	visible   []visible // by question
	err       error     // why at least one question could not be answered, although its cluster can be reached
}

type visible struct {
	known   bool
	visible *visibility.Visibility
}

// Visible is the answer to the question of a number; ok is false if it is not known.
func (a *Answer) Visible(question int) (_ *visibility.Visibility, ok bool) {
	return a.visible[question].visible, a.visible[question].known
}

// Err is why at least one question could not be answered, or nil.
func (a *Answer) Err() error { return a.err }

// Refused is why what the caller signed in with counts no more, an auth.ErrBadToken, or nil.
func (a *Answer) Refused() error { return a.refused }

// Verdict is what an answer means for what a caller is shown.
type Verdict int

const (
	Confirmed   Verdict = iota // they may see what it says
	Unconfirmed                // it could not be asked, and what was permitted counts for now
	Unknown                    // it could not be asked for so long that nothing counts any more
	Revoked                    // they may see nothing any more
)

// Tell gives a subscriber an answer, which replaces one that it has not taken.
func (h *Subscription) Tell(answer *Answer) { h.answer.Store(answer) }

// Take returns the newest answer once; nil if there is no other one than before.
func (h *Subscription) Take() *Answer { return h.answer.Swap(nil) }

// HasAnswer reports whether Take would return one.
func (h *Subscription) HasAnswer() bool { return h.answer.Load() != nil }

// Judge takes an answer.
func (h *Subscription) Judge(answer *Answer) Verdict {
	if answer.revoked() {
		return Revoked
	}
	if answer.confirmed.After(h.confirmed) {
		h.confirmed = answer.confirmed
	}
	switch {
	case answer.err == nil:
		return Confirmed
	case answer.ended || time.Since(h.confirmed) >= access.UnconfirmedFor:
		return Unknown
	}
	return Unconfirmed
}

// Follow subscribes to changes of a caller's permissions. It comes before the first question, so that no change is
// missed, and Leave after it.
func (p *Permissions) Follow(m Subscriber, id auth.Identity) {
	h := m.Permission()
	h.asked = time.Now()
	h.confirmed = h.asked
	h.stop = p.opts.Authorizer.Changes(id, func() {
		h.changed.Store(true)
		if shared := h.shared.Load(); shared != nil {
			shared.askSoon()
		}
	})
}

// Join has a subscriber told from now on what its caller may see.
func (p *Permissions) Join(m Subscriber, id auth.Identity, questions []Question) {
	h := m.Permission()
	of := keyOf(&id, questions)
	p.mu.Lock()
	s := p.shared[of]
	if s == nil {
		s = &shared{of: p, key: of, id: id, questions: questions, asked: h.asked, confirmed: h.confirmed}
		s.entry.Wake = s.ask
		p.shared[of] = s
		p.opts.Alarm.Set(&s.entry, p.opts.Alarm.Gathered(scheduler.Between(p.opts.Reauthorize/2, p.opts.Reauthorize)))
	}
	h.index, h.owed = len(s.subscribers), true
	s.subscribers = append(s.subscribers, m)
	late := s.asking // the question under way is older than the subscriber, so its answer does not count for the subscriber
	p.mu.Unlock()
	h.shared.Store(s)
	if late || h.changed.Load() {
		s.askSoon()
	}
}

// Rejoin is Join for a subscriber that asks something else from now on. Of what was asked for at a
// time, no earlier answer counts. It does nothing for a subscriber that has not joined.
func (p *Permissions) Rejoin(m Subscriber, id auth.Identity, questions []Question, asked time.Time) {
	h := m.Permission()
	if !h.part(m) {
		return
	}
	h.asked = asked
	lost := h.Take() != nil // it is to the questions that there were
	p.Join(m, id, questions)
	if lost {
		h.shared.Load().askSoon()
	}
}

// Leave has a subscriber told nothing more.
func (p *Permissions) Leave(m Subscriber) {
	h := m.Permission()
	if h.stop != nil {
		h.stop()
	}
	h.part(m)
}

// part takes a subscriber off those that ask the same. It reports whether it was among them.
func (h *Subscription) part(m Subscriber) bool {
	s := h.shared.Swap(nil)
	if s == nil {
		return false
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.remove(h)
	return true
}
