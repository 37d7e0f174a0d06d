package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Connections that are cut off at any moment cost nothing. Over all of them, a client is told exactly what the API
// server tells an uninterrupted watch, each event once, wherever they were cut off and however the client sends its
// position.
func TestResumeIsExclusiveAndExact(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "resume-a", "resume-b")
	g := s.sharedGateway(t)
	random := seed(t)
	c := &churn{namespaces: []string{"resume-a", "resume-b"}, test: "resume", random: random}
	cuts := cutter(random)

	followers, witnesses := map[string]*follower{}, map[string]*witness{}
	for name, scope := range c.scopes() {
		witnesses[name] = s.watchDirectly(t, scope)
	}
	finish := s.startChurn(t, c) // before the followers, so that the first snapshots are cut off, too
	for name, scope := range c.scopes() {
		followers[name] = follow(t, &follower{
			name: name, token: s.viewer(t), path: scope.path(), watches: single(), address: always(g.url), connect: rawly, lasts: cuts,
		})
	}
	// This follower has two watches of one kind on one connection, each with its own filter.
	both := map[string]scope{"one": c.scopes()["one namespace"], "other": c.scopes()["a field"]}
	several := follow(t, &follower{
		name: "several", token: s.viewer(t), watches: several("one", "other"), address: always(g.url), connect: rawly, lasts: cuts,
		path: "/stream" + query("one", both["one"].path(), "other", both["other"].path()),
	})
	for _, f := range followers {
		f.waitSynced(t)
	}
	several.waitSynced(t)

	followers["all namespaces"].waitEvents(t, 250)
	finish()
	for name, scope := range c.scopes() {
		c.waitTold(t, followers[name], "", scope)
		checkSameSequence(t, followers[name], "", witnesses[name])
		t.Logf("%s: %d connections", name, followers[name].connectionCount())
	}
	for name, scope := range both {
		c.waitTold(t, several, name, scope)
	}
	checkSameSequence(t, several, "one", witnesses["one namespace"])
	checkSameSequence(t, several, "other", witnesses["a field"])
}

// cutter returns a function that says how long a connection lasts: mostly a moment, sometimes a second.
func cutter(random *rand.Rand) func() time.Duration {
	var mu sync.Mutex
	own := rand.New(rand.NewPCG(random.Uint64(), 0))
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		if own.IntN(6) == 0 {
			return time.Duration(500+own.IntN(500)) * time.Millisecond
		}
		return time.Duration(20+own.IntN(200)) * time.Millisecond
	}
}

// The header wins over the query: a browser that reconnects by itself repeats the address with its old query.
func TestPositionInHeaderBeatsQuery(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "header")
	g := s.sharedGateway(t)
	scope := scope{kind: configMapsKind, namespace: "header", labelSelector: "app=a"}
	var old string
	for attempt := 0; ; attempt++ {
		old = s.firstID(t, g, scope)
		for _, name := range []string{"one", "two"} {
			object := configMap("header", fmt.Sprintf("%s-%d", name, attempt), map[string]string{"app": "a"})
			if _, err := s.kube.CoreV1().ConfigMaps("header").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		stream := s.open(t, g, scope.path()+"&lastEventId="+old, nil)
		first, second := stream.mustEvent(t, "added"), stream.mustEvent(t, "added")
		if first.id != second.id || attempt == 5 {
			break
		}
		// A relist found both, and has one position for all that it found; others make the API server end watches.
	}
	for _, spelling := range []string{"&lastEventId=", "&last_event_id="} {
		// After the position in the query both are told; after that of the first, only the second.
		stream := s.open(t, g, scope.path()+spelling+old, nil)
		first := stream.mustEvent(t, "added")
		stream.mustEvent(t, "added")
		stream = s.open(t, g, scope.path()+spelling+old, http.Header{"Last-Event-Id": {first.id}})
		if second := stream.mustEvent(t, "added"); second.id == first.id || second.id == old {
			t.Errorf("%s: the event with id %s was told again", spelling, second.id)
		}
	}
}
