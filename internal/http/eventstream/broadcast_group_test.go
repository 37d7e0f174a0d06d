package eventstream

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/kubecast/kubecast/internal/apitest"
)

// listener is a client of all pods that writes down what it is told. Now and then it does not read
// for a while, or leaves and comes back with its position.
type listener struct {
	r      *running
	random *rand.Rand
	user   string
	path   string // empty: that of all pods
	query  string
	coding string
	until  string // the object that is called so is the last; empty: last
	steady bool   // it reads all the time, and never leaves

	began    chan struct{} // closed once the state was told
	ended    chan struct{} // closed once it was told of the object that is called last
	stale    chan struct{} // closed once it was told that its data is stale, which it is once; nil: it never is
	position string
	told     []string // the events of objects, whole
	since    string   // the id of the end of the state
	resets   int
	err      error
}

// run listens until the stream has ended as planned.
func (l *listener) run() {
	for l.err == nil && !l.connect() {
	}
}

// connect is one connection. It reports whether that was the last.
func (l *listener) connect() (over bool) {
	conn, err := net.Dial("tcp", l.r.address)
	if err != nil {
		l.err = err
		return true
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	_ = conn.SetDeadline(time.Now().Add(2 * patience))
	path := cmp.Or(l.path, "/api/v1/pods") + l.query
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nUser: %s\r\nAccept: text/event-stream\r\nAccept-Encoding: %s\r\n", path, l.user, l.coding)
	if l.position != "" {
		fmt.Fprintf(conn, "Last-Event-ID: %s\r\n", l.position)
	}
	fmt.Fprint(conn, "\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		l.err = err
		return true
	}
	body := io.Reader(response.Body)
	switch response.Header.Get("Content-Encoding") {
	case "gzip":
		if body, err = gzip.NewReader(body); err != nil {
			l.err = err
			return true
		}
	case "zstd":
		decoder, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1))
		if err != nil {
			l.err = err
			return true
		}
		defer decoder.Close()
		body = decoder
	}
	lines, event := bufio.NewReader(body), ""
	for leave := l.random.IntN(200); l.steady || leave > 0; leave-- {
		line, err := lines.ReadString('\n')
		switch {
		case err == io.EOF: // with gzip, its sum was right
			return true
		case err != nil:
			l.err = fmt.Errorf("behind %q: %w", l.position, err)
			return true
		case line != "\n":
			event += line
			leave++
			continue
		}
		l.note(event)
		event = ""
		if !l.steady && l.random.IntN(30) == 0 {
			time.Sleep(time.Duration(l.random.IntN(60)) * time.Millisecond)
		}
	}
	return false
}

func (l *listener) note(event string) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(event, "event: "), "\n")
	if id, is := strings.CutPrefix(rest, "id: "); is {
		l.position, _, _ = strings.Cut(id, "\n")
	}
	switch name {
	case "synced":
		if l.since, l.told = l.position, nil; l.resets == 0 {
			close(l.began)
		}
	case "reset":
		l.resets++
	case "added", "modified", "patched", "deleted", "stale", "live":
		if name == "stale" && l.stale != nil {
			close(l.stale)
		}
		if l.told = append(l.told, event); strings.Contains(event, `"name":"`+cmp.Or(l.until, "last")+`"`) {
			close(l.ended)
		}
	}
}

