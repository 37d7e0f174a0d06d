package http

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/stream"
)

// TestLivePageTellsWhatStandsOnItsPlaces: what enters and leaves, why, and in which order it stands.
func TestLivePageTellsWhatStandsOnItsPlaces(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for i, key := range []string{"a/p", "a/q", "b/r", "b/s"} {
			g.api.Put("pods", key, fmt.Sprintf("spec.n:=%d", 10*i))
		}
		g.api.Put("pods", "a/none")
		uid := func(key string) string { return g.api.UID("pods", key) }
		places := func(f frame, total int, keys ...string) {
			t.Helper()
			uids := []string{}
			for _, key := range keys {
				uids = append(uids, uid(key))
			}
			var data struct {
				UIDs                           []string
				Offset, Total, ResourceVersion json.RawMessage
			}
			if err := json.Unmarshal([]byte(f.data), &data); err != nil || f.event != "page" || !slices.Equal(data.UIDs, uids) || string(data.Total) != strconv.Itoa(total) || data.UIDs == nil {
				t.Fatalf("not %v of %d: %s", keys, total, f.raw)
			}
			version := strings.Trim(string(data.ResourceVersion), `"`) + "-" // behind a deletion, there may be more of it
			if !strings.Contains(f.id, "."+version) && !strings.Contains(f.id, "-"+version) {
				t.Errorf("id and version differ: %s", f.raw)
			}
		}
		const path = "/api/v1/pods?sort=-spec.n&limit=2&offset=1"
		s := g.stream(path)
		places(s.expect("added r", "added q", "page"), 5, "b/r", "a/q")
		if s.lastID == "" || g.stream("/api/v1/pods?limit=2&offset=9").expect("page").field("offset") != "9" {
			t.Error("beyond the end")
		}
		pass(time.Second)

		g.api.Put("pods", "a/q", "spec.n:=10", "spec.other=1") // changes neither order nor total
		if f := s.expect("modified q"); !strings.Contains(f.id, "."+f.field("metadata", "resourceVersion")+"-") {
			t.Errorf("the position stays: %s", f.raw)
		}
		back := g.stream(path, "Last-Event-ID: "+s.lastID)
		pass(time.Second)
		before := s.lastID
		g.api.Put("pods", "a/new", "spec.n:=25") // pushes q out, at the border
		f := s.expect("deleted q", "added new")
		if f.id != before {
			t.Errorf("before the page's end the position has moved: %s", f.raw)
		}
		f = s.next()
		places(f, 6, "a/new", "b/r")
		back.expect("added new", "added r", "page") // and nothing before, since nothing had changed
		cut := g.stream(path, "Last-Event-ID: "+before)
		cut.expect("added new", "added r", "page")
		other := g.stream("/api/v1/pods?sort=-spec.n&limit=2", "Last-Event-ID: "+f.id)
		other.expect("added s", "added new", "page") // another page's position says nothing
		pass(time.Second)
		g.api.Put("pods", "a/p", "spec.n:=90")
		f = s.expect("deleted r")
		if f.field("reason") != "moved" || f.field("spec") != "" {
			t.Errorf("%s", f.raw)
		}
		s.expect("added s", "page")
		pass(time.Second)
		g.api.Delete("pods", "b/s")
		if f := s.expect("deleted s"); f.field("reason") != "" {
			t.Errorf("%s", f.raw)
		}
		s.expect("added r", "page")
		pass(time.Second)
		g.api.Delete("pods", "a/none")
		places(s.expect("page"), 4, "a/new", "b/r")
	})
}

// TestBookmarksOfAPageCountWhatIsElsewhere: what changes on other places is told to nobody here,
// and the position moves over it.
func TestBookmarksOfAPageCountWhatIsElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		g.api.Put("pods", "a/first", "spec.n:=1")
		g.api.Put("pods", "b/other", "spec.n:=2")
		s := g.stream("/api/v1/pods?sort=spec.n&limit=1")
		s.until("page")
		for range 5 {
			pass(time.Second)
			g.api.Put("pods", "b/other", "spec.n:=3")
			version := g.api.Put("pods", "b/other", "spec.n:=2")
			if f := s.event(); f.event != "bookmark" || f.field("resourceVersion") != fmt.Sprint(version) {
				t.Fatalf("not a bookmark at %d: %s", version, f.raw)
			}
		}
		g.api.Put("pods", "a/first", "spec.n:=5")
		s.expect("deleted first", "added other", "page")
	})
}

