package recorder

import (
	"sync"
	"time"
)

// Phase says what a recorder is doing.
type Phase string

// The phases of a recorder.
const (
	Waiting   Phase = "waiting"   // for the kind's first list, or for the database: see Status.Err
	Standby   Phase = "standby"   // another replica records
	Recording Phase = "recording" // this one does
)

// Status is what is known of a recorder at one moment.
type Status struct {
	Phase   Phase
	Since   time.Time // when Phase last changed
	Err     error     // why it is Waiting; nil before the first failure
	Version uint64    // everything up to here has been read; 0: not known
	Seq     uint64    // the last transition's number; 0: none, or not known
	Jobs    int       // how many living jobs it knows
	Behind  bool      // there is more to read, or that is not known
	Caught  time.Time // when it had last read everything; before that, when it began
}

// status is a Status that changes.
type status struct {
	mu  sync.Mutex
	now Status
}

func (s *status) get() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// become changes the phase.
func (s *status) become(phase Phase, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.Phase != phase {
		s.now.Phase, s.now.Since = phase, time.Now()
	}
	if s.now.Err = err; phase != Recording {
		s.now.Behind = true
	}
}

// writes records that there is something to write, until stands is called.
func (s *status) writes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.now.Behind {
		s.now.Behind, s.now.Caught = true, time.Now()
	}
}

// stands records where the recorder stands once everything is written.
func (s *status) stands(version, seq uint64, jobs int, behind bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Version, s.now.Seq, s.now.Jobs, s.now.Behind = version, seq, jobs, behind
	if !behind {
		s.now.Caught = time.Now()
	}
}