// TestEachIsToldWhatTheyWouldBeToldAlone: streams of one group key are told together, whatever
// happens to some of them. So what each is told is compared with what one is told that is like
// nobody, byte for byte.
//
// What happens comes from a seed; $KUBECAST_SEED is another one.
func TestEachIsToldWhatTheyWouldBeToldAlone(t *testing.T) {
	seed, _ := apitest.Soak(t, 1)
	random := rand.New(rand.NewPCG(seed, 1))
	r := run(t, func(c net.Conn) net.Conn { return c })
	r.api.Put("pods", "team-a/first")
	var listening sync.WaitGroup
	alone := map[string]*listener{}
	var all []*listener
	listen := func(query, coding string, steady bool) *listener {
		l := &listener{r: r, random: rand.New(rand.NewPCG(seed, uint64(len(all)+2))), query: query, coding: coding, steady: steady, began: make(chan struct{}), ended: make(chan struct{})}
		listening.Go(l.run)
		return l
	}
	queries := []string{"?", "?heartbeat=1s&deltas=merge-patch"} // whom nothing else wakes, and who leave others all the time
	for _, query := range queries {
		alone[query] = listen(query+"&labelSelector=nobody%21%3Dlike", "identity", true)
	}
	for _, l := range alone {
		<-l.began
	}
	r.awaitLive()
	for _, query := range queries {
		for i := range 24 {
			all = append(all, listen(query, []string{"identity", "gzip", "zstd"}[i%3], i%4 == 0))
		}
	}
	together := 0
	for step := range 300 {
		key := fmt.Sprintf("team-%c/pod-%d", 'a'+random.IntN(3), random.IntN(20))
		switch n := random.IntN(100); {
		case n < 10 && slices.Contains(r.api.Keys("pods"), key):
			r.api.Delete("pods", key)
		case n < 20: // more than a connection takes at once
			r.api.Put("pods", key, "spec.text="+strings.Repeat("long ", 20_000), fmt.Sprint("spec.step=", step))
		default:
			r.api.Put("pods", key, fmt.Sprint("spec.step=", step))
		}
		if random.IntN(3) > 0 {
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		}
		if random.IntN(10) == 0 {
			r.beatOften()
		}
		together = max(together, r.hub.Stats().Together)
	}
	r.api.Put("pods", "team-a/last")
	r.awaitEnds(all)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r.hub.Drain(ctx)
	listening.Wait()
	if together < 2 {
		t.Errorf("%d streams were told together at most", together)
	}
	for i, l := range all {
		of := alone[l.query]
		from := slices.IndexFunc(of.told, func(event string) bool { return len(l.told) > 0 && event == l.told[0] })
		switch {
		case l.err != nil || l.resets > 0:
			t.Errorf("%d: %v, %d resets", i, l.err, l.resets)
		case from < 0 || !slices.Equal(of.told[from:], l.told):
			t.Errorf("%d (%s%s), behind %s: %d events, from %d of %d on", i, l.coding, l.query, l.since, len(l.told), from, len(of.told))
			for j := range l.told {
				if from >= 0 && from+j < len(of.told) && l.told[j] != of.told[from+j] {
					t.Errorf("event %d is\n%.300s not\n%.300s", j, l.told[j], of.told[from+j])
					break
				}
			}
		}
	}
	t.Logf("%d events; %d streams together at most", len(alone[queries[0]].told), together)
}

// awaitLive waits until the pods' watch has proved itself. Streams that begin before are told so then, each at its own position.
func (r *running) awaitLive() {
	r.t.Helper()
	store, release, err := r.kinds.Use(apitest.Pods, "test")
	if err != nil {
		r.t.Fatal(err)
	}
	defer release()
	for deadline := time.Now().Add(patience); !store.Upstream().Live; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("pods are not live: %+v", store.Upstream())
		}
	}
}

// beatOften has the streams that are idle have a heartbeat, or put it off, every few milliseconds from now on.
func (r *running) beatOften() {
	for _, ss := range r.hub.open.all() {
		if ss.Take() {
			ss.times.interval = 20 * time.Millisecond
			ss.times.in(dueHeartbeat, 0)
			ss.beServed()
		}
	}
}

// TestMembersOfAGroupHearOfTheirSource: what a source says of itself, and what was found when it
// was back, comes to each once.
func TestMembersOfAGroupHearOfTheirSource(t *testing.T) {
	r := run(t, func(c net.Conn) net.Conn { return c })
	r.api.Put("pods", "team-a/first")
	var listening sync.WaitGroup
	all := []*listener{{query: "?labelSelector=nobody%21%3Dlike"}, {}, {}, {}, {}}
	for i, l := range all {
		l.r, l.random, l.steady = r, rand.New(rand.NewPCG(1, uint64(i))), true
		l.began, l.ended, l.stale = make(chan struct{}), make(chan struct{}), make(chan struct{})
		listening.Go(l.run)
		<-l.began
	}
	r.awaitTogether(4)
	r.api.Away(true)
	r.api.CutWatches("pods")
	for i, l := range all {
		select {
		case <-l.stale:
		case <-time.After(patience):
			t.Fatalf("%d is not told that its data is stale", i)
		}
	}
	r.api.Put("pods", "team-a/meanwhile")
	r.api.Delete("pods", "team-a/first")
	r.api.Put("pods", "team-b/meanwhile")
	r.api.Compact()
	r.api.Away(false)
	r.api.Put("pods", "team-a/last")
	r.awaitEnds(all)
	r.awaitTogether(4)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r.hub.Drain(ctx)
	listening.Wait()
	if told := strings.Join(all[0].told, ""); strings.Count(told, "event: stale\n") != 1 || strings.Count(told, "event: live\n") != 1 ||
		!strings.Contains(told, "event: deleted\n") || !strings.Contains(told, `"last"`) {
		t.Fatalf("who is alone is told: %s", told)
	}
	for i, l := range all[1:] {
		if l.err != nil || !slices.Equal(l.told, all[0].told) {
			t.Errorf("%d: %v; is told %q, not %q", i+1, l.err, l.told, all[0].told)
		}
	}
}