func TestLivePagesRefuseWhatTheyDoNotKnow(t *testing.T) {
	g := newGateway(t)
	for _, query := range []string{
		"limit=0", "limit=501", "limit=x", "limit=", "sort=metadata.name", "offset=3", "limit=5&offset=-1", "limit=5&sort=.", "limit=5&sort=a,", "limit=5&continue=x",
		"limit=5&resourceVersion=3", "limit=5&sendInitialEvents=false", "limit=5&conflate=x", "limit=5&x=y", "limit=5&limit=6", "limit=5&labelSelector=%3D",
		"countBy=", "countBy=a,b,c", "countBy=a,", "countBy=a&sort=b", "countBy=a&offset=1", "countBy=a&fields=b", "countBy=a&deltas=merge-patch",
		"countBy=a&resourceVersion=3", "countBy=a&sendInitialEvents=true", "countBy=a&limit=x",
	} {
		for path, accept := range map[string]string{
			"/api/v1/pods?" + query: eventStream, "/stream?a=" + escape("/api/v1/pods?"+query): eventStream, "/api/v1/namespaces/a/pods/x?" + query: eventStream,
		} {
			if a := g.get(path, "Accept: "+accept); a.code != 400 {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
	}
	for _, path := range []string{"/stream?limit=5&a=/api/v1/pods", "/stream?resourceVersion=4&a=" + escape("/api/v1/pods?limit=4"), "/api/v1/namespaces/a/pods/x?limit=5"} {
		if a := g.get(path, "Accept: "+eventStream); a.code != 400 {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	g.get("/stream?fields=spec&a=/api/v1/pods&p="+escape("/api/v1/pods?limit=4")+"&c="+escape("/api/v1/pods?countBy=a"), "Accept: "+eventStream)
}

// pageClient holds a live page as it is told, is cut off at random, and comes back with its position.
type pageClient struct {
	m         *pageModel
	user      string
	query     string
	namespace string
	order     string // of sort
	offset    int
	limit     int
	deltas    bool
	random    *rand.Rand

	mu       sync.Mutex
	position string
	scope    auth.Scope                // as it was told
	held     map[string]map[string]any // by uid
	texts    map[string]string
	gone     map[string]string // uids that left since the last page, with the reason
	uids     []string
	fresh    bool // the first page of this connection has not come
	reads    bool
	pages    int
	faults   []string
}

type pageModel struct {
	*testing.T
	*rand.Rand
	replicas []*gateway
	api      *gateway
}

// TestLivePagesAreTheSortedList: at each event page, a client holds what the API server's objects
// at that version give, in order, within what its user may see, however often it is cut off and
// wherever it comes back.
func TestLivePagesAreTheSortedList(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 9))
			ring := stream.Options{Events: 16 << random.IntN(6), Bytes: 1 << 20, Age: time.Minute}
			keep := []int{1, 4, 100}[seed] // of at most 36 pods
			inBubbleOf(t, 1+random.IntN(2), func(t *testing.T, replicas []*gateway) {
				(&pageModel{T: t, Rand: random, replicas: replicas, api: replicas[0]}).play(seed)
			}, cached(ring, "pods"), func(_ *gateway, o *Options) { o.orderKeep = keep })
		})
	}
}

