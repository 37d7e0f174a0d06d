package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
)

var (
	// ErrNoTarget means that no target has a name.
	ErrNoTarget = errors.New("no webhook has this name")
	// ErrNotReady means that the database cannot be used yet.
	ErrNotReady = errors.New("the history's database is not ready")
)

// Status is how a target is, for operators.
type Status struct {
	Name    string
	Address string // its URL, without what may be a secret
	Digest  time.Duration
	outbox.TargetState
	outbox.Counts
	Letters []*outbox.Message // the newest dead letters
	Err     error             // why the rest is not known
}

// lettersShown is how many dead letters of a target are shown.
const lettersShown = 10

// Status returns how all targets are, as the database has it.
func (s *Senders) Status(ctx context.Context) []Status {
	var all []Status
	for _, t := range s.all() {
		one := Status{Name: t.Name, Address: addressOf(t.URL), Digest: t.Digest}
		store, err := s.opened()
		if err == nil {
			one.TargetState, err = store.State(ctx, t.Name)
		}
		if err == nil {
			one.Counts, err = store.Counts(ctx, t.Name)
		}
		if err == nil {
			one.Letters, err = store.Dead(ctx, t.Name, lettersShown)
		}
		one.Err = err
		all = append(all, one)
	}
	return all
}

// addressOf is a URL without name, password, path and parameters: those of chats are secrets.
func addressOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

func (s *Senders) opened() (*outbox.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		return nil, ErrNotReady
	}
	return s.store, nil
}

func (s *Senders) find(name string) (*target, error) {
	all := s.all()
	i := slices.IndexFunc(all, func(t *target) bool { return t.Name == name })
	if i < 0 {
		return nil, ErrNoTarget
	}
	return all[i], nil
}

// Test sends a target a message of its own type at once, whether or not it is switched off, and
// returns what it answered.
func (s *Senders) Test(ctx context.Context, name string) (answer string, err error) {
	t, err := s.find(name)
	if err != nil {
		return "", err
	}
	id := "msg_" + strings.ToLower(rand.Text())
	r := t.send(ctx, id, testEvent(id, now()))
	return fmt.Sprintf("%s: %s", r.outcome, r.answer), nil
}

// Enable switches a target on, and ends its hold.
func (s *Senders) Enable(ctx context.Context, name string) error {
	t, err := s.find(name)
	if err != nil {
		return err
	}
	store, err := s.opened()
	if err != nil {
		return err
	}
	return store.Enable(ctx, t.Name)
}

// Resend sends dead letters of a target again: the one with an id, or if that is empty, those that were written in a
// span of time. It returns how many.
func (s *Senders) Resend(ctx context.Context, name, id string, since, until time.Time) (n int64, err error) {
	t, err := s.find(name)
	if err != nil {
		return 0, err
	}
	store, err := s.opened()
	if err != nil {
		return 0, err
	}
	if n, err = store.Resend(ctx, t.Name, id, jobs.At(since), jobs.At(until)); err == nil {
		t.wakes.Wake()
	}
	return n, err
}
