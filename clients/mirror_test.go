package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// object is the part of an object that is compared.
type object struct {
	uid     string
	version uint64
}

// mirror is a client's map, kept by the events of a stream of one watch as an application would do it (docs/wire.md,
// "Event streams").
type mirror struct {
	objects map[string]object
	// pending is a snapshot that is not complete yet; nil if there is none. Objects that are not in it at its end are
	// gone.
	pending map[string]object
	synced  int
	resets  map[string]int // by reason
	byes    map[string]int // by reason
}

func newMirror() *mirror {
	return &mirror{
		objects: map[string]object{},
		pending: map[string]object{},
		resets:  map[string]int{},
		byes:    map[string]int{},
	}
}

// opened records a new connection. A snapshot that was cut off begins again, without another reset.
func (m *mirror) opened() {
	if m.pending != nil {
		m.pending = map[string]object{}
	}
}

// errTorn means that an event's data was only a part of what the gateway sent.
var errTorn = errors.New("data that is no JSON")

// tell applies an event. An error means that the gateway, or the client, has broken the contract.
func (m *mirror) tell(event, data string) error {
	var said struct {
		Metadata        struct{ Name, UID, ResourceVersion string }
		ResourceVersion string
		Reason          string
		Count           int
	}
	if err := json.Unmarshal([]byte(data), &said); err != nil {
		return fmt.Errorf("%w: %s: %w: %.80q", errTorn, event, err, data)
	}
	target := m.objects
	if m.pending != nil {
		target = m.pending
	}
	switch event {
	case "added", "modified", "deleted":
		name := said.Metadata.Name
		version, err := strconv.ParseUint(said.Metadata.ResourceVersion, 10, 64)
		if err != nil {
			return fmt.Errorf("%s of %q: %w", event, name, err)
		}
		now := object{said.Metadata.UID, version}
		if had, ok := target[name]; ok && had.version >= now.version {
			return fmt.Errorf("%s of %q: version %d after %d, which is twice or too late", event, name, now.version, had.version)
		}
		if event == "deleted" {
			delete(target, name)
		} else {
			target[name] = now
		}
	case "reset":
		m.resets[said.Reason]++
		m.pending = map[string]object{}
	case "synced":
		m.synced++
		switch {
		case m.pending == nil:
			return fmt.Errorf("synced, but there was no snapshot")
		case len(m.pending) != said.Count:
			return fmt.Errorf("synced says %d objects, the snapshot had %d", said.Count, len(m.pending))
		}
		m.objects, m.pending = m.pending, nil
	case "goodbye":
		m.byes[said.Reason]++
	}
	return nil
}
