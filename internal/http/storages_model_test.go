package http

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/stream"
)

// storage is one that has versions of its own, and a kind in it.
type storage struct {
	api      *apitest.API
	resource string
	path     string
	store    func(*storagesReplica) *cache.Store // nil: there is none now
	wentBack int
	broken   bool // it answers 500
}

// storagesReplica is a gateway of two clusters.
type storagesReplica struct {
	*gateway
	other *cache.Kinds
}

// TestClientsOfSeveralStoragesEndWithTheStateOfEach, on one stream: the main storage of a cluster,
// one behind it with versions of its own, that of another cluster, and a kind that comes and goes.
// Each fails, goes back, and is away by itself, and no watch is told anything of another one's
// faults. A few seconds after the last change of a storage that can be read, who is connected has
// what is there.
func TestClientsOfSeveralStoragesEndWithTheStateOfEach(t *testing.T) {
	first, lasting := apitest.Soak(t, 0)
	began := time.Now()
	for seed := first; seed < first+2 || time.Since(began) < lasting; seed++ {
		clean := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			ring := stream.Options{Events: 8 << random.IntN(5), Bytes: 1 << 20, Age: time.Minute}
			inBubbleOf(t, 1+random.IntN(3), func(t *testing.T, replicas []*gateway) {
				m := &storagesModel{T: t, Rand: random, seed: seed, checked: map[string]int{}}
				m.play(replicas, ring)
			}, cached(ring), before(func(api *apitest.API) {
				if api.Aggregated == nil {
					api.Aggregated = map[string]*apitest.API{gauges.Group: apitest.New(gauges)}
				}
			}))
		})
		if !clean {
			t.Fatalf("seed %d found something; KUBECAST_SEED=%[1]d shows it again", seed)
		}
	}
}

type storagesModel struct {
	*testing.T
	*rand.Rand
	seed     uint64
	replicas []*storagesReplica
	storages map[string]*storage // by what the watches of it are called
	clients  []*storagesClient
	checked  map[string]int
	resting  atomic.Bool // nobody breaks off any more
}

// storagesClient follows some of the storages on one stream, others after a reconnect.
type storagesClient struct {
	m      *storagesModel
	random *rand.Rand

	mu       sync.Mutex
	replica  *storagesReplica
	asks     []string // the storages of which it asks now
	since    time.Time
	copies   map[string]*watchCopy
	stale    map[string]string // by storage, with the reason
	position string
	resets   map[string]int // by storage and reason
	faults   []string
	recent   []string
}

