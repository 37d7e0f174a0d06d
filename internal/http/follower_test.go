package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// follower is a client that keeps a copy of what it is told, is cut off at random, and comes back
// with its position, to any replica. Now and then it does not read for a while.
type follower struct {
	replicas []*gateway
	user     string // "" for alice, who may see everything
	path     string
	paths    map[string]string // of its watches, by their names
	conflate time.Duration     // the longest of them
	random   *rand.Rand

	paused, resumed time.Time // between which it read nothing the last time

	mu       sync.Mutex
	g        *gateway              // the replica that it is, or was, connected to
	since    time.Time             // it reads
	came     time.Time             // it began to connect
	placed   time.Time             // it was given its position
	left     time.Time             // it was given the position with which it came
	begun    map[string]string     // since when each namespace lived, as the replica knew then
	opened   time.Time             // it is connected since, and does not pause; zero: it is not
	beside   bool                  // its stream has a watch of another kind, which fails or hangs now and then
	reads    bool                  // it is connected, the stream has begun, and it does not pause
	copies   map[string]*watchCopy // by the watch's name
	position string
	resets   map[string]int
	faults   []string
	recent   []string // what happened to it at last
}

// note writes down what happened, for whoever asks why a copy is wrong. The caller holds the lock.
func (f *follower) note(format string, args ...any) {
	const enough = 2000
	if len(f.recent) >= enough {
		f.recent = append(f.recent[:0], f.recent[enough/2:]...)
	}
	f.recent = append(f.recent, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// story is what was written down.
func (f *follower) story() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.recent, "\n")
}

// besideKinds are kinds that may stand on a stream beside what is followed.
var besideKinds = []struct{ name, path string }{{"jobs", "/apis/batch/v1/jobs"}, {"secrets", "/api/v1/secrets"}, {"widgets", "/apis/example.org/v1/widgets"}}

func newFollower(replicas []*gateway, user string, paths map[string]string, random *rand.Rand) *follower {
	f := &follower{
		replicas: replicas, g: replicas[0], user: user, path: paths[""], paths: paths, random: random,
		copies: map[string]*watchCopy{}, resets: map[string]int{},
	}
	if f.path == "" {
		f.path = "/stream?heartbeat=20s"
	}
	if f.beside = f.path != paths[""]; f.beside {
		f.path += "&beside=" + escape(besideKinds[random.IntN(len(besideKinds))].path)
	}
	for name, path := range paths {
		f.copies[name] = &watchCopy{objects: map[string]string{}, ended: map[string]bool{}}
		if name != "" {
			f.path += "&" + name + "=" + escape(path)
		}
		if _, after, ok := strings.Cut(path, "conflate="); ok {
			text, _, _ := strings.Cut(after, "&")
			interval, err := time.ParseDuration(text)
			if err != nil {
				panic(err)
			}
			f.conflate = max(f.conflate, interval)
		}
	}
	return f
}

// uidOf is an object's uid, or its key if it has none.
func uidOf(f frame) string {
	if uid := f.field("metadata", "uid"); uid != "" {
		return uid
	}
	return f.field("metadata", "namespace") + "/" + f.field("metadata", "name")
}

// watchCopy is what one watch has told.
type watchCopy struct {
	objects  map[string]string // JSON, by uid
	told     map[string]bool   // uids told since the connection began or a reset; nil once a snapshot was complete
	snapshot bool              // a reset was told, and the snapshot after it not to its end
	behind   bool              // what was missed since the position is not told to its end: see rule 6 of docs/wire.md
	versions map[string]uint64 // that this connection has told, by uid
	ended    map[string]bool   // uids of which the end was told; of a revision of several ends each may be told again
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
		f.mu.Lock()
		to := f.random.IntN(len(f.replicas))
		f.g = f.replicas[to]
		f.note("to replica %d with %q", to, f.position)
		for _, c := range f.copies {
			c.told, c.versions = map[string]bool{}, map[string]uint64{}
			c.behind = f.position != ""
		}
		_, version := f.g.known("pods")
		f.left = f.placed
		f.came, f.begun = time.Now(), map[string]string{"team-a": f.g.past.since("team-a", version), "team-b": f.g.past.since("team-b", version)}
		f.mu.Unlock()
		s := f.g.open(f.path, headers...)
		f.mu.Lock()
		f.opened = time.Now()
		f.mu.Unlock()
		cut := time.AfterFunc(time.Duration(1+f.random.IntN(20000))*time.Millisecond, s.close)
		pauses := false
		for {
			frame, err := s.read()
			if err != nil {
				if !pauses && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "context canceled") {
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
			// In the middle of what was sent in one piece, most often when one watch of several begins anew.
			if f.random.IntN(50) == 0 || strings.HasSuffix(frame.event, ".reset") && f.random.IntN(3) == 0 {
				s.close()
				break
			}
			if f.random.IntN(50) == 0 {
				f.reading(false)
				if pauses = true; !time.Now().Equal(f.resumed) {
					f.paused = time.Now()
				}
				pass(time.Duration(f.random.IntN(4000)) * time.Millisecond)
				f.resumed = time.Now()
				f.reading(frame.event != "")
			}
		}
		f.reading(false)
		pass(time.Duration(f.random.IntN(15000)) * time.Millisecond)
	}
}

