package shards

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cores"
)

// transport is a function that answers requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// says answers a request as a core of a shard; the zero Shard: with all.
func says(r *http.Request, shard Shard, code int, body io.ReadCloser) (*http.Response, error) {
	response := &http.Response{StatusCode: code, Header: http.Header{cores.HistoryHeader: {"epoch"}}, Body: body, Request: r}
	if shard.Is() {
		response.Header.Set(Header, shard.String())
	}
	return response, nil
}

func ofText(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

func listOf(version int, items ...string) string {
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[%s]}`, version, strings.Join(items, ","))
}

// merged is a client of as many cores as are named, of two shards.
func merged(t *testing.T, answer transport, addresses ...string) *http.Client {
	t.Helper()
	m, err := NewMerge(addresses, 2)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: m.Wrap(answer)}
}

func two() []string {
	return []string{"https://core1/clusters/default", "https://core2/clusters/default"}
}

// What stands in a path is anybody's. A pod that is named as a segment of the API is asked for at each shard, or the half of them would not be
// found.
func TestNamesInAPathAreNotTakenForTheAPI(t *testing.T) {
	for _, name := range []string{"/api/v1/namespaces/clusters/pods/api", "/apis/apps/v1/namespaces/clusters/deployments/apis", "/api/v1/namespaces/api/pods/apis"} {
		asked := 0
		client := merged(t, func(r *http.Request) (*http.Response, error) {
			asked++
			if r.URL.Path != "/clusters/default"+name || r.Header.Get(Header) != fmt.Sprintf("%d/2", asked) {
				t.Errorf("%s is asked of shard %q", r.URL.Path, r.Header.Get(Header))
			}
			return says(r, Shard{asked, 2}, map[bool]int{true: 200, false: 404}[asked == 2], ofText("{}"))
		}, two()...)
		response, err := client.Get("https://core1/clusters/default" + name)
		if err != nil {
			t.Fatal(err)
		}
		if readAll(t, response); response.StatusCode != 200 || asked != 2 {
			t.Errorf("%s: %d after %d questions", name, response.StatusCode, asked)
		}
	}
	part := Share{Shard{1, 2}, func(group, resource string) bool { return resource == "pods" || resource == "apis" }}
	for path, lists := range map[string]bool{
		"/api/v1/pods": true, "/clusters/west/api/v1/namespaces/clusters/pods": true, "/clusters/api/api/v1/pods": true,
		"/api/v1/namespaces/clusters/pods/api": false, "/clusters/west/apis/apps/v1/namespaces/clusters/deployments/apis": false,
		"/api/v1/nodes": false, "/clusters/west/api/v1/nodes": false,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set(Header, "1/2")
		part.Only(http.NotFoundHandler()).ServeHTTP(w, r)
		if told := w.Header().Get(Header) != ""; told != (lists || strings.Contains(path, "pods/api")) {
			t.Errorf("%s is told to be of a part: %v", path, told)
		}
		var narrowed bool
		to := part.ToServer(transport(func(r *http.Request) (*http.Response, error) {
			narrowed = r.URL.Query().Has("shardSelector")
			return says(r, Shard{}, 200, ofText("{}"))
		}))
		if path == "/clusters/api/api/v1/pods" {
			continue // as no API server is reached
		}
		if _, err := to.RoundTrip(httptest.NewRequest(http.MethodGet, path, nil)); err != nil || narrowed != lists {
			t.Errorf("%s is narrowed: %v %v", path, narrowed, err)
		}
	}
}

// Of several cores of a shard, the one that answers the watch is asked how far it has come: another one says nothing of what the watch has
// told, which then waits for a bookmark of the API server, once a minute.
func TestTheCoreOfTheWatchIsAskedHowFarItIs(t *testing.T) {
	second := make(chan struct{})
	elsewhere, there := make(chan string, 100), make(chan struct{}, 1)
	busy := false // the first core of the second shard, for a moment
	client := merged(t, func(r *http.Request) (*http.Response, error) {
		watch, shard := isTrue(r.URL.Query().Get("watch")), Shard{1, 2}
		if r.URL.Host == "core2" || r.URL.Host == "core4" {
			shard.Number = 2
		}
		switch {
		case r.URL.Query().Get("resourceVersionMatch") != "":
			if r.URL.Host == "core2" {
				select {
				case there <- struct{}{}:
				default:
				}
			} else {
				elsewhere <- r.URL.Host
			}
			return says(r, shard, 200, ofText(listOf(9)))
		case busy && r.URL.Host == "core2":
			return says(r, shard, 429, http.NoBody)
		case !watch:
			return says(r, shard, 200, ofText(listOf(5)))
		}
		reader, writer := io.Pipe()
		go func() {
			if shard.Number == 1 {
				<-second
				_, _ = io.WriteString(writer, pod(9))
			} else {
				select {
				case <-there:
					_, _ = io.WriteString(writer, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`+"\n")
				case <-r.Context().Done():
				}
			}
			<-r.Context().Done()
			writer.CloseWithError(r.Context().Err())
		}()
		return says(r, shard, 200, reader)
	}, "https://core1/clusters/default", "https://core2/clusters/default", "https://core3/clusters/default", "https://core4/clusters/default")
	watch, end := watchFrom(t, client, 5)
	defer end.Close()
	busy = true
	readAll(t, get(t, client, nil)) // from now on others are answered by the fourth core
	close(second)
	told := make(chan error, 1)
	go func() {
		e, err := watch.next()
		if err == nil && e.version != 9 {
			err = fmt.Errorf("version %d was told", e.version)
		}
		told <- err
	}()
	select {
	case err := <-told:
		if err != nil {
			t.Error(err)
		}
	case host := <-elsewhere:
		t.Errorf("%s was asked, which does not answer the watch", host)
	}
}