func (m *pageModel) play(seed uint64) {
	for _, user := range modelUsers[1:] {
		m.api.access.permit(user, auth.Scope{All: true})
	}
	for _, replica := range m.replicas {
		replica.stream("/api/v1/pods").expect("synced")
	}
	var clients []*pageClient
	var running sync.WaitGroup
	done := make(chan struct{})
	for i := range 24 {
		c := &pageClient{
			m: m, user: modelUsers[i%3], order: []string{"", "spec.n", "-spec.n", "-status.phase,spec.n"}[i%4], limit: 1 + m.IntN(6),
			deltas: m.IntN(2) == 0, random: rand.New(rand.NewPCG(seed, uint64(i))), held: map[string]map[string]any{}, texts: map[string]string{}, gone: map[string]string{},
		}
		if m.IntN(2) == 0 {
			c.offset = m.IntN(12)
		}
		if m.IntN(3) == 0 {
			c.namespace = "team-a"
		}
		c.query = fmt.Sprintf("?limit=%d&offset=%d", c.limit, c.offset)
		if c.order != "" {
			c.query += "&sort=" + c.order
		}
		if m.IntN(3) == 0 {
			c.query += "&labelSelector=app%3Dweb"
		}
		if m.IntN(4) == 0 {
			c.query += "&search=D-1"
		}
		if c.deltas {
			c.query += "&deltas=merge-patch"
		}
		clients = append(clients, c)
		running.Go(func() { c.run(done) })
	}
	for step := range 200 {
		m.churn()
		pass(time.Duration(m.IntN(150)) * time.Millisecond)
		if step%50 == 49 {
			m.api.api.Fail("pods", 0)
			pass(3 * time.Minute) // an informer waits up to a minute before it tries again
			m.lastInParts()
			synctest.Wait()
			for _, c := range clients {
				c.settled()
			}
		}
	}
	close(done)
	for range 30 {
		m.churn()
		pass(time.Second)
	}
	running.Wait()
	pages := 0
	for _, c := range clients {
		pages += c.pages
		for _, fault := range c.faults {
			m.Errorf("%s of %q: %s", c.query, c.user, fault)
		}
	}
	m.Logf("%d pages", pages)
	if pages < 300 {
		m.Errorf("only %d pages were checked", pages)
	}
}

// TestLivePagesThatAreToldTogetherAreTheSortedList: on connections of their own, pages of the same
// question are told together. Each is what it would be alone, is there soon, and goes on by itself
// when somebody's permissions change, a client stops reading or leaves.
func TestLivePagesThatAreToldTogetherAreTheSortedList(t *testing.T) {
	t.Parallel() // it mostly waits, for real time
	g := newGateway(t)
	m := &pageModel{T: t, Rand: rand.New(rand.NewPCG(5, 9)), replicas: []*gateway{g}, api: g}
	for _, user := range modelUsers[1:] {
		g.access.permit(user, auth.Scope{All: true})
	}
	for range 20 {
		m.put(fmt.Sprintf("team-%c/pod-%d", 'a'+rune(m.IntN(3)), m.IntN(12)))
	}
	var clients []*pageClient
	var running sync.WaitGroup
	done := make(chan struct{})
	for i := range 30 {
		c := &pageClient{
			m: m, user: modelUsers[i%3], order: []string{"spec.n", "-status.phase,spec.n"}[i/3%2], limit: 5, offset: i / 3 % 2 * 3, deltas: i%5 == 0,
			random: rand.New(rand.NewPCG(5, uint64(i))), held: map[string]map[string]any{}, texts: map[string]string{}, gone: map[string]string{},
		}
		c.query = fmt.Sprintf("?limit=5&offset=%d&sort=%s&conflate=20ms", c.offset, c.order)
		if c.deltas {
			c.query += "&deltas=merge-patch"
		}
		if i%2 == 0 { // it leaves others, and joins them again, all the time; the rest is woken by nothing else
			c.query += "&heartbeat=1s"
		}
		clients = append(clients, c)
		running.Go(func() { c.run(done) })
	}
	end := sync.OnceFunc(func() { close(done) })
	defer running.Wait() // also of a test that fails
	defer end()
	var counted []*events // two who are told the same counts
	for range 2 {
		counted = append(counted, g.stream("/api/v1/pods?countBy=status.phase&conflate=20ms"))
	}
	together := 0
	for step := range 300 {
		key := fmt.Sprintf("team-%c/pod-%d", 'a'+rune(m.IntN(3)), m.IntN(12))
		switch n := m.IntN(40); {
		case n == 0:
			scopes := []auth.Scope{{All: true}, {Namespaces: []string{"team-a"}}, {Namespaces: []string{"team-a", "team-b"}}}
			g.access.permit(modelUsers[1+m.IntN(2)], scopes[m.IntN(len(scopes))])
		case n < 6 && slices.Contains(g.api.Keys("pods"), key):
			g.api.Delete("pods", key)
		case n < 8 && len(g.api.Keys("pods")) > 3:
			keys := g.api.Keys("pods")
			m.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			m.inParts(keys[:3])
		default:
			m.put(key)
		}
		pass(time.Duration(m.IntN(15)) * time.Millisecond)
		together = max(together, g.server.streams.Stats().Together)
		if step%100 == 99 {
			pass(2 * time.Second) // much more than it takes, and many are not woken by anything else meanwhile
			for _, c := range clients {
				c.settles()
			}
		}
	}
	version := g.api.Put("pods", "team-a/last", "status.phase=Last")
	for _, s := range counted {
		for last := uint64(0); last < version; {
			f := s.until("counts")
			if last, _ = strconv.ParseUint(f.field("resourceVersion"), 10, 64); last >= version && !strings.Contains(f.data, `{"value":"Last","count":1}`) {
				t.Errorf("the counts at %d are %s", last, f.data)
			}
		}
		s.close()
	}
	end()
	for _, user := range modelUsers[1:] {
		g.access.permit(user, auth.Scope{All: true})
	}
	for i := range 60 { // who waits for more gets it, and leaves
		g.api.Put("pods", fmt.Sprint("team-a/end-", i), "status.phase=Zero", "spec.n:=-1")
		pass(30 * time.Millisecond)
	}
	running.Wait()
	pages := 0
	for _, c := range clients {
		pages += c.pages
		for _, fault := range c.faults {
			t.Errorf("%s of %q: %s", c.query, c.user, fault)
		}
	}
	t.Logf("%d pages; %d streams together at most", pages, together)
	if pages < 300 || together < 6 {
		t.Errorf("%d pages were checked, and %d told together at most", pages, together)
	}
}

