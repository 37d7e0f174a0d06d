package clients

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
)

// client is one library, with its driver and its two names.
type client struct {
	name   string // in the table
	key    string // in the driver
	driver *driver
}

// subject is one client with one stream, and a small application around it: that keeps a map, and opens the stream
// anew when the client has given up.
type subject struct {
	client client
	url    string

	mu     sync.Mutex
	id     int // of the stream in the driver
	mirror *mirror
	tally
	gone   error // why the application has to open a new stream; nil: it does not have to
	broken error // how the contract was broken
}

// tally counts what happened to a stream.
type tally struct {
	opens  int
	ended  int // how often the library left it to the application to go on
	deaths int
	synced int
	resets map[string]int
	byes   map[string]int
}

func (c client) subscribe(t *testing.T, url string) *subject {
	t.Helper()
	s := &subject{client: c, url: url, mirror: newMirror()}
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *subject) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mirror.pending = map[string]object{}
	s.gone = nil
	var err error
	s.id, err = s.client.driver.open(command{Client: s.client.key, URL: s.url, Raised: true}, s.hear)
	return err
}

// revive opens the stream anew if the client has given up.
func (s *subject) revive() error {
	s.mu.Lock()
	id, gone := s.id, s.gone
	s.mu.Unlock()
	if gone == nil {
		return nil
	}
	if err := s.client.driver.close(id); err != nil {
		return err
	}
	return s.open()
}

func (s *subject) hear(r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Type {
	case "open":
		s.opens++
		s.mirror.opened()
	case "ended":
		s.ended++
	case "dead":
		s.deaths++
		s.gone = fmt.Errorf("it has given up: %s", r.Message)
	case "event":
		if s.gone == nil && s.broken == nil {
			s.take(r)
		}
	}
}

func (s *subject) take(r report) {
	err := s.mirror.tell(r.Event, r.Data)
	switch {
	case err == nil:
	case errors.Is(err, errTorn):
		// Some clients pass on the part of a frame that came before the gateway was killed. Their position is then
		// wrong.
		s.gone = err
	default:
		s.broken = err
	}
}

// tallied returns what has happened so far.
func (s *subject) tallied() tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tally
	now.synced, now.resets, now.byes = s.mirror.synced, maps.Clone(s.mirror.resets), maps.Clone(s.mirror.byes)
	return now
}

// since returns what has happened after an earlier tally.
func (a tally) since(b tally) tally {
	d := tally{a.opens - b.opens, a.ended - b.ended, a.deaths - b.deaths, a.synced - b.synced, map[string]int{}, map[string]int{}}
	for reason, n := range a.resets {
		if n > b.resets[reason] {
			d.resets[reason] = n - b.resets[reason]
		}
	}
	for reason, n := range a.byes {
		if n > b.byes[reason] {
			d.byes[reason] = n - b.byes[reason]
		}
	}
	return d
}

// sees fails unless the client's map is complete and has an object of this name.
func (s *subject) sees(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch _, ok := s.mirror.objects[name]; {
	case s.broken != nil:
		return fmt.Errorf("%s: %w", s.client.key, s.broken)
	case s.gone != nil:
		return fmt.Errorf("%s: %w", s.client.key, s.gone)
	case s.mirror.pending != nil:
		return fmt.Errorf("%s: waits for a snapshot; opened %d times", s.client.key, s.opens)
	case !ok:
		return fmt.Errorf("%s: has not seen %s; opened %d times", s.client.key, name, s.opens)
	}
	return nil
}

// differs names the first difference between the client's map and the cluster's state.
func (s *subject) differs(state map[string]object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, want := range state {
		if have, ok := s.mirror.objects[name]; !ok || have != want {
			return fmt.Errorf("%s: has %s as %v, the cluster as %v", s.client.key, name, have, want)
		}
	}
	for name := range s.mirror.objects {
		if _, ok := state[name]; !ok {
			return fmt.Errorf("%s: still has %s, which is gone", s.client.key, name)
		}
	}
	return nil
}
