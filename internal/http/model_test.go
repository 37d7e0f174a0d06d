package http

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/stream"
)

// modelUsers are who may see everything, and whose permissions change.
var modelUsers = []string{"", "ann", "bob"}

// modelClients are the paths of watches by their names.
var modelClients = []map[string]string{
	{"": "/api/v1/pods"},
	{"": "/api/v1/namespaces/team-a/pods"},
	{"": "/api/v1/pods?labelSelector=app%3Dweb"},
	{"": "/api/v1/namespaces/team-b/pods?fieldSelector=status.phase%3DRunning"},
	{"": "/api/v1/pods?conflate=3s"},
	{"": "/api/v1/pods?deltas=merge-patch"},
	{"": "/api/v1/pods?deltas=merge-patch&conflate=20s"},
	{"": "/api/v1/pods?deltas=merge-patch&conflate=2s&labelSelector=app%3Dweb"},
	{"": "/api/v1/pods?fields=spec.n,metadata.labels"},
	{"": "/api/v1/pods?fields=spec.n&deltas=merge-patch&conflate=1s"},
	{"": "/api/v1/namespaces/team-a/pods/pod-3"},
	{"a": "/api/v1/pods", "b": "/api/v1/namespaces/team-b/pods?labelSelector=app%3Dweb"},
	{"a": "/api/v1/pods", "b": "/api/v1/pods?labelSelector=app%3Dweb", "c": "/api/v1/namespaces/team-b/pods?deltas=merge-patch"},
	{"a": "/api/v1/namespaces/team-a/pods?conflate=1s", "b": "/api/v1/namespaces/team-b/pods/pod-1", "c": "/api/v1/pods?deltas=merge-patch"},
}

// TestClientsEndWithTheClustersState, whatever they ask for, however often they are cut off, to
// whichever replica they come back, and whatever becomes of the replicas' own watches meanwhile.
// And they are there all the time: a second after the last change, who is connected and reads has
// what its replica has, also if another kind on its stream fails or hangs.
//
// What happens comes from a seed, which is the subtest's name. $KUBECAST_SOAK lets the test last,
// as `make soak` does, and $KUBECAST_SEED says with which seed it begins. It ends with the first
// seed that finds something.
func TestClientsEndWithTheClustersState(t *testing.T) {
	playSeeds(t, 4, func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		ring := stream.Options{Events: 8 << random.IntN(5), Bytes: 1 << 20, Age: time.Minute}
		inBubbleOf(t, 1+random.IntN(3), func(t *testing.T, replicas []*gateway) {
			m := &model{T: t, Rand: random, api: replicas[0], replicas: replicas, seed: seed}
			m.play()
		}, cached(ring, "pods"), func(g *gateway, _ *Options) { g.plain = random.IntN(4) == 0 })
	})
}

// model is one history: replicas of one API server, and clients of them.
type model struct {
	*testing.T
	*rand.Rand
	seed      uint64
	api       *gateway // any of them: they share the API server, and who may see what
	replicas  []*gateway
	lasts     bool // the cluster is never restored
	followers []*follower
	checked   map[string]int
}