func (m *pageModel) churn() {
	key := func() string { return fmt.Sprintf("team-%c/pod-%d", 'a'+rune(m.IntN(3)), m.IntN(12)) }
	api := m.api.api
	keys := api.Keys("pods")
	switch n := m.IntN(100); {
	case n < 12 && len(keys) > 0:
		api.Delete("pods", keys[m.IntN(len(keys))])
	case n < 14 && len(keys) > 3:
		m.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		if m.IntN(2) == 0 {
			api.Delete("pods", keys[:3]...)
		} else {
			m.inParts(keys[:3])
		}
	case n < 18:
		for range m.IntN(40) {
			m.put(key())
		}
	case n < 86:
		m.put(key())
	case n < 89:
		api.CutWatches("pods")
	case n < 91:
		api.Compact()
		api.CutWatches("pods")
	case n < 92:
		api.Fail("pods", 503)
		api.CutWatches("pods")
	case n < 94:
		api.Fail("pods", 0)
	default:
		scopes := []auth.Scope{
			{All: true}, {Namespaces: []string{"team-a"}}, {Namespaces: []string{"team-a", "team-b"}}, {Namespaces: []string{"team-a"}, Names: map[string][]string{"team-c": {"pod-1"}}},
		}
		api := m.api.access
		api.permit(modelUsers[1+m.IntN(2)], scopes[m.IntN(len(scopes))])
	}
}

// inParts has one revision delete two objects and change a third, or delete it as well, with pauses in between.
func (m *pageModel) inParts(keys []string) {
	changes := []func(){
		func() { m.api.api.Delete("pods", keys[0]) },
		func() { m.api.api.Delete("pods", keys[1]) },
		func() { m.put(keys[2]) },
	}
	if m.IntN(2) == 0 {
		changes[2] = func() { m.api.api.Delete("pods", keys[2]) }
	}
	m.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	m.api.api.InParts(func() { pass(time.Duration(m.IntN(300)) * time.Millisecond) }, changes...)
}

