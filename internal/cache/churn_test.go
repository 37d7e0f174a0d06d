package cache

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// Two replicas follow an API server with random changes and random faults, and clients with filters come and go
// between them. Whenever a client has read all there is, it has what the API server had at its position. Once there
// are no more faults, it has what there is.
//
// Where versions go back, each client keeps to its replica: a replica that never saw the lost versions cannot tell
// that a client did. (Hence etcd is to be restored with --bump-revision.)
func TestClientsEndWithTheClustersStateWhateverHappens(t *testing.T) {
	for _, test := range []struct {
		name     string
		seeds    uint64
		restores bool
	}{{"without restores", 40, false}, {"with restores", 25, true}} {
		seen := map[string]int{}
		for seed := range test.seeds {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed, test.restores, seen)
				defer w.stop()
				for step := range 250 {
					w.step()
					if t.Failed() {
						t.Fatalf("%s, seed %d, step %d: %s", test.name, seed, step, strings.Join(w.journal, " | "))
					}
				}
				w.heal()
				if t.Failed() {
					t.Fatalf("%s, seed %d, at the end: %s", test.name, seed, strings.Join(w.journal, " | "))
				}
			})
		}
		for _, what := range []string{"resumed", "snapshot", "ahead", "expired", "checked", "slow", "epoch"} {
			if seen[what] == 0 && (what != "epoch" || test.restores) && (what != "ahead" || !test.restores) {
				t.Errorf("%s: %q never happened: %v", test.name, what, seen)
			}
		}
		t.Log(test.name, seen)
	}
}

type world struct {
	*rand.Rand
	t        *testing.T
	api      *apitest.API
	replicas []*filled
	stops    []func()
	clients  []*client
	restores bool
	restored bool     // versions went back, so what was told before means nothing
	journal  []string // what was done to the API server
	seen     map[string]int
	past     map[uint64][]*cluster.Object // what there was at each version
}

func newWorld(t *testing.T, seed uint64, restores bool, seen map[string]int) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), t: t, api: apitest.New(pods), restores: restores, seen: seen, past: map[uint64][]*cluster.Object{}}
	for range 5 {
		w.put()
	}
	w.replicas, w.stops = make([]*filled, 2), make([]func(), 2)
	for i := range w.replicas {
		w.start(i)
	}
	for _, selector := range []string{"", "", "app=web", "app!=web", "app in (web,db),tier", "tier"} {
		for _, scope := range []stream.NamespaceSet{stream.AllNamespaces(), stream.Namespaces("quiet"), stream.Namespaces("m", "n")} {
			field := ""
			if w.IntN(3) == 0 {
				field = []string{"spec.node=a", "spec.node!=a", "spec.node="}[w.IntN(3)]
			}
			parsed, err := Paths{}.Selector(selector, field)
			if err != nil {
				t.Fatal(err)
			}
			w.clients = append(w.clients, &client{world: w, scope: scope, selector: parsed, replica: len(w.clients) % 2})
		}
	}
	return w
}

func (w *world) start(i int) {
	opts := stream.Options{Events: 20 + w.IntN(300), Bytes: 1 << 20, Age: time.Hour}
	w.replicas[i], w.stops[i] = fillFrom(w.t, w.api.ConnectAs(w.t, fmt.Sprint("replica ", i)), opts, "spec.node")
}

func (w *world) stop() {
	for _, stop := range w.stops {
		stop()
	}
}

func (w *world) note(format string, args ...any) {
	w.journal = append(w.journal, fmt.Sprintf(format, args...))
}

func (w *world) put() {
	namespace := []string{"m", "n", "n", "n-a", "quiet"}[w.IntN(5)]
	key := fmt.Sprint("/p", w.IntN(5))
	fields := []string{"spec.node=" + string(rune('a'+w.IntN(3)))}
	if w.IntN(3) > 0 {
		fields = append(fields, "metadata.labels.app="+[]string{"web", "db", "job"}[w.IntN(3)])
	}
	if w.IntN(2) == 0 {
		fields = append(fields, "metadata.labels.tier=x")
	}
	if namespace == "quiet" && w.IntN(3) > 0 {
		namespace = "n"
	}
	w.note("%s at %d", namespace+key, w.api.Put("pods", namespace+key, fields...))
}