func (m *model) play() {
	for _, replica := range m.replicas { // it is synced, and knows of which cluster
		replica.stream("/api/v1/pods").expect("synced")
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	m.checked = map[string]int{}
	m.permit()
	for i := range len(modelUsers) * len(modelClients) {
		user, paths := modelUsers[i/len(modelClients)], modelClients[i%len(modelClients)]
		if user != "" && strings.Contains(fmt.Sprint(paths), "pods/") {
			continue // an object that may not be seen is refused
		}
		f := newFollower(m.replicas, user, paths, rand.New(rand.NewPCG(m.seed, uint64(i+2))))
		m.followers = append(m.followers, f)
		running.Go(func() { f.run(done) })
	}
	began := time.Now()
	restoreAt := m.IntN(800) // in half of the seeds never
	for step := range 400 {
		m.churn()
		m.failBeside(step)
		if step == restoreAt && !m.lasts {
			m.restore()
		}
		if m.IntN(20) == 0 {
			m.permit()
		}
		pass(time.Duration(m.IntN(400)) * time.Millisecond)
		if step%10 == 9 {
			m.rest(began)
		}
	}
	m.heal()
	for _, f := range m.followers {
		for healed := time.Now(); !f.same(m.api.api.Objects("pods")); pass(time.Second) {
			if time.Since(healed) > 5*time.Minute {
				m.Fatalf("%s of %q is not as the cluster, after %v: %s; faults: %v; what it was told at last:\n%s",
					f.path, f.user, f.resets, f.difference(m.api.api.Objects("pods")), f.faults, f.story())
			}
		}
	}
	close(done)
	for _, user := range modelUsers[1:] {
		m.api.access.permit(user, auth.Scope{All: true})
	}
	for _, key := range []string{"team-a/pod-3", "team-b/pod-1"} { // wakes them all
		m.api.api.Put("pods", key, "metadata.labels.app=web", "status.phase=Running", "spec.end=1")
	}
	running.Wait()
	resets := map[string]int{}
	for _, f := range m.followers {
		for reason, n := range f.resets {
			resets[reason] += n
		}
		for _, fault := range f.faults {
			m.Errorf("%s of %q: %s", f.path, f.user, fault)
		}
		if len(f.faults) > 0 {
			m.Logf("what it was told:\n%s", f.story())
		}
	}
	m.Logf("%d replicas; resets: %v; checked: %v", len(m.replicas), resets, m.checked)
}

// rest lets nothing happen for a moment. Then whoever is connected, and reads, has what its replica has.
func (m *model) rest(began time.Time) {
	long := time.Second
	if m.IntN(3) == 0 {
		long = 4 * time.Second // so that nothing is held back any more from most of those who conflate
	}
	before := map[*gateway]uint64{}
	for _, replica := range m.replicas {
		_, before[replica] = replica.known("pods")
	}
	pass(long)
	synctest.Wait()
	for _, replica := range m.replicas {
		m.checked["streams together"] = max(m.checked["streams together"], replica.server.streams.Stats().Together)
	}
	for _, f := range m.followers {
		if version := before[f.replica()]; f.silent(long) && version > 0 && f.replica().isLive("pods") {
			f.fault("%v after it came, it was told nothing", long)
		}
		// A replica whose watch was back only just now may hold for them what it has learned only just now.
		if _, version := f.replica().known("pods"); version == before[f.replica()] && f.settled(long) {
			m.check(f, fmt.Sprintf("%v after the last change, at %v", long, time.Since(began)))
		} else {
			m.checked["not settled"]++
		}
	}
}

// check checks that a follower has what its replica has, unless it knows more from another one.
func (m *model) check(f *follower, when string) {
	objects, version := f.replica().known("pods")
	position, _ := stream.ParsePosition(f.position) // none: it begins anew
	for _, claim := range position.Claims {
		if claim.Some > version {
			m.checked["ahead"]++
			return
		}
	}
	m.checked["settled"]++
	if !f.same(objects) {
		f.fault("%s, it does not have what its replica has at %d: %s", when, version, f.difference(objects))
	}
}

// known is what a replica has of a kind, by key, and up to which version.
func (g *gateway) known(kind string) (objects map[string]string, version uint64) {
	objects = map[string]string{}
	for _, store := range g.kinds.All() {
		if store.Kind().String() == kind {
			snapshot := store.Snapshot()
			version = snapshot.Version()
			for o := range snapshot.List(stream.AllNamespaces(), cache.Selector{}, "", "") {
				objects[o.Key()] = o.JSON()
			}
		}
	}
	return objects, version
}

// isLive reports whether a replica's watch of a kind stands.
func (g *gateway) isLive(kind string) bool {
	for _, store := range g.kinds.All() {
		if store.Kind().String() == kind {
			return store.Upstream().Live
		}
	}
	return false
}

// churn does something to the cluster, or to the replicas' connection with it.
func (m *model) churn() {
	api := m.api.api
	if m.IntN(40) == 0 {
		m.remake(fmt.Sprintf("team-%c", 'a'+rune(m.IntN(2))))
	}
	key := fmt.Sprintf("team-%c/pod-%d", 'a'+rune(m.IntN(2)), m.IntN(8))
	exists := false
	for _, k := range api.Keys("pods") {
		exists = exists || k == key
	}
	replica := m.replicas[m.IntN(len(m.replicas))]
	switch n := m.IntN(100); {
	case n < 10 && exists:
		api.Delete("pods", key)
	case n < 12:
		if keys := api.Keys("pods"); len(keys) > 1 {
			m.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			if keys = keys[:2+m.IntN(len(keys)-1)]; m.IntN(2) == 0 {
				api.Delete("pods", keys...)
				break
			}
			// In etcd only deletions share a revision, so a put says that there is no more of it;
			// see Topic.Append. Another storage may put at the end of one.
			var changes []func()
			for _, key := range keys[1:] {
				changes = append(changes, func() { api.Delete("pods", key) })
			}
			if m.IntN(2) == 0 {
				changes = append(changes, func() { m.put(keys[0]) })
			}
			api.InParts(func() { pass(time.Duration(m.IntN(400)) * time.Millisecond) }, changes...)
		}
	case n < 14:
		for range m.IntN(12) { // more than a ring holds, at once
			m.put(fmt.Sprintf("team-%c/pod-%d", 'a'+rune(m.IntN(2)), m.IntN(8)))
		}
	case n < 86:
		m.put(key)
	case n < 88:
		api.Skip(1)
		api.Bookmark()
	case n < 90:
		api.Compact() // so that who is behind cannot be caught up
	case n < 91:
		api.CutWatches("pods")
	case n < 92:
		api.Compact()
		api.CutWatches("pods")
	case n < 93:
		api.Fail("pods", http.StatusServiceUnavailable)
		api.CutWatches("pods")
	case n < 95:
		replica.way.cut()
	case n < 97:
		replica.way.mend()
		if m.IntN(2) == 0 {
			api.Compact()
		}
	default:
		api.Fail("pods", 0)
	}
}

// failBeside lets another kind begin to fail or to hang, or work again. None works at first: one
// that was read once is there for ever.
func (m *model) failBeside(step int) {
	for i, kind := range besideKinds {
		works := 60 + 80*i // from this step on
		switch n := m.IntN(40); {
		case n == 0 || step == 0 && i > 0:
			m.api.api.Fail(kind.name, http.StatusInternalServerError)
		case n == 1 || step == 0:
			m.api.api.Hang(kind.name)
		case n < 4 && step > works || step == works:
			m.api.api.Fail(kind.name, 0)
			m.api.api.Put(kind.name, fmt.Sprintf("team-a/beside-%d", m.IntN(3)))
		default:
			continue
		}
		if m.IntN(2) == 0 {
			m.api.api.CutWatches(kind.name)
		}
	}
}

// remake deletes a namespace with all that is in it, and makes it anew.
func (m *model) remake(namespace string) {
	api := m.api.api
	keys := slices.DeleteFunc(api.Keys("pods"), func(key string) bool { return !strings.HasPrefix(key, namespace+"/") })
	if len(keys) > 0 {
		api.Delete("pods", keys...)
	}
	if slices.Contains(api.Keys("namespaces"), namespace) {
		api.Delete("namespaces", namespace)
	}
	pass(time.Duration(m.IntN(3000)) * time.Millisecond)
	created := time.Now().UTC().Format(time.RFC3339)
	m.api.past.begins(life{namespace, api.Put("namespaces", namespace, "metadata.creationTimestamp="+created), created})
	m.checked["namespaces made anew"]++
}

func (m *model) put(key string) {
	fields := []string{
		"metadata.labels.app=" + []string{"web", "db"}[m.IntN(2)],
		"status.phase=" + []string{"Pending", "Running"}[m.IntN(2)],
		fmt.Sprintf("spec.n:=%d", m.IntN(1000)),
		"metadata.annotations.pad=" + strings.Repeat("x", 300),
		"metadata.creationTimestamp=" + time.Now().UTC().Format(time.RFC3339),
	}
	if text, exists := m.api.api.Objects("pods")[key]; exists {
		fields[len(fields)-1] = "metadata.creationTimestamp=" + frame{data: text}.field("metadata", "creationTimestamp")
	}
	if strings.HasSuffix(key, "6") || strings.HasSuffix(key, "7") {
		fields = append(fields, "metadata.uid=") // as of some aggregated API servers
	}
	m.api.api.Put("pods", key, fields...)
}

// heal ends what was done to connections.
func (m *model) heal() {
	m.api.api.Fail("pods", 0)
	for _, kind := range besideKinds {
		m.api.api.Fail(kind.name, 0)
	}
	if m.IntN(2) == 0 {
		m.api.api.CutWatches("pods")
	}
	for _, replica := range m.replicas {
		replica.way.mend()
	}
}

// restore takes the cluster back to what it was some changes ago, and changes it until its versions
// are beyond those that were undone. A replica that saw nothing of what is undone, or not that it
// is, cannot know (docs/decisions.md). So all of them have seen both before there is something new.
func (m *model) restore() {
	m.heal()
	backup := m.api.api.Version()
	undone := 2 + m.IntN(20)
	for range undone {
		m.put(fmt.Sprintf("team-%c/pod-%d", 'a'+rune(m.IntN(2)), m.IntN(8)))
		pass(time.Duration(m.IntN(100)) * time.Millisecond)
	}
	m.replicasKnow("what will be undone")
	m.api.api.Restore(backup)
	m.api.past.undo(backup)
	m.replicasKnow("that it was undone")
	for range undone + m.IntN(5) {
		m.put(fmt.Sprintf("team-%c/pod-%d", 'a'+rune(m.IntN(2)), m.IntN(8)))
		pass(time.Duration(m.IntN(100)) * time.Millisecond)
	}
	m.checked["restored"]++
}

// replicasKnow waits until all replicas have what the cluster has.
func (m *model) replicasKnow(what string) {
	for _, replica := range m.replicas {
		for began := time.Now(); ; pass(10 * time.Millisecond) {
			_, version := replica.known("pods")
			if version == m.api.api.Version() {
				break
			}
			if time.Since(began) > 5*time.Minute {
				m.Fatalf("a replica that is at version %d, not %d, does not come to know %s", version, m.api.api.Version(), what)
			}
		}
	}
}

// permit lets users see something else, but in each namespace something: what shows nothing is refused.
func (m *model) permit() {
	scopes := []auth.Scope{
		{All: true},
		{Namespaces: []string{"team-a"}, Names: map[string][]string{"team-b": {"pod-0"}}},
		{Namespaces: []string{"team-a", "team-b"}},
		{Namespaces: []string{"team-a"}, Names: map[string][]string{"team-b": {"pod-1", "pod-2"}}},
		{Namespaces: []string{"team-b"}, Names: map[string][]string{"": {"pod-4"}}},
		{Names: map[string][]string{"": {"pod-1", "pod-4"}}},
		{Names: map[string][]string{"team-a": {"pod-1"}, "team-b": {"pod-2"}}},
	}
	together := m.IntN(2) == 0 // their streams are told together
	now := scopes[m.IntN(len(scopes))]
	for _, user := range modelUsers[1:] {
		before, _ := m.api.access.permitted(user)
		if !together {
			now = scopes[m.IntN(len(scopes))]
		}
		m.api.past.note(user, before)
		m.api.access.permit(user, now)
	}
}

// shown is what of a kind's objects a stream's path asks for and a user may see, in the form that it asks for, by uid.
func (g *gateway) shown(objects map[string]string, user, path string) map[string]any {
	target, query, _ := strings.Cut(path, "?")
	permitted, narrowed := g.access.permitted(user)
	shown := map[string]any{}
	for key, text := range objects {
		namespace, name, _ := strings.Cut(key, "/")
		f := frame{data: text}
		switch {
		case narrowed && !permitted.Sees(namespace, name):
		case strings.Contains(target, "/namespaces/") && !strings.Contains(target, "/namespaces/"+namespace+"/"):
		case strings.Contains(target, "/pods/") && !strings.HasSuffix(target, "/pods/"+name):
		case strings.Contains(query, "app%3Dweb") && f.field("metadata", "labels", "app") != "web":
		case strings.Contains(query, "phase%3DRunning") && f.field("status", "phase") != "Running":
		default:
			shown[uidOf(f)] = reduced(text, query)
		}
	}
	return shown
}

// reduced is an object with what fields= names of it.
func reduced(text, query string) any {
	whole := decodedObject(text)
	_, fields, some := strings.Cut(query, "fields=")
	if !some {
		return whole
	}
	fields, _, _ = strings.Cut(fields, "&")
	object := map[string]any{}
	paths := append(strings.Split(fields, ","),
		"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion")
	for _, path := range paths {
		from, to := whole, object
		keys := strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			if from, _ = from[key].(map[string]any); from == nil {
				break
			}
			if to[key] == nil {
				to[key] = map[string]any{}
			}
			to = to[key].(map[string]any)
		}
		if value, ok := from[keys[len(keys)-1]]; ok {
			to[keys[len(keys)-1]] = value
		}
	}
	return object
}