// lastInParts does so with what is left alone for a while afterwards: nothing else tells anybody of the last part.
func (m *pageModel) lastInParts() {
	for len(m.api.api.Keys("pods")) < 6 {
		m.put(fmt.Sprintf("team-%c/pod-%d", 'a'+rune(m.IntN(3)), m.IntN(12)))
	}
	pass(time.Second)
	keys := m.api.api.Keys("pods")
	m.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	m.inParts(keys[:3])
	pass(5 * time.Second)
}

func (m *pageModel) put(key string) {
	fields := []string{"metadata.labels.app=" + []string{"web", "db"}[m.IntN(2)], "status.phase=" + []string{"Pending", "Running"}[m.IntN(2)], "spec.pad=" + strings.Repeat("x", 200)}
	if m.IntN(5) > 0 {
		fields = append(fields, fmt.Sprintf("spec.n:=%d", m.IntN(4))) // so that there are ties, and some without
	}
	m.api.api.Put("pods", key, fields...)
}

// expected is the page of some objects, and how many are selected; selected are the uids of these.
func (c *pageClient) expected(objects map[string]string) (window []string, selected map[string]string) {
	type object struct {
		text string
		json map[string]any
	}
	at := func(o object, path ...string) any {
		var value any = o.json
		for _, key := range path {
			in, _ := value.(map[string]any)
			value = in[key]
		}
		return value
	}
	text := func(o object, path ...string) string { s, _ := at(o, path...).(string); return s }
	var all []object
	for key, text := range objects {
		namespace, name, _ := strings.Cut(key, "/")
		o := object{text, decodedObject(text)}
		web, _ := at(o, "metadata", "labels", "app").(string)
		if (c.namespace == "" || namespace == c.namespace) && (c.scope.All || c.scope.Sees(namespace, name)) &&
			(!strings.Contains(c.query, "labelSelector") || web == "web") && (!strings.Contains(c.query, "search") || strings.Contains(name, "d-1")) {
			all = append(all, o)
		}
	}
	n := func(o object) (float64, bool) { n, ok := at(o, "spec", "n").(float64); return n, ok }
	slices.SortFunc(all, func(a, b object) int {
		for term := range strings.SplitSeq(c.order, ",") {
			compared := 0
			switch strings.TrimPrefix(term, "-") {
			case "spec.n":
				va, oka := n(a)
				vb, okb := n(b)
				if oka != okb {
					if oka {
						return -1
					}
					return 1
				}
				compared = cmp.Compare(va, vb)
			case "status.phase":
				compared = strings.Compare(text(a, "status", "phase"), text(b, "status", "phase"))
			}
			if strings.HasPrefix(term, "-") {
				compared = -compared
			}
			if compared != 0 {
				return compared
			}
		}
		return cmp.Or(strings.Compare(text(a, "metadata", "namespace"), text(b, "metadata", "namespace")), strings.Compare(text(a, "metadata", "name"), text(b, "metadata", "name")))
	})
	selected = map[string]string{}
	for i, o := range all {
		uid := text(o, "metadata", "uid")
		selected[uid] = o.text
		if i >= c.offset && i < c.offset+c.limit {
			window = append(window, uid)
		}
	}
	return window, selected
}

