package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// view is what one watch of a stream has told its follower.
type view struct {
	objects map[string]object // by namespace/name

	told      []told     // outside of snapshots
	covered   []interval // by snapshots
	resets    []string   // reasons
	freshness []string   // stale and live, as they came

	position   uint64              // everything up to it has been told; 0: a snapshot is under way
	some       uint64              // some is known of what lies up to it; 0: of no more than the position
	from       uint64              // the position when that snapshot began
	snapshot   map[string]bool     // keys that the snapshot under way has told
	connection map[occurrence]bool // what this connection has told since the snapshot, if there was one

	conflated bool // see follower

	lean  bool   // told is kept without JSON
	walks []walk // one for each connection
}

// walk is the stretch of versions that one connection passed.
type walk struct {
	address string
	interval
}

// object is an object as it was told.
type object struct {
	uid     string
	version uint64
	json    string
}

// occurrence identifies what happened to an object.
type occurrence struct {
	uid     string
	version uint64
	gone    bool
}

type told struct {
	occurrence
	at    time.Time // when the one that records it saw it
	event string
	key   string
	json  string
	// unknown marks the deletion of an object that the follower did not have, as a catch-up may tell it (rule 5). It
	// also marks that of an object that the follower had in a newer state: after a cut, all is told again that
	// happened after the oldest change that was not told.
	unknown bool
}

// interval is the versions after from, up to to.
type interval struct{ from, to uint64 }

func (i interval) contains(version uint64) bool { return i.from < version && version <= i.to }

func newView() *view { return &view{objects: map[string]object{}} }

// connectionStart is the state with which a connection began.
type connectionStart struct {
	sent     string
	position position
	epochs   map[string]string // of the ids so far, by watch
}

// begin prepares the views for a connection to an address from a position. The caller holds the lock.
func (f *follower) begin(address, sent string) (*connectionStart, error) {
	start := &connectionStart{sent: sent, epochs: map[string]string{}}
	if sent != "" {
		var err error
		if start.position, err = parsePosition(sent, f.watches); err != nil {
			return nil, err
		}
		start.epochs = start.position.epochs
	}
	for name, v := range f.views {
		v.connection = map[occurrence]bool{}
		v.walks = append(v.walks, walk{address, interval{start.position.versions[name], start.position.versions[name]}})
		if start.position.versions[name] == 0 {
			v.beginSnapshot()
		}
	}
	return start, nil
}

func (v *view) beginSnapshot() {
	if v.position > 0 {
		v.from = v.position
	}
	v.position = 0
	v.snapshot = map[string]bool{}
	v.connection = map[occurrence]bool{}
}

// take applies one event. An error means that the contract was broken. The caller holds the lock.
func (f *follower) take(start *connectionStart, read frame) error {
	if read.event == "broken" {
		return errors.New(read.data)
	}
	if !json.Valid([]byte(read.data)) {
		return fmt.Errorf("%s %s: its data is no JSON: %q", read.event, read.id, read.data)
	}
	if read.event == "goodbye" && read.id == "" && start.sent == "" {
		return f.farewell(read)
	}
	p, err := parsePosition(read.id, f.watches)
	if err != nil {
		return fmt.Errorf("%s: %w", read.event, err)
	}
	prefix, name, dotted := strings.Cut(read.event, ".")
	if !dotted {
		prefix, name = "", read.event
	}
	for watch, epoch := range p.epochs {
		if was := start.epochs[watch]; was != "" && epoch != was && (name != "reset" || prefix != watch) {
			return fmt.Errorf("%s %s: the epoch of watch %q was %s", read.event, read.id, watch, was)
		}
		start.epochs[watch] = epoch
	}
	f.last = read.id
	switch name {
	case "goodbye":
		return f.farewell(read)
	case "expiring":
		return nil
	}
	v := f.views[prefix]
	if v == nil {
		return fmt.Errorf("%s: no watch of this stream is called %q", read.event, prefix)
	}
	if name == "reset" {
		delete(start.position.versions, prefix) // earlier positions are void
		if len(f.watches) > 1 {
			delete(start.epochs, prefix)
		}
	}
	v.some = p.some[prefix]
	if err := v.take(name, read.data, p.versions[prefix], start.position.versions[prefix], f.relists); err != nil {
		return fmt.Errorf("%s %s: %w", read.event, read.id, err)
	}
	for name, v := range f.views { // an id moves all watches of its stream
		v.walks[len(v.walks)-1].to = p.versions[name]
	}
	return nil
}

func (f *follower) farewell(read frame) error {
	var data struct{ Reason string }
	if err := json.Unmarshal([]byte(read.data), &data); err != nil || data.Reason == "" {
		return fmt.Errorf("goodbye with %q", read.data)
	}
	f.goodbyes = append(f.goodbyes, data.Reason)
	return nil
}