func (w *world) delete() {
	var keys []string
	for key := range w.api.Objects("pods") {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	w.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	if keys = keys[:min(len(keys), 1+w.IntN(3)*w.IntN(2))]; len(keys) > 0 {
		w.note("-%v at %d", keys, w.api.Delete("pods", keys...))
	}
}

func (w *world) churn(most int) {
	for range 1 + w.IntN(most) {
		if w.IntN(3) > 0 {
			w.put()
		} else {
			w.delete()
		}
	}
}

// step takes one random action.
func (w *world) step() {
	switch n := w.IntN(100); {
	case n < 20:
		w.churn(4)
	case n < 21:
		w.churn(100)
	case n < 25:
		w.api.Skip(uint64(w.IntN(10)))
		w.api.Bookmark()
	case n < 28:
		w.fault()
	case n < 31:
		time.Sleep(time.Duration(w.IntN(40)) * time.Second)
	case n < 32 && w.IntN(4) == 0 && !w.restores:
		i := w.IntN(2)
		w.note("replica %d is started again", i)
		for _, c := range w.clients {
			if c.replica == i {
				c.leave()
			}
		}
		w.stops[i]()
		w.start(i)
	default:
		w.clients[w.IntN(len(w.clients))].step()
	}
	if w.IntN(4) > 0 {
		synctest.Wait()
	}
}

func (w *world) fault() {
	n := w.IntN(5)
	if w.restores && w.IntN(2) == 0 {
		n = 3
	}
	switch n {
	case 0:
		w.note("cut")
		w.api.CutWatches()
	case 1:
		w.note("end")
		w.api.EndWatches()
	case 2:
		w.note("expire")
		w.api.Compact()
		w.api.ExpireWatches()
		synctest.Wait()
		w.churn(20)
		w.api.Compact()
	case 3:
		w.note("away")
		w.api.Away(true)
		time.Sleep(time.Duration(1+w.IntN(20)) * time.Second)
		w.churn(20)
		if w.restores && w.IntN(2) == 0 {
			w.restore()
		}
		w.api.Away(false)
	case 4:
		lagging := fmt.Sprint("replica ", w.IntN(3)) // or none
		w.note("no watches for %s", lagging)
		w.api.Intercept(func(r *http.Request) *apitest.Fault {
			if strings.Contains(r.URL.RawQuery, "watch=true") && r.UserAgent() == lagging {
				return apitest.Refuse(http.StatusForbidden)
			}
			return nil
		})
		w.api.CutWatches()
		for range w.IntN(4) {
			time.Sleep(time.Duration(w.IntN(20)) * time.Second)
			w.churn(10)
			for range w.IntN(40) {
				w.clients[w.IntN(len(w.clients))].step()
			}
		}
		w.api.Intercept(nil)
	}
}

// restore takes the API server back to an earlier version while no watch is connected.
func (w *world) restore() {
	w.api.CutWatches() // those that were just being opened
	synctest.Wait()
	back := w.api.Version() - uint64(w.IntN(30))
	w.note("restored to %d", back)
	w.api.Restore(back)
	w.restored = true
	clear(w.past)
	if w.IntN(2) == 0 {
		w.churn(60) // so that versions may have caught up when the replicas look again
	}
}

func (w *world) heal() {
	w.note("healed")
	w.put() // behind a deletion a client would not stand at the newest version: its revision may go on
	time.Sleep(5 * time.Minute)
	w.api.Bookmark()
	synctest.Wait()
	w.restored = false
	for _, replica := range w.replicas {
		expectContent(w.t, "at the end", replica.Snapshot(), w.api)
	}
	for _, c := range w.clients {
		for again := true; again; {
			if c.cursor == nil {
				c.come()
			}
			for c.cursor != nil && c.read(16) {
			}
			again = c.cursor == nil
		}
		if c.position != w.api.Version() {
			w.t.Errorf("a client stands at %d, not %d", c.position, w.api.Version())
		}
	}
}