func (m *storagesModel) play(gateways []*gateway, ring stream.Options) {
	api := gateways[0].api
	aggregated := api.Aggregated[gauges.Group]
	elsewhere := apitest.New(apitest.Pods)
	elsewhere.Put("namespaces", "kube-system", "metadata.uid=22222222-2222-3333-4444-555555555555")
	m.Cleanup(elsewhere.Close)
	m.Cleanup(aggregated.Close)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	m.Cleanup(func() {
		stop()
		running.Wait()
	})
	for _, g := range gateways {
		kinds, err := cache.NewKinds(elsewhere.Connect(m.T), cache.Options{
			Topic: ring, CatchUp: cache.CatchUpBound{Events: 1000, Bytes: 64 << 20, Timeout: 10 * time.Second},
		}, g.server.log)
		if err != nil {
			m.Fatal(err)
		}
		running.Go(func() { _ = kinds.Run(ctx) })
		if err := g.server.SetClusters([]*cache.Kinds{g.kinds, kinds}); err != nil {
			m.Fatal(err)
		}
		m.replicas = append(m.replicas, &storagesReplica{g, kinds})
	}
	of := func(kind cluster.Kind, kinds func(*storagesReplica) *cache.Kinds) func(*storagesReplica) *cache.Store {
		return func(r *storagesReplica) *cache.Store {
			for _, store := range kinds(r).All() {
				if store.Kind().String() == kind.String() {
					return store
				}
			}
			return nil
		}
	}
	here := func(r *storagesReplica) *cache.Kinds { return r.kinds }
	m.storages = map[string]*storage{
		"main":  {api: api, resource: "pods", path: "/api/v1/pods", store: of(apitest.Pods, here)},
		"agg":   {api: aggregated, resource: "gauges", path: "/apis/metering.example.org/v1/gauges", store: of(gauges, here)},
		"other": {api: elsewhere, resource: "pods", path: "/clusters/test/api/v1/pods", store: of(apitest.Pods, func(r *storagesReplica) *cache.Kinds { return r.other })},
		"crd":   {api: api, resource: "widgets", path: "/apis/example.org/v1/widgets", store: of(apitest.Widgets, here)},
	}
	for _, r := range m.replicas {
		for _, s := range m.storages {
			r.stream(s.path).until("synced")
		}
	}
	pass(10 * time.Minute) // so that the hour of the aggregated storage's epoch does not change
	done := make(chan struct{})
	var following sync.WaitGroup
	for i := range 6 {
		c := &storagesClient{m: m, random: rand.New(rand.NewPCG(m.seed, uint64(i+10))), copies: map[string]*watchCopy{}, resets: map[string]int{}}
		m.clients = append(m.clients, c)
		following.Go(func() { c.run(done) })
	}
	for step := range 300 {
		m.churn()
		if step%100 == 50 {
			m.goBack([]string{"agg", "other", "agg", "main"}[m.IntN(4)])
		}
		pass(time.Duration(m.IntN(400)) * time.Millisecond)
		if step%15 == 14 {
			m.rest()
		}
	}
	m.heal()
	m.resting.Store(true)
	pass(4 * time.Minute) // two until who is connected was cut, and two for whoever came again
	m.compare("at the end", true)
	close(done)
	for _, s := range m.storages {
		s.api.Put(s.resource, "team-a/end") // wakes all
	}
	following.Wait()
	resets := map[string]int{}
	for _, c := range m.clients {
		for what, n := range c.resets {
			resets[what] += n
		}
		for _, fault := range c.faults {
			m.Error(fault)
		}
		if len(c.faults) > 0 {
			m.Log(strings.Join(c.recent, "\n"))
		}
	}
	for name, s := range m.storages {
		if resets[name+" epoch"] > 0 && s.wentBack == 0 && !(name == "agg" && m.storages["main"].wentBack > 0) && !(name == "crd" && m.storages["main"].wentBack > 0) {
			m.Errorf("%s never went back, and its watches were told so %d times", name, resets[name+" epoch"])
		}
	}
	m.Logf("%d replicas; resets: %v; checked: %v", len(m.replicas), resets, m.checked)
}

func (m *storagesModel) names() []string { return []string{"agg", "crd", "main", "other"} }

// churn does something to a storage, or to what is on the way to it.
func (m *storagesModel) churn() {
	name := m.names()[m.IntN(4)]
	s := m.storages[name]
	key := fmt.Sprintf("team-%c/%s-%d", 'a'+rune(m.IntN(2)), name, m.IntN(6))
	way := s.resource // under which requests for it are made to fail
	at := s.api
	if name == "agg" {
		at, way = m.storages["main"].api, "aggregated"
	}
	switch n := m.IntN(100); {
	case n < 15 && slices.Contains(s.api.Keys(s.resource), key):
		s.api.Delete(s.resource, key)
	case n < 82:
		s.api.Put(s.resource, key, fmt.Sprintf("spec.n:=%d", m.IntN(1000)))
	case n < 84:
		s.api.Compact()
	case n < 86:
		s.api.Bookmark()
	case n < 90:
		s.api.CutWatches(s.resource)
	case n < 93:
		at.Fail(way, []int{http.StatusInternalServerError, http.StatusServiceUnavailable}[m.IntN(2)])
		s.api.CutWatches(s.resource)
		s.broken = true
	case n < 94 && name != "main" && name != "crd":
		at.Hang(way)
		s.api.CutWatches(s.resource)
		s.broken = true
	case n < 95 && name == "crd":
		s.api.Serve(apitest.Widgets, false)
		s.broken = true
	default:
		m.mend(name)
	}
}

func (m *storagesModel) mend(name string) {
	s := m.storages[name]
	switch s.broken = false; name {
	case "agg":
		m.storages["main"].api.Fail("aggregated", 0)
	case "crd":
		s.api.Fail("widgets", 0)
		s.api.Serve(apitest.Widgets, true)
	default:
		s.api.Fail(s.resource, 0)
	}
}