// A core that has another shard than it should keeps nobody from the other core of that shard, nor from what each core has whole.
func TestACoreOfAnotherShardTakesNobodyAway(t *testing.T) {
	for name, test := range map[string]struct {
		cores   []string
		divided bool
		code    int
	}{
		"another core of the shard": {append(two(), "https://core3/clusters/default", "https://core4/clusters/default"), true, 200},
		"no other core":             {two(), true, 503},
		"a kind that each has":      {two(), false, 200},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(r *http.Request) (*http.Response, error) {
				shard := Shard{1, 2}
				if r.URL.Host == "core2" || r.URL.Host == "core4" {
					shard.Number = 2
				}
				if r.URL.Host == "core1" { // it was started with another number
					return says(r, Shard{}, http.StatusMisdirectedRequest, ofText("{}"))
				}
				if !test.divided {
					shard = Shard{}
				}
				return says(r, shard, 200, ofText(listOf(5)))
			}
			for range 2 {
				response := get(t, merged(t, answer, test.cores...), nil)
				if body := readAll(t, response); response.StatusCode != test.code {
					t.Errorf("%d %s", response.StatusCode, body)
				}
			}
			response, err := merged(t, answer, test.cores...).Get("https://core1/clusters/default/version")
			if err != nil {
				t.Fatal(err)
			}
			if readAll(t, response); response.StatusCode != 200 {
				t.Errorf("what any core answers is answered with %d", response.StatusCode)
			}
		})
	}
}

// That an object is not there is known by one core that has all of its kind, also while another core is away. A part of the kind says nothing.
func TestOneCoreKnowsThatAnObjectOfAWholeKindIsNotThere(t *testing.T) {
	for _, test := range []struct {
		shard Shard
		code  int
	}{{Shard{}, 404}, {Shard{1, 2}, 503}} {
		client := merged(t, func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "core2" {
				return nil, errors.New("connection refused")
			}
			return says(r, test.shard, 404, ofText("{}"))
		}, two()...)
		response, err := client.Get("https://core1/clusters/default/api/v1/namespaces/gone")
		if err != nil {
			t.Fatal(err)
		}
		if readAll(t, response); response.StatusCode != test.code {
			t.Errorf("of shard %s: %d", test.shard, response.StatusCode)
		}
	}
}

// taken is a body that goes on only once another one was read: a core cuts whoever takes nothing of its list for long.
type taken struct {
	text  io.Reader
	after <-chan struct{}
	read  chan struct{}
}

func (b *taken) Read(to []byte) (int, error) {
	select {
	case <-b.read:
	default:
		close(b.read)
	}
	<-b.after
	return b.text.Read(to)
}

func (*taken) Close() error { return nil }