// awaitEnds waits until all were told what comes last.
func (r *running) awaitEnds(all []*listener) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for i, l := range all {
		select {
		case <-l.ended:
		case <-ctx.Done():
			r.t.Fatalf("%d (%s%s) was not told what came last", i, l.coding, l.query)
		}
	}
}

// awaitTogether waits until so many streams are told together, while something happens: one that
// was the first of its kind joins others at its next turn.
func (r *running) awaitTogether(n int) {
	r.t.Helper()
	for end := time.Now().Add(patience); r.hub.Stats().Together != n; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%d streams are told together, not %d", r.hub.Stats().Together, n)
		}
		r.api.Put("pods", "team-a/again", fmt.Sprint("spec.at=", time.Now().UnixNano()))
	}
}

// TestWhoIsAboutToBeIdleIsNotPassedOver: a batch comes just when a member has joined, and is not
// idle yet. Nothing else would wake it.
func TestWhoIsAboutToBeIdleIsNotPassedOver(t *testing.T) {
	r := run(t, func(c net.Conn) net.Conn { return c })
	clients := []*bufio.Reader{r.open(), r.open(), r.open()}
	r.awaitTogether(3)
	r.api.Put("pods", "team-a/first")
	for _, c := range clients {
		r.expect(c, `"name":"first"`)
	}
	var joining *session
	for _, ss := range r.hub.open.all() {
		if ss.number == 3 {
			joining = ss
		}
	}
	for !joining.Take() {
		time.Sleep(time.Millisecond)
	}
	r.api.Put("pods", "team-a/second")
	for _, c := range clients[:2] {
		r.expect(c, `"name":"second"`)
	}
	r.api.Put("pods", "team-a/third") // is read once all that came before was sent
	for _, c := range clients[:2] {
		r.expect(c, `"name":"third"`)
	}
	joining.rest()
	r.expect(clients[2], `"name":"second"`)
	r.expect(clients[2], `"name":"third"`)
}

// changedSource is not like its members any more.
type changedSource struct{ Shareable }

func (changedSource) ShareKey() any { return "changed" }

// TestWhoeverAGroupTellsStillHasItsKey: what a group has told may give its members another key than
// those who are about to join it: they know that their data is stale, say. Whoever joined it now
// would never be told that.
func TestWhoeverAGroupTellsStillHasItsKey(t *testing.T) {
	r := run(t, func(c net.Conn) net.Conn { return c })
	clients := []*bufio.Reader{r.open(), r.open()}
	r.awaitTogether(2)
	k := r.peers()
	c := k.groups[0]
	for !c.Take() {
		time.Sleep(time.Millisecond)
	}
	c.source = changedSource{c.source}
	if !c.Idle() {
		r.hub.workers.Push(c)
	}
	r.api.Put("pods", "team-a/told")
	for _, client := range clients {
		r.expect(client, `"name":"told"`)
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		k.mu.Lock()
		over := c.over
		k.mu.Unlock()
		if over {
			break
		}
		if time.Now().After(end) {
			t.Fatal("others can join it")
		}
	}
	r.api.Put("pods", "team-a/last")
	for _, client := range clients {
		r.expect(client, `"name":"last"`)
	}
}

// peers is the only one that there is.
func (r *running) peers() *peers {
	groupIndex := &r.hub.groupIndex
	groupIndex.mu.Lock()
	defer groupIndex.mu.Unlock()
	if len(groupIndex.all) != 1 {
		r.t.Fatalf("%d groupIndex", len(groupIndex.all))
	}
	for _, k := range groupIndex.all {
		return k
	}
	return nil
}

// panickingSource fails when it is read.
type panickingSource struct{ Shareable }

func (panickingSource) Read(context.Context, Sink) ReadResult { panic(apitest.SecretDetail) }

// TestPanicOfAGroupEndsNoStream: its members go on by themselves.
func TestPanicOfAGroupEndsNoStream(t *testing.T) {
	r := run(t, func(c net.Conn) net.Conn { return c })
	clients := []*bufio.Reader{r.open(), r.open(), r.open()}
	r.awaitTogether(3)
	for _, ss := range r.hub.open.all() {
		for !ss.Take() {
			time.Sleep(time.Millisecond)
		}
		for c := ss.member.group; ; time.Sleep(time.Millisecond) {
			if c.Take() {
				if _, is := c.source.(panickingSource); !is {
					c.source = panickingSource{c.source}
				}
				if !c.Idle() {
					r.hub.workers.Push(c)
				}
				break
			}
		}
		ss.rest()
	}
	r.api.Put("pods", "team-a/second")
	for _, c := range clients {
		r.expect(c, `"name":"second"`)
	}
	r.await(3, 3)
	if log := r.log(); !strings.Contains(log, "msg=panic") || !strings.Contains(log, "broadcast_group_test.go") {
		t.Errorf("the log does not say where it panicked: %s", log)
	}
}