func (f *follower) reading(is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads, f.since, f.opened = is, time.Now(), time.Time{}
}

// silent reports whether the follower of several watches has been connected for so long, and was told nothing.
func (f *follower) silent(long time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.beside && !f.opened.IsZero() && !f.reads && time.Since(f.opened) >= long
}

// settled reports whether the follower should have what its replica has, if nothing has happened
// for so long: it reads, is in the middle of no snapshot, and nothing is held back from it any
// more.
func (f *follower) settled(long time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conflate > 0 && (f.conflate >= long || f.conflate >= time.Since(f.since)) {
		return false
	}
	for _, c := range f.copies {
		if c.snapshot || c.behind {
			return false
		}
	}
	return f.reads
}

func (f *follower) replica() *gateway {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.g
}

// fault notes what is wrong. Those of one cause are many.
func (f *follower) fault(format string, args ...any) {
	if len(f.faults) < 5 {
		f.faults = append(f.faults, fmt.Sprintf(format, args...))
	}
}

func (f *follower) apply(frame frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if frame.id != "" {
		f.position, f.placed = frame.id, time.Now()
		f.note("%s %s %s@%s", frame.id, frame.event, uidOf(frame), frame.field("metadata", "resourceVersion"))
	}
	if !f.reads && frame.event != "" {
		f.reads, f.since = true, time.Now()
	}
	name, event, named := strings.Cut(frame.event, ".")
	if !named {
		name, event = "", frame.event
	}
	if event == "goodbye" && frame.field("reason") == "unavailable" {
		f.fault("a replica that is synced refuses a client: %q", frame.raw)
	}
	c := f.copies[name]
	if c == nil || event == "goodbye" {
		return // of the connection
	}
	f.checkPermitted(frame)
	f.checkLiving(frame)
	uid := uidOf(frame)
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
		c.ended[uid] = true
	case "bookmark":
		c.behind = false
	case "reset":
		c.snapshot = true
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
		c.told, c.snapshot, c.behind = nil, false, false
	}
}

// checkPermitted checks that an object that is told is one that the user may see, or could until just now.
func (f *follower) checkPermitted(frame frame) {
	namespace, name := frame.field("metadata", "namespace"), frame.field("metadata", "name")
	sent := time.Now()
	if sent.Equal(f.resumed) {
		sent = f.paused // at the earliest
	}
	if f.user == "" || name == "" || f.g.mayHaveSeen(f.user, namespace, name, sent) {
		return
	}
	var identity struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace, UID, ResourceVersion string }
	}
	decoder := json.NewDecoder(strings.NewReader(frame.data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&identity); err != nil || !strings.HasSuffix(frame.event, "deleted") || identity.Kind != "Pod" {
		f.fault("%s was told what he may not see: %q", f.user, frame.raw)
	}
	watch := strings.TrimSuffix(strings.TrimSuffix(frame.event, "deleted"), ".")
	if c := f.copies[watch]; c != nil && (c.objects[uidOf(frame)] != "" || c.ended[uidOf(frame)]) {
		return
	}
	// What is caught up does not say whether an object matched before; then it is as if it had. Its user could see it then.
	if !strings.Contains(f.paths[watch], "Selector=") || !f.g.mayHaveSeen(f.user, namespace, name, f.left) {
		f.fault("%s was told of the end of what he never saw: %q", f.user, frame.raw)
	}
}

// checkLiving checks that an object that is told was in the namespace that lived when the
// connection began, if its user may see only that.
func (f *follower) checkLiving(frame frame) {
	namespace, created := frame.field("metadata", "namespace"), frame.field("metadata", "creationTimestamp")
	if f.user == "" || created == "" || created >= f.begun[namespace] || !f.g.past.isSteady(f.user, f.came) {
		return
	}
	if scope, _ := f.g.access.permitted(f.user); !scope.All && !slices.Contains(scope.Names[""], frame.field("metadata", "name")) {
		f.fault("%s, who may see what is in %s since %s, is told what was there before: %q", f.user, namespace, f.begun[namespace], frame.raw)
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

func decodedObject(text string) map[string]any {
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return map[string]any{"error": err.Error()}
	}
	return object
}