// The list of a core is read while that of another one takes long.
func TestListsOfShardsAreReadBesideEachOther(t *testing.T) {
	read := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	m, err := NewMerge([]string{"https://core1/clusters/default", "https://core2/clusters/default", "https://core3/clusters/default"}, 3)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: m.Wrap(transport(func(r *http.Request) (*http.Response, error) {
		k := int(r.URL.Host[4] - '1')
		if k == 2 { // it does not even answer before the others are read
			for _, other := range read[:2] {
				select {
				case <-other:
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			}
			close(read[2])
		}
		return says(r, Shard{k + 1, 3}, 200, &taken{strings.NewReader(listOf(5)), read[(k+1)%3], read[k]})
	}))}
	if body := readAll(t, get(t, client, nil)); gjson.Get(body, "metadata.resourceVersion").Str != "5" {
		t.Error(body)
	}
}

// A shard that tells much more at once than may wait for others, as when it catches up, is told to the end. A watch that broke off instead would
// come to the same place again.
func TestWhatIsMoreThanMayWaitIsToldToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events, held = 100, 10 << 10
		m, err := NewMerge(two(), 2)
		if err != nil {
			t.Fatal(err)
		}
		m.held = held
		client := &http.Client{Transport: m.Wrap(transport(func(r *http.Request) (*http.Response, error) {
			shard := Shard{1, 2}
			if r.URL.Host == "core2" {
				shard.Number = 2
			}
			if !isTrue(r.URL.Query().Get("watch")) {
				return says(r, shard, 200, ofText(listOf(5)))
			}
			reader, writer := io.Pipe()
			go func() {
				if shard.Number == 2 { // it comes once the other one has sent all that is taken of it
					time.Sleep(time.Second)
					_, _ = fmt.Fprintf(writer, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}`+"\n", 10+events)
				}
				for i := 0; i < events && shard.Number == 1; i++ {
					size := 1 + i%3*held/3 // one is more than may wait at all
					if _, err := fmt.Fprintf(writer, `{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"%d"},"data":"%s"}}`+"\n", 10+i, strings.Repeat("x", size)); err != nil {
						return
					}
				}
				<-r.Context().Done()
				writer.CloseWithError(r.Context().Err())
			}()
			return says(r, shard, 200, reader)
		}))}
		watch, end := watchFrom(t, client, 5)
		defer end.Close()
		for told := 0; told < events; {
			e, err := watch.next()
			if err != nil {
				t.Fatalf("after %d events: %v", told, err)
			}
			if e.kind == "BOOKMARK" {
				continue
			}
			if e.version != uint64(10+told) {
				t.Fatalf("version %d is told", e.version)
			}
			told++
		}
	})
}

// Whoever asks by a short watch whether anything follows a version waits for a bookmark. A shard that is behind is asked for it, though no event
// waits; of a long watch it is not, or two quiet shards would ask each other without end.
func TestAShardIsAskedForABookmarkThatIsWaitedFor(t *testing.T) {
	for _, seconds := range []string{"3", "600"} {
		f := newFleet(t, 2)
		f.knows = []int{9, 5}
		response := get(t, f.client(t), url.Values{"watch": {"true"}, "resourceVersion": {"5"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {seconds}})
		watch := newDecoder(response.Body)
		brief := seconds == "3"
		if !brief {
			f.change(func() { f.history, f.knows[1] = append(f.history, change{7, "web", inShard(Shard{2, 2}), false}), 7 })
		}
		e, err := watch.next()
		if err != nil || brief && (e.kind != "BOOKMARK" || e.version != 9) || !brief && (e.kind != "MODIFIED" || e.version != 7) {
			t.Errorf("%s seconds: %s %d %v", seconds, e.kind, e.version, err)
		}
		f.mu.Lock()
		if !brief && f.knows[1] != 7 {
			t.Errorf("the quiet shard was asked for version %d", f.knows[1])
		}
		f.mu.Unlock()
		response.Body.Close()
	}
}

// A watch that ends in the middle of a line has not ended in good order.
func TestAWatchThatEndsInTheMiddleOfALineHasBrokenOff(t *testing.T) {
	line := pod(6)
	for _, cut := range []int{1, len(line) / 2, len(line) - 2} {
		watch, end := watchFrom(t, merged(t, transport(bodies{line[:cut], "…"}.RoundTrip), two()...), 5)
		if e, err := watch.next(); err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v %v", cut, e, err)
		}
		end.Close()
	}
}