func (m *storagesModel) heal() {
	for name := range m.storages {
		m.mend(name)
	}
}

// goBack takes a storage back, and forward again beyond what was undone. All replicas see both, or they could not know.
func (m *storagesModel) goBack(name string) {
	m.heal()
	s := m.storages[name]
	change := func() {
		s.api.Put(s.resource, fmt.Sprintf("team-%c/%s-%d", 'a'+rune(m.IntN(2)), name, m.IntN(6)), fmt.Sprintf("spec.n:=%d", m.IntN(1000)))
		pass(time.Duration(m.IntN(100)) * time.Millisecond)
	}
	backup := s.api.Version()
	undone := 2 + m.IntN(10)
	for range undone {
		change()
	}
	m.known(s, "what will be undone")
	if name == "agg" && m.IntN(2) == 0 {
		s.api.Renumber(1 + uint64(m.IntN(50)))
	} else {
		s.api.Restore(backup)
	}
	m.known(s, "that it was undone")
	for range undone + m.IntN(5) {
		change()
	}
	s.wentBack++
}

func (m *storagesModel) known(s *storage, what string) {
	for _, r := range m.replicas {
		for began := time.Now(); ; pass(10 * time.Millisecond) {
			if store := s.store(r); store != nil && store.Snapshot().Version() == s.api.Version() {
				break
			}
			if time.Since(began) > 5*time.Minute {
				m.Fatalf("a replica does not come to know %s of %s", what, s.path)
			}
		}
	}
}

// rest lets nothing happen for a while.
func (m *storagesModel) rest() {
	pass(4 * time.Second)
	m.compare("in a rest", false)
}

// compare compares what clients have with what is there: at the end all of it, else of what their replicas can read.
func (m *storagesModel) compare(when string, all bool) {
	synctest.Wait()
	for i, c := range m.clients {
		c.mu.Lock()
		if all && c.since.IsZero() {
			c.fault("%s: client %d is not connected", when, i)
		}
		for _, name := range c.asks {
			s, own := m.storages[name], c.copies[name]
			store := s.store(c.replica)
			if c.since.IsZero() {
				continue
			}
			// What cannot be read is tried again after half a minute at the latest, and what was
			// not served within a minute.
			soon := 4 * time.Second
			if c.stale[name] != "" || own.snapshot || own.behind || own.told != nil {
				soon = time.Minute
			}
			readable := store != nil && store.Upstream().Live && time.Since(store.Upstream().Since) > soon && time.Since(c.since) > soon
			if !all && !readable {
				m.checked["cannot have all"]++
				continue
			}
			m.checked["compared"]++
			if c.stale[name] != "" || own.snapshot || own.behind || own.told != nil {
				c.fault("%s: %s, followed for %s, has not begun (a snapshot: %t, before its bookmark: %t), or is told to be stale: %s; it is %+v", when, name,
					time.Since(c.since), own.snapshot || own.told != nil, own.behind, c.stale[name], store.Upstream())
				continue
			}
			objects := s.api.Objects(s.resource)
			for key, text := range objects {
				f := frame{data: text}
				if got := own.objects[uidOf(f)]; got == "" || fmt.Sprint(decodedObject(got)) != fmt.Sprint(decodedObject(text)) {
					c.fault("%s: %s has %.300s of %s, not %.300s; stale: %v, live: %+v", when, name, got, key, text, c.stale, store.Upstream())
				}
			}
			if len(own.objects) != len(objects) {
				c.fault("%s: %s has %d objects, not %d", when, name, len(own.objects), len(objects))
			}
		}
		c.mu.Unlock()
	}
}

func (c *storagesClient) fault(format string, args ...any) {
	if len(c.faults) < 5 {
		text := fmt.Sprintf(format, args...)
		c.faults, c.recent = append(c.faults, text), append(c.recent, "FAULT "+text)
	}
}

