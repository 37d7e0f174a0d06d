package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// follower is a client that keeps a copy of what it is told, is cut off at random, and comes back with its position.
type follower struct {
	g      *gateway
	user   string // "" for alice, who may see everything
	path   string
	paths  map[string]string // of its watches, by their names
	random *rand.Rand

	mu       sync.Mutex
	copies   map[string]*watchCopy // by the watch's name
	position string
	resets   map[string]int
	faults   []string
}

// watchCopy is what one watch has told.
type watchCopy struct {
	objects  map[string]string // JSON, by uid
	told     map[string]bool   // uids told since the connection began or a reset; nil once a snapshot was complete
	versions map[string]uint64 // that this connection has told, by uid
}

// run follows until done is closed.
func (f *follower) run(done <-chan struct{}) {
	for {
		headers := []string{}
		if f.user != "" {
			headers = append(headers, "Authorization: Bearer "+f.user)
		}
		if f.position != "" {
			headers = append(headers, "Last-Event-ID: "+f.position)
		}
		s := f.g.open(f.path, headers...)
		for _, c := range f.copies {
			c.told, c.versions = map[string]bool{}, map[string]uint64{}
		}
		cut := time.AfterFunc(time.Duration(1+f.random.IntN(20000))*time.Millisecond, s.close)
		for {
			frame, err := s.read()
			if err != nil {
				if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "context canceled") {
					f.fault("%v", err)
				}
				break
			}
			f.apply(frame)
			select {
			case <-done:
				cut.Stop()
				s.close()
				return
			default:
			}
		}
		pass(time.Duration(f.random.IntN(15000)) * time.Millisecond)
	}
}

func (f *follower) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

func (f *follower) apply(frame frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if frame.id != "" {
		f.position = frame.id
	}
	name, event, named := strings.Cut(frame.event, ".")
	if !named {
		name, event = "", frame.event
	}
	c := f.copies[name]
	if c == nil {
		return // of the connection
	}
	f.checkPermitted(frame)
	uid := frame.field("metadata", "uid")
	switch event {
	case "added", "modified":
		f.newer(c, frame, uid, frame.field("metadata", "resourceVersion"))
		c.objects[uid] = frame.data
	case "patched":
		uid = frame.field("uid")
		f.newer(c, frame, uid, frame.field("resourceVersion"))
		var data struct{ Patch json.RawMessage }
		if err := json.Unmarshal([]byte(frame.data), &data); err != nil || c.objects[uid] == "" {
			f.fault("a patch of what is not there: %q", frame.raw)
			return
		}
		patched, err := jsonpatch.MergePatch([]byte(c.objects[uid]), data.Patch)
		if err != nil {
			f.fault("%v: %q", err, frame.raw)
			return
		}
		c.objects[uid] = string(patched)
	case "deleted":
		delete(c.objects, uid)
		delete(c.told, uid)
		delete(c.versions, uid)
	case "reset":
		f.resets[frame.field("reason")]++
		c.told, c.versions = map[string]bool{}, map[string]uint64{}
	case "synced":
		if c.told == nil {
			f.fault("a second snapshot without a reset: %q", frame.raw)
		}
		maps.DeleteFunc(c.objects, func(uid, _ string) bool { return !c.told[uid] })
		if got := strconv.Itoa(len(c.told)); got != frame.field("count") {
			f.fault("%s objects were told before %q", got, frame.raw)
		}
		c.told = nil
	}
}

// checkPermitted checks that an object that is told is one that the user may see, or could until just now.
func (f *follower) checkPermitted(frame frame) {
	namespace, name := frame.field("metadata", "namespace"), frame.field("metadata", "name")
	if f.user == "" || name == "" || f.g.mayHaveSeen(f.user, namespace, name) {
		return
	}
	var identity struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace, UID, ResourceVersion string }
	}
	decoder := json.NewDecoder(strings.NewReader(frame.data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&identity); err != nil || !strings.HasSuffix(frame.event, "deleted") || identity.Kind != "Pod" || identity.Metadata.UID == "" {
		f.fault("%s was told what he may not see: %q", f.user, frame.raw)
	}
	if c := f.copies[strings.TrimSuffix(strings.TrimSuffix(frame.event, "deleted"), ".")]; c == nil || c.objects[identity.Metadata.UID] == "" {
		f.fault("%s was told of the end of what he never saw: %q", f.user, frame.raw)
	}
}

// newer notes a version of an object, which a connection must tell only once.
func (f *follower) newer(c *watchCopy, frame frame, uid, version string) {
	v, err := strconv.ParseUint(version, 10, 64)
	if err != nil || v <= c.versions[uid] {
		f.fault("version %s after %d: %q", version, c.versions[uid], frame.raw)
	}
	c.versions[uid] = v
	if c.told != nil {
		c.told[uid] = true
	}
}

// same reports whether the copies are what the API server has.
func (f *follower) same() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, c := range f.copies {
		if !reflect.DeepEqual(decoded(c.objects), decoded(f.g.contents(f.user, f.paths[name]))) {
			return false
		}
	}
	return true
}

func decoded(objects map[string]string) map[string]any {
	all := map[string]any{}
	for uid, text := range objects {
		var object any
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			object = err
		}
		all[uid] = object
	}
	return all
}