// take applies one event of this watch. The version is what the event's id says of the watch; after is the position
// with which the connection began.
func (v *view) take(name, data string, version, after uint64, relists bool) error {
	if name != "reset" && version < v.position {
		return fmt.Errorf("the position went back from %d", v.position)
	}
	var said struct {
		Reason, ResourceVersion string
		Count                   int
	}
	switch name {
	case "added", "modified", "deleted":
		return v.object(name, data, version, after, relists)
	case "patched":
		return v.patched(data, version, after, relists)
	case "narrowed", "widened":
		return nil
	case "stale", "live":
		v.freshness = append(v.freshness, name)
		return nil
	case "synced", "bookmark", "reset":
		if err := json.Unmarshal([]byte(data), &said); err != nil {
			return err
		}
	default:
		return errors.New("there is no such event")
	}
	if name == "reset" {
		if version != 0 {
			return fmt.Errorf("a reset with a version")
		}
		v.resets = append(v.resets, said.Reason)
		if said.Reason == "epoch" {
			v.position, v.from = 0, 0 // earlier versions cannot be compared
		}
		v.beginSnapshot()
		return nil
	}
	if version == 0 || said.ResourceVersion != strconv.FormatUint(version, 10) {
		return fmt.Errorf("its data says %s", data)
	}
	if name == "bookmark" {
		if v.snapshot != nil {
			return errors.New("a bookmark before synced")
		}
		v.position = version
		return nil
	}
	return v.synced(version, said.Count)
}

func (v *view) synced(version uint64, count int) error {
	switch {
	case v.snapshot == nil:
		return errors.New("synced without a snapshot")
	case len(v.snapshot) != count:
		return fmt.Errorf("it counts %d objects, but %d were told", count, len(v.snapshot))
	}
	for key := range v.objects {
		if !v.snapshot[key] {
			delete(v.objects, key)
		}
	}
	v.snapshot = nil
	v.position = version
	// It also covers the rest of the version from which it began, of which the client may have been
	// told a part, and what is known of the version in which it ended.
	v.covered = append(v.covered, interval{max(v.from, 1) - 1, max(version, v.some)})
	return nil
}

func (v *view) object(name, data string, version, after uint64, relists bool) error {
	key, o, err := readObject(data)
	if err != nil {
		return err
	}
	what := occurrence{o.uid, o.version, name == "deleted"}
	if v.connection[what] {
		return fmt.Errorf("%s at version %d was told twice", key, o.version)
	}
	v.connection[what] = true
	if v.snapshot != nil {
		if name != "added" || version != 0 {
			return errors.New("within a snapshot")
		}
		if v.snapshot[key] {
			return fmt.Errorf("%s is in the snapshot twice", key)
		}
		v.snapshot[key] = true
		v.objects[key] = o
		return nil
	}
	switch {
	case version == 0:
		return errors.New("its id has no version")
	case o.version == after && name == "deleted" && relists: // part of the rest of a version that several objects share
	case o.version <= after:
		return fmt.Errorf("%s at version %d is not after the position %d", key, o.version, after)
	case name == "deleted" && version == o.version-1: // whose revision may go on
	case version > o.version && !v.conflated, version < o.version && !relists:
		return fmt.Errorf("%s has version %d", key, o.version)
	}
	has, known := v.objects[key]
	v.position = version
	text := o.json
	if v.lean {
		text = ""
	}
	v.told = append(v.told, told{what, time.Now(), name, key, text, name == "deleted" && (!known || o.version < has.version)})
	if name == "deleted" {
		delete(v.objects, key)
	} else {
		v.objects[key] = o
	}
	return nil
}

// patched applies a merge patch to an object of the follower. There must be no patch for an object that it does not
// have.
func (v *view) patched(data string, version, after uint64, relists bool) error {
	var change struct {
		UID, ResourceVersion string
		Patch                any
	}
	if err := json.Unmarshal([]byte(data), &change); err != nil {
		return err
	}
	for _, o := range v.objects {
		if o.uid != change.UID {
			continue
		}
		var has any
		if err := json.Unmarshal([]byte(o.json), &has); err != nil {
			return err
		}
		whole, err := json.Marshal(mergePatch(has, change.Patch))
		if err != nil {
			return err
		}
		if v.snapshot != nil {
			return errors.New("a patch within a snapshot")
		}
		return v.object("modified", string(whole), version, after, relists)
	}
	return fmt.Errorf("a patch of %s, which the follower does not have: %s", change.UID, data)
}

func readObject(data string) (key string, o object, err error) {
	var read struct {
		Kind, APIVersion string
		Metadata         struct {
			Namespace, Name, UID, ResourceVersion string
			ManagedFields                         any
		}
	}
	if err := json.Unmarshal([]byte(data), &read); err != nil {
		return "", object{}, err
	}
	m := read.Metadata
	if read.Kind == "" || read.APIVersion == "" || m.Name == "" || m.UID == "" || m.ManagedFields != nil {
		return "", object{}, fmt.Errorf("object without kind, apiVersion, name or uid, or with managedFields: %s", data)
	}
	version, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
	key = m.Name
	if m.Namespace != "" {
		key = m.Namespace + "/" + m.Name
	}
	return key, object{m.UID, version, data}, err
}
