package clients

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
)

// subjects are the subjects of one test.
type subjects []*subject

var marks atomic.Int64

// settle makes an object, and waits until each client has seen it.
func (all subjects) settle(t *testing.T, n *namespace) {
	t.Helper()
	mark := fmt.Sprintf("mark-%d", marks.Add(1))
	if err := n.create(t.Context(), mark, ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all clients see "+mark, func() error {
		for _, s := range all {
			if err := s.sees(mark); err != nil {
				return errors.Join(err, all.revive())
			}
		}
		return nil
	})
}

// revive does what the clients' applications have to do.
func (all subjects) revive() error {
	for _, s := range all {
		if err := s.revive(); err != nil {
			return fmt.Errorf("%s: %w", s.client.key, err)
		}
	}
	return nil
}

// compare fails the test unless each client's map is the namespace's state. Nothing may change any more, and the
// clients must have settled.
func (all subjects) compare(t *testing.T, n *namespace) {
	t.Helper()
	state, err := n.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if err := s.differs(state); err != nil {
			t.Error(err)
		}
	}
}

// tallies returns what has happened so far, by the clients' keys.
func (all subjects) tallies() map[string]tally {
	tallies := map[string]tally{}
	for _, s := range all {
		tallies[s.client.key] = s.tallied()
	}
	return tallies
}
