package http

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/stream"
)

// TestClientsEndWithTheClustersState, whatever they ask for, however often they are cut off, and whatever becomes of
// the gateway's own watch meanwhile.
func TestClientsEndWithTheClustersState(t *testing.T) {
	users := []string{"", "ann", "bob"} // who may see everything, and whose permissions change
	clients := []map[string]string{     // the paths of watches by their names
		{"": "/api/v1/pods"},
		{"": "/api/v1/namespaces/team-a/pods"},
		{"": "/api/v1/pods?labelSelector=app%3Dweb"},
		{"": "/api/v1/namespaces/team-b/pods?fieldSelector=status.phase%3DRunning"},
		{"": "/api/v1/pods?conflate=3s"},
		{"": "/api/v1/pods?deltas=merge-patch"},
		{"": "/api/v1/pods?deltas=merge-patch&conflate=2s&labelSelector=app%3Dweb"},
		{"": "/api/v1/namespaces/team-a/pods/pod-3"},
		{"a": "/api/v1/pods", "b": "/api/v1/namespaces/team-b/pods?labelSelector=app%3Dweb"},
		{"a": "/api/v1/namespaces/team-a/pods?conflate=1s", "b": "/api/v1/namespaces/team-b/pods/pod-1", "c": "/api/v1/pods?deltas=merge-patch"},
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				random := rand.New(rand.NewPCG(seed, 1))
				done := make(chan struct{})
				var running sync.WaitGroup
				var followers []*follower
				g.permitAtRandom(random, users[1:])
				for i := range len(users) * len(clients) {
					user, paths := users[i/len(clients)], clients[i%len(clients)]
					if user != "" && strings.Contains(fmt.Sprint(paths), "pods/") {
						continue // an object that may not be seen is refused
					}
					f := &follower{
						g: g, user: user, path: paths[""], paths: paths, random: rand.New(rand.NewPCG(seed, uint64(i+2))), copies: map[string]*watchCopy{},
						resets: map[string]int{},
					}
					if f.path == "" {
						f.path = "/stream?heartbeat=20s"
					}
					for name, path := range paths {
						f.copies[name] = &watchCopy{objects: map[string]string{}}
						if name != "" {
							f.path += "&" + name + "=" + escape(path)
						}
					}
					followers = append(followers, f)
					running.Go(func() { f.run(done) })
				}
				for range 400 {
					churn(g, random)
					if random.IntN(20) == 0 {
						g.permitAtRandom(random, users[1:])
					}
					pass(time.Duration(random.IntN(400)) * time.Millisecond)
				}
				g.api.Fail("pods", 0)
				if random.IntN(2) == 0 {
					g.api.DropWatches("pods")
				}
				resets := map[string]int{}
				for _, f := range followers {
					for healed := time.Now(); !f.same(); pass(time.Second) {
						if time.Since(healed) > 5*time.Minute {
							t.Fatalf("%s of %q is not as the cluster, after %v; faults: %v", f.path, f.user, f.resets, f.faults)
						}
					}
					for reason, n := range f.resets {
						resets[reason] += n
					}
				}
				t.Logf("resets: %v", resets)
				close(done)
				for _, user := range users[1:] {
					g.access.permit(user, auth.Scope{All: true})
				}
				for _, key := range []string{"team-a/pod-3", "team-b/pod-1"} { // wakes them all
					g.api.Put("pods", key, "metadata.labels.app=web", "status.phase=Running", "spec.end=1")
				}
				running.Wait()
				for _, f := range followers {
					for _, fault := range f.faults {
						t.Errorf("%s of %q: %s", f.path, f.user, fault)
					}
				}
			}, cached(stream.Options{Events: 8, Bytes: 1 << 20, Age: time.Minute}))
		})
	}
}

// churn does something to the cluster, or to the gateway's connection with it.
func churn(g *gateway, random *rand.Rand) {
	key := fmt.Sprintf("team-%c/pod-%d", 'a'+rune(random.IntN(2)), random.IntN(8))
	exists := false
	for _, k := range g.api.Keys("pods") {
		exists = exists || k == key
	}
	switch n := random.IntN(100); {
	case n < 12 && exists:
		g.api.Delete("pods", key)
	case n < 90:
		g.api.Put("pods", key, "metadata.labels.app="+[]string{"web", "db"}[random.IntN(2)],
			"status.phase="+[]string{"Pending", "Running"}[random.IntN(2)], fmt.Sprintf("spec.n:=%d", random.IntN(1000)),
			"metadata.annotations.pad="+strings.Repeat("x", 300))
	case n < 91:
		g.api.Bookmark("pods")
	case n < 93:
		g.api.Compact("pods") // so that who is behind cannot be caught up
	case n < 95:
		g.api.DropWatches("pods")
	case n < 97:
		g.api.Compact("pods")
		g.api.DropWatches("pods")
	case n < 98:
		g.api.Fail("pods", http.StatusServiceUnavailable)
		g.api.DropWatches("pods")
	default:
		g.api.Fail("pods", 0)
	}
}

// permitAtRandom lets users see something else, but in each namespace something: what shows nothing is refused.
func (g *gateway) permitAtRandom(random *rand.Rand, users []string) {
	scopes := []auth.Scope{
		{All: true},
		{Namespaces: []string{"team-a"}, Names: map[string][]string{"team-b": {"pod-0"}}},
		{Namespaces: []string{"team-a", "team-b"}},
		{Namespaces: []string{"team-a"}, Names: map[string][]string{"team-b": {"pod-1", "pod-2"}}},
		{Namespaces: []string{"team-b"}, Names: map[string][]string{"": {"pod-4"}}},
		{Names: map[string][]string{"": {"pod-1", "pod-4"}}},
		{Names: map[string][]string{"team-a": {"pod-1"}, "team-b": {"pod-2"}}},
	}
	for _, user := range users {
		before, _ := g.access.permitted(user)
		now := scopes[random.IntN(len(scopes))]
		g.past.note(user, before)
		g.access.permit(user, now)
	}
}

// contents is what the API server has of what a stream's path asks for and a user may see, by uid.
func (g *gateway) contents(user, path string) map[string]string {
	target, query, _ := strings.Cut(path, "?")
	permitted, narrowed := g.access.permitted(user)
	objects := map[string]string{}
	for key, text := range g.api.Contents("pods") {
		namespace, name, _ := strings.Cut(key, "/")
		f := frame{data: text}
		switch {
		case narrowed && !permitted.Sees(namespace, name):
		case strings.Contains(target, "/namespaces/") && !strings.Contains(target, "/namespaces/"+namespace+"/"):
		case strings.Contains(target, "/pods/") && !strings.HasSuffix(target, "/pods/"+name):
		case strings.Contains(query, "app%3Dweb") && f.field("metadata", "labels", "app") != "web":
		case strings.Contains(query, "phase%3DRunning") && f.field("status", "phase") != "Running":
		default:
			objects[f.field("metadata", "uid")] = text
		}
	}
	return objects
}