func (c *storagesClient) run(done <-chan struct{}) {
	for {
		c.mu.Lock()
		c.replica = c.m.replicas[c.random.IntN(len(c.m.replicas))]
		if len(c.asks) == 0 || c.random.IntN(4) == 0 {
			c.asks = slices.DeleteFunc(c.m.names(), func(string) bool { return c.random.IntN(4) == 0 })
			if len(c.asks) < 2 {
				c.asks = []string{"agg", "main"}
			}
		}
		path := "/stream?heartbeat=20s"
		for _, name := range c.asks {
			if c.copies[name] == nil {
				c.copies[name] = &watchCopy{objects: map[string]string{}}
			}
			own := c.copies[name]
			own.told, own.versions = map[string]bool{}, map[string]uint64{}
			own.behind = strings.Contains(c.position, name+"-")
			if own.behind {
				own.told = nil
			}
			path += "&" + name + "=" + escape(c.m.storages[name].path)
		}
		c.stale = map[string]string{}
		headers := []string{}
		if c.position != "" {
			headers = append(headers, "Last-Event-ID: "+c.position)
		}
		c.recent = append(c.recent, time.Now().Format("04:05.000 ")+path+" with "+c.position)
		replica := c.replica
		c.mu.Unlock()
		s, err := replica.dial(path, headers...)
		if err != nil {
			c.m.Error(err)
			return
		}
		c.mu.Lock()
		if c.since = time.Now(); s.response.StatusCode == http.StatusNotFound {
			c.since, c.asks = time.Time{}, nil // the kind that is gone, asked for anew
		} else if s.response.StatusCode != http.StatusOK {
			c.fault("%s: %s", path, s.response.Status)
		}
		over := c.since.IsZero()
		c.mu.Unlock()
		cut := time.AfterFunc(time.Duration(1+c.random.IntN(120000))*time.Millisecond, s.close)
		if c.m.resting.Load() {
			cut.Stop()
		}
		for !over {
			f, err := s.read()
			if err != nil {
				break
			}
			c.apply(f)
			select {
			case <-done:
				cut.Stop()
				s.close()
				return
			default:
			}
			if c.random.IntN(150) == 0 && !c.m.resting.Load() {
				break
			}
		}
		s.close()
		c.mu.Lock()
		c.since = time.Time{}
		c.mu.Unlock()
		pass(time.Duration(c.random.IntN(10000)) * time.Millisecond)
		select {
		case <-done:
			return
		default:
		}
	}
}

func (c *storagesClient) apply(f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.id != "" {
		c.position = f.id
	}
	if f.event != "" {
		if c.recent = append(c.recent, fmt.Sprintf("%s %s %s@%s %s %s", time.Now().Format("04:05.000"), f.event, uidOf(f), f.field("metadata", "resourceVersion"), f.field("reason"), f.id)); len(c.recent) > 4000 {
			c.recent = append(c.recent[:0], c.recent[2000:]...)
		}
	}
	name, event, _ := strings.Cut(f.event, ".")
	own := c.copies[name]
	if f.event == "goodbye" {
		readable := 0
		for _, asked := range c.asks {
			if store := c.m.storages[asked].store(c.replica); store != nil && store.Upstream().Synced && store.Err() == nil {
				readable++
			}
		}
		if readable > 0 {
			c.fault("goodbye %s although %d of %v can be read", f.field("reason"), readable, c.asks)
		}
		return
	}
	if own == nil {
		return
	}
	uid := uidOf(f)
	switch event {
	case "added", "modified":
		own.objects[uid] = f.data
		if own.told != nil {
			own.told[uid] = true
		}
	case "deleted":
		delete(own.objects, uid)
		delete(own.told, uid)
	case "bookmark":
		own.behind = false
	case "reset":
		own.snapshot, own.behind, own.told = true, false, map[string]bool{}
		c.resets[name+" "+f.field("reason")]++
	case "synced":
		if own.told == nil {
			c.fault("%s: a second snapshot without a reset: %q", name, f.raw)
		}
		for had := range own.objects {
			if !own.told[had] {
				delete(own.objects, had)
			}
		}
		own.told, own.snapshot, own.behind = nil, false, false
	case "stale":
		c.stale[name] = f.field("reason")
	case "live":
		delete(c.stale, name)
	}
}
