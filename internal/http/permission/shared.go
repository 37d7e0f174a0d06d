package permission

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

// key is the digest of everything that an answer depends on. The hash must have no known
// collisions, since two callers with the same key would share an answer.
type key [sha256.Size]byte

// shared asks on behalf of several subscribers, one question at a time.
type shared struct {
	of        *Permissions
	key       key
	id        auth.Identity
	questions []Question
	entry     scheduler.AlarmEntry // rings when the next question is due
	changed   atomic.Bool          // permissions may have changed since the last question

	// Guarded by Permissions.mu.
	subscribers []Subscriber
	asking      bool
	asked       time.Time // when the last question was asked
	confirmed   time.Time // when the last question was asked that was answered completely
	// known is the answer that all subscribers know, except those that are owed one; nil if they
	// may know different ones.
	known *Answer
}

// keyOf is the key of a caller and what they are shown. Strings are quoted, so that different ones never have
// the same text.
func keyOf(id *auth.Identity, questions []Question) key {
	digest := sha256.New()
	fmt.Fprintf(digest, "%q %q %#v %d %t %d %q %q %q", id.Username, id.Groups, id.Claims, id.ExpiresAt.UnixNano(), id.Anonymous,
		id.Begun.UnixNano(), id.Session, string(id.Token), id.Cluster)
	for _, q := range questions {
		fmt.Fprintf(digest, " %q", q.Key)
	}
	return key(digest.Sum(nil))
}

// remove takes a subscriber off. The lock is held.
func (s *shared) remove(h *Subscription) {
	last := len(s.subscribers) - 1
	moved := s.subscribers[last]
	s.subscribers[h.index], moved.Permission().index = moved, h.index
	if s.subscribers = slices.Delete(s.subscribers, last, last+1); last == 0 {
		delete(s.of.shared, s.key)
		s.of.opts.Alarm.Remove(&s.entry)
	}
}

const (
	// answerWithin is how long one question may take at least.
	answerWithin = 10 * time.Second
	// askAgain is how soon it is asked again if permissions change all the time.
	askAgain = 100 * time.Millisecond
)

// askSoon arranges for another question, since the answer may have changed. It returns at once.
func (s *shared) askSoon() {
	if s.changed.Swap(true) {
		return
	}
	all := s.of
	all.mu.Lock()
	defer all.mu.Unlock()
	if !s.asking { // while a question is under way, its end looks at changed
		s.schedule()
	}
}

// schedule sets when the next question is asked. The caller holds the lock.
func (s *shared) schedule() {
	if len(s.subscribers) == 0 {
		return
	}
	alarm, interval := s.of.opts.Alarm, s.of.opts.Reauthorize
	at := s.asked.Add(askAgain)
	if !s.changed.Load() {
		at = alarm.Gathered(scheduler.Between(interval*8/10, interval))
	}
	alarm.Set(&s.entry, at)
}

// ask begins a question.
func (s *shared) ask() {
	all := s.of
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.ended || s.asking || len(s.subscribers) == 0 {
		return
	}
	s.asking, s.asked = true, time.Now()
	s.changed.Store(false) // before the question, so that what changes from here on leads to another question
	// An answer comes in any case: an authorizer that is busy with other questions confirms nothing.
	until := s.confirmed.Add(access.UnconfirmedFor)
	if soon := s.asked.Add(answerWithin); soon.After(until) {
		until = soon
	}
	answer := &Answer{asked: s.asked, visible: make([]visible, len(s.questions))}
	all.asking.Go(func() {
		ctx, cancel := context.WithDeadline(auth.WhileRunning(all.life), until)
		defer cancel()
		s.whatIsPermitted(ctx, answer)
		for _, m := range s.answered(answer) {
			m.Wake()
		}
	})
}

// answered hands out an answer, and returns the subscribers that did not know it and have to be woken.
func (s *shared) answered(answer *Answer) (waiting []Subscriber) {
	all := s.of
	all.mu.Lock()
	defer all.mu.Unlock()
	if answer.err == nil {
		s.confirmed = answer.asked
	}
	answer.confirmed = s.confirmed
	same := s.known != nil && s.known.same(answer)
	for _, m := range s.subscribers {
		own := m.Permission()
		if answer.asked.Before(own.asked) || same && !own.owed {
			continue
		}
		own.owed = false
		own.Tell(answer)
		waiting = append(waiting, m)
	}
	if s.known = nil; answer.plain() {
		s.known = answer
	}
	s.asking = false
	s.schedule()
	return waiting
}

// revoked reports whether the caller may see nothing any more.
func (a *Answer) revoked() bool { return a.refused != nil || a.nothing }

// plain reports whether the answer says what is permitted to all questions, and nothing else.
func (a *Answer) plain() bool {
	return a.err == nil && !a.revoked() && !a.ended &&
		!slices.ContainsFunc(a.visible, func(v visible) bool { return !v.known })
}

// same reports whether another answer is also plain, and says the same.
func (a *Answer) same(other *Answer) bool {
	return other.plain() && slices.EqualFunc(a.visible, other.visible, func(x, y visible) bool { return x.visible.Same(y.visible) })
}

// whatIsPermitted asks all questions at once.
func (s *shared) whatIsPermitted(ctx context.Context, answer *Answer) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	confirm := func() {
		err := s.of.opts.Confirm(ctx, s.id)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, auth.ErrBadToken):
			answer.refused = err
		case err != nil && slices.ContainsFunc(s.questions, func(q Question) bool { return q.See != nil && q.Live() }):
			answer.err = err
		}
	}
	ask := func(i int) {
		q := s.questions[i]
		if q.See == nil { // it is asked about when it is opened
			return
		}
		what, ok, err := q.See(ctx, s.id)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			answer.visible[i] = visible{known: true, visible: what}
			answer.nothing = answer.nothing || !ok
		case errors.Is(err, auth.ErrUnconfirmed):
			answer.ended, answer.err = true, err
		case q.Live():
			answer.err = err
		default: // the cluster is away, and permissions do not change there meanwhile
		}
	}
	if s.id.Token == "" {
		confirm() // nobody is asked
	} else {
		asking.Go(confirm)
	}
	for i := 1; i < len(s.questions); i++ {
		asking.Go(func() { ask(i) })
	}
	if len(s.questions) > 0 {
		ask(0)
	}
	asking.Wait()
}