func (c *pageClient) fault(format string, args ...any) {
	if len(c.faults) < 3 {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

func (c *pageClient) run(done <-chan struct{}) {
	path := "/api/v1/pods" + c.query
	if c.namespace != "" {
		path = "/api/v1/namespaces/team-a/pods" + c.query
	}
	for {
		headers := []string{"Last-Event-ID: " + c.position}
		if c.user != "" {
			headers = append(headers, "Authorization: Bearer "+c.user)
		}
		g := c.m.replicas[c.random.IntN(len(c.m.replicas))]
		c.mu.Lock()
		c.fresh, c.scope, c.gone = true, auth.Scope{All: true}, map[string]string{}
		c.mu.Unlock()
		s, err := g.dial(path, headers...)
		if err != nil {
			c.mu.Lock()
			c.fault("%v", err)
			c.mu.Unlock()
			return
		}
		cut := time.AfterFunc(time.Duration(1+c.random.IntN(20000))*time.Millisecond, s.close)
		for {
			f, err := s.read()
			if err != nil {
				if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "context canceled") {
					c.mu.Lock()
					c.fault("%v", err)
					c.mu.Unlock()
				}
				break
			}
			c.mu.Lock()
			c.apply(f)
			c.mu.Unlock()
			if c.random.IntN(40) == 0 { // anywhere in a batch
				s.close()
				break
			}
		}
		cut.Stop()
		c.mu.Lock()
		c.reads = false
		c.mu.Unlock()
		select {
		case <-done:
			s.close()
			return
		case <-time.After(time.Duration(c.random.IntN(3000)) * time.Millisecond):
		}
	}
}

func (c *pageClient) apply(f frame) {
	if f.id != "" {
		c.position = f.id
	}
	c.reads = c.reads || f.event != ""
	uid := f.field("metadata", "uid")
	switch f.event {
	case "narrowed", "widened":
		var scope struct {
			All        bool
			Namespaces []string
			Names      map[string][]string
		}
		if err := json.Unmarshal([]byte(f.data), &scope); err != nil {
			c.fault("%v", err)
		}
		c.scope = auth.Scope{All: scope.All, Namespaces: scope.Namespaces, Names: scope.Names}
	case "added":
		if _, has := c.held[uid]; has && !c.fresh {
			c.fault("added twice: %s", f.raw)
		}
		c.hold(uid, f.data)
	case "modified":
		if _, has := c.held[uid]; !has || c.fresh {
			c.fault("modified, but not there: %s", f.raw)
		}
		c.hold(uid, f.data)
	case "patched":
		var data struct {
			UID   string
			Patch json.RawMessage
		}
		if err := json.Unmarshal([]byte(f.data), &data); err != nil || c.texts[data.UID] == "" || !c.deltas {
			c.fault("a patch of what is not there: %q", f.raw)
			return
		}
		patched, err := jsonpatch.MergePatch([]byte(c.texts[data.UID]), data.Patch)
		if err != nil {
			c.fault("%v: %q", err, f.raw)
			return
		}
		c.hold(data.UID, string(patched))
	case "deleted":
		if _, has := c.held[uid]; !has {
			c.fault("deleted, but not there: %s", f.raw)
		}
		delete(c.held, uid)
		delete(c.texts, uid)
		c.gone[uid] = f.field("reason")
	case "page":
		c.page(f)
	case "reset", "synced":
		c.fault("%s", f.raw)
	}
}

func (c *pageClient) hold(uid, text string) { c.held[uid], c.texts[uid] = decodedObject(text), text }

func (c *pageClient) page(f frame) {
	var page struct {
		UIDs            []string
		Offset, Total   int
		ResourceVersion string
	}
	version := uint64(0)
	err := json.Unmarshal([]byte(f.data), &page)
	if err == nil {
		version, err = strconv.ParseUint(page.ResourceVersion, 10, 64)
	}
	if err != nil {
		c.fault("%v: %s", err, f.raw)
	}
	c.uids = page.UIDs
	if c.fresh { // what it has from before, and the page does not name, is dropped
		for uid := range c.held {
			if !slices.Contains(page.UIDs, uid) {
				delete(c.held, uid)
				delete(c.texts, uid)
			}
		}
	}
	c.fresh = false
	c.pages++
	wrong := ""
	for _, objects := range c.m.api.api.States("pods", version) { // of a revision that comes in parts, the page may have some
		want, selected := c.expected(objects)
		if wrong = c.differs(want, selected); page.Total != len(selected) || page.Offset != c.offset {
			wrong += fmt.Sprintf("; total %d, not %d", page.Total, len(selected))
		}
		for uid, reason := range c.gone {
			if _, still := selected[uid]; still != (reason == "moved") && !slices.Contains(page.UIDs, uid) {
				wrong += fmt.Sprintf("; %s left with the reason %q, and is selected: %t", uid, reason, still)
			}
		}
		if wrong == "" {
			break
		}
	}
	if wrong != "" {
		c.fault("at %d %s: %s", version, wrong, f.raw)
	}
	c.gone = map[string]string{}
}

// differs says how what the client holds differs from what it should hold; "" if it does not.
func (c *pageClient) differs(want []string, selected map[string]string) string {
	if !slices.Equal(c.uids, want) {
		return fmt.Sprintf("the places are %v, not %v", c.uids, want)
	}
	if len(c.held) != len(want) {
		return fmt.Sprintf("it holds %d objects of %v", len(c.held), want)
	}
	for _, uid := range want {
		if !reflect.DeepEqual(c.held[uid], decodedObject(selected[uid])) {
			return fmt.Sprintf("it holds %v, not %s", c.held[uid], selected[uid])
		}
	}
	return ""
}

// settled checks a client after a while in which nothing happened: then it holds the page as it is.
func (c *pageClient) settled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reads || c.pages == 0 {
		return
	}
	if wrong := c.differs(c.expected(c.m.api.api.Objects("pods"))); wrong != "" {
		c.fault("after a rest %s", wrong)
	}
}