// difference is how the copies differ from what a kind's objects are for the follower, by key.
func (f *follower) difference(objects map[string]string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	key := func(object any) string {
		metadata := object.(map[string]any)["metadata"].(map[string]any)
		return fmt.Sprint(metadata["namespace"], "/", metadata["name"], "@", metadata["resourceVersion"])
	}
	for name, c := range f.copies {
		want := f.g.shown(objects, f.user, f.paths[name])
		for uid, text := range c.objects {
			switch has := decodedObject(text); {
			case want[uid] == nil:
				lines = append(lines, "has "+key(has))
			case !reflect.DeepEqual(any(has), want[uid]):
				lines = append(lines, "has "+key(has)+", not "+key(want[uid]))
			}
		}
		for uid, object := range want {
			if c.objects[uid] == "" {
				lines = append(lines, "lacks "+key(object))
			}
		}
	}
	return fmt.Sprint(lines, ", position ", f.position)
}

// same reports whether the copies are what a kind's objects are for the follower.
func (f *follower) same(objects map[string]string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, c := range f.copies {
		has := map[string]any{}
		for uid, text := range c.objects {
			has[uid] = any(decodedObject(text))
		}
		if !reflect.DeepEqual(has, f.g.shown(objects, f.user, f.paths[name])) {
			return false
		}
	}
	return true
}