// settles is settled for a client that may just have come back, and be within its first batch.
func (c *pageClient) settles() {
	for range 20 {
		c.mu.Lock()
		before := c.faults
		c.faults = nil
		c.mu.Unlock()
		c.settled()
		c.mu.Lock()
		clean := len(c.faults) == 0
		c.faults = before
		c.mu.Unlock()
		if clean {
			return
		}
		pass(50 * time.Millisecond)
	}
	c.settled()
}

// TestSortedListOfAKeptQuestionIsTheSame as one that is sorted for the list, on all its pages.
func TestSortedListOfAKeptQuestionIsTheSame(t *testing.T) {
	t.Run("of which all is kept", func(t *testing.T) { keptListIsTheSame(t, 100) })
	t.Run("of which the beginning is kept", func(t *testing.T) { keptListIsTheSame(t, 2) })
}

func keptListIsTheSame(t *testing.T, keep int) {
	inBubble(t, func(t *testing.T, g *gateway) {
		m := &pageModel{T: t, Rand: rand.New(rand.NewPCG(3, 4)), replicas: []*gateway{g}, api: g}
		g.access.permit("carl", auth.Scope{Namespaces: []string{"team-a"}})
		found := 0
		for _, user := range []string{"alice", "carl"} {
			g.stream("/api/v1/pods?labelSelector=app%3Dweb&limit=1&sort=-spec.n&conflate=60s", "Authorization: Bearer "+user).until("page")
		}
		for range 60 {
			for range 8 {
				m.put(fmt.Sprintf("team-%c/pod-%d", 'a'+rune(m.IntN(3)), m.IntN(12)))
			}
			if keys := g.api.Keys("pods"); len(keys) > 20 {
				g.api.Delete("pods", keys[m.IntN(len(keys))])
			}
			pass(time.Duration(m.IntN(100)) * time.Millisecond)
			synctest.Wait() // so that both lists are of one version
			for _, user := range []string{"alice", "carl"} {
				walk := func(sort string) (names []string) {
					for next := ""; ; {
						a := g.get("/api/v1/pods?labelSelector=app%3Dweb&limit=3&sort="+sort+"&continue="+next, "Authorization: Bearer "+user)
						var l list
						if err := json.Unmarshal([]byte(a.body), &l); err != nil || a.code != 200 {
							t.Fatal(err, a.body)
						}
						names = append(names, l.names()...)
						if next = l.Metadata.Continue; next == "" {
							return names
						}
					}
				}
				if kept, sorted := walk("-spec.n"), walk("-spec.n,metadata.namespace"); !slices.Equal(kept, sorted) {
					t.Fatalf("%v, not %v", kept, sorted)
				} else if len(kept) > 0 {
					found++
				}
			}
		}
		if found < 60 {
			t.Errorf("only %d lists", found)
		}
	}, func(_ *gateway, o *Options) { o.orderKeep = keep })
}
