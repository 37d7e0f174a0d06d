package shards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/kubecast/kubecast/internal/cores"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// change is one of a history: an object as it was made, changed or, with gone, deleted.
type change struct {
	version   int
	name, uid string
	gone      bool
}

func (c change) object() string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"a","uid":%q,"resourceVersion":"%d"}}`, c.name, c.uid, c.version)
}

// fleet are cores of shards: each knows the history up to a version of its own.
type fleet struct {
	t *testing.T
	n int

	mu      sync.Mutex
	wake    chan struct{} // closed when something changes
	history []change
	knows   []int  // by shard
	quiet   []bool // by shard: it tells no bookmarks
	away    []bool // by shard
	broken  []int  // by shard, how often its watches were broken off
	epochs  []string
	serves  []string // by shard, which one it says that it is; "": it has all
}

func newFleet(t *testing.T, n int) *fleet {
	f := &fleet{t: t, n: n, wake: make(chan struct{}), knows: make([]int, n), quiet: make([]bool, n), away: make([]bool, n), broken: make([]int, n), epochs: make([]string, n), serves: make([]string, n)}
	for k := range n {
		f.serves[k], f.epochs[k] = Shard{k + 1, n}.String(), "epoch"
	}
	return f
}

func (f *fleet) change(by func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	by()
	close(f.wake)
	f.wake = make(chan struct{})
}

// stateAt is what a shard has at a version, by name.
func (f *fleet) stateAt(shard Shard, version int) map[string]change {
	state := map[string]change{}
	for _, c := range f.history {
		switch {
		case c.version > version || !shard.Has(c.uid):
		case c.gone:
			delete(state, c.name)
		default:
			state[c.name] = c
		}
	}
	return state
}

func (f *fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	k, err := strconv.Atoi(strings.TrimPrefix(r.URL.Host, "core"))
	if err != nil {
		return nil, err
	}
	k = (k - 1) % f.n
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away[k] {
		return nil, errors.New("connection refused")
	}
	shard := Shard{}
	if f.serves[k] != "" {
		number, of, _ := strings.Cut(f.serves[k], "/")
		shard.Number, _ = strconv.Atoi(number)
		shard.Of, _ = strconv.Atoi(of)
	}
	response := &http.Response{StatusCode: 200, Header: http.Header{cores.HistoryHeader: {f.epochs[k]}}, Request: r}
	if shard.Is() {
		response.Header.Set(Header, shard.String())
	}
	query := r.URL.Query()
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	if query.Get("watch") == "" {
		f.knows[k] = max(f.knows[k], from)
		f.wakeAll()
		response.Body = io.NopCloser(strings.NewReader(f.list(shard, f.knows[k], query.Get("limit"))))
		return response, nil
	}
	reader, writer := io.Pipe()
	response.Body = reader
	go func() { writer.CloseWithError(f.watch(r.Context(), k, shard, from, writer)) }()
	return response, nil
}

func (f *fleet) wakeAll() {
	close(f.wake)
	f.wake = make(chan struct{})
}

func (f *fleet) list(shard Shard, version int, limit string) string {
	var items []string
	for _, c := range f.stateAt(shard, version) {
		items = append(items, c.object())
	}
	more := ""
	if most, err := strconv.Atoi(limit); err == nil && most < len(items) {
		items, more = items[:most], `,"continue":"more"`
	}
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"%s},"items":[%s]}`, version, more, strings.Join(items, ","))
}

func (f *fleet) watch(ctx context.Context, k int, shard Shard, from int, to io.Writer) error {
	f.mu.Lock()
	broken := f.broken[k]
	f.mu.Unlock()
	for passed, marked := from, from; ; {
		f.mu.Lock()
		wake, knows, quiet, over := f.wake, f.knows[k], f.quiet[k], f.broken[k] != broken
		var lines []string
		for _, c := range f.history {
			if c.version <= passed || c.version > knows || !shard.Has(c.uid) {
				continue
			}
			kind := "MODIFIED"
			if c.gone {
				kind = "DELETED"
			}
			lines = append(lines, fmt.Sprintf(`{"type":%q,"object":%s}`, kind, c.object()))
		}
		if !quiet && knows > marked {
			lines, marked = append(lines, fmt.Sprintf(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}`, knows)), knows
		}
		passed = max(passed, knows)
		f.mu.Unlock()
		for _, line := range lines {
			if _, err := io.WriteString(to, line+"\n"); err != nil {
				return err
			}
		}
		if over {
			return errors.New("connection reset by peer")
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *fleet) client(t *testing.T) *http.Client {
	t.Helper()
	var addresses []string
	for k := range f.n {
		addresses = append(addresses, fmt.Sprintf("https://core%d/clusters/default", k+1))
	}
	m, err := NewMerge(addresses, f.n)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: m.Wrap(f)}
}

const pods = "https://core1/clusters/default/api/v1/pods"

func get(t *testing.T, client *http.Client, query url.Values) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, pods+"?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func readAll(t *testing.T, r *http.Response) string {
	t.Helper()
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func watchFrom(t *testing.T, client *http.Client, version uint64) (*decoder, io.Closer) {
	t.Helper()
	response := get(t, client, url.Values{"watch": {"true"}, "resourceVersion": {fmt.Sprint(version)}, "allowWatchBookmarks": {"true"}})
	if response.StatusCode != 200 {
		t.Fatalf("the watch is answered with %d %s", response.StatusCode, readAll(t, response))
	}
	return newDecoder(response.Body), response.Body
}

// inShard is a uid that a shard has.
func inShard(s Shard) string {
	for i := 0; ; i++ {
		if uid := fmt.Sprintf("uid-%d", i); s.Has(uid) {
			return uid
		}
	}
}

// A pod that is deleted and made anew has another uid, which may be in another shard. Told as they arrive, its making may come before its
// deletion, and it would be lost.
func TestAnObjectMadeAnewInAnotherShardIsNotLost(t *testing.T) {
	first, second := Shard{1, 2}, Shard{2, 2}
	f := newFleet(t, 2)
	f.history, f.knows = []change{{5, "web", inShard(first), false}}, []int{5, 5}
	watch, end := watchFrom(t, f.client(t), 5)
	defer end.Close()
	f.change(func() {
		f.quiet[0] = true
		f.history = append(f.history, change{7, "web", inShard(first), true}, change{8, "web", inShard(second), false})
		f.knows[1] = 8 // the other one is behind
	})
	f.change(func() { f.quiet[0], f.knows[0] = false, 8 })
	var told []string
	for len(told) < 2 {
		e, err := watch.next()
		if err != nil {
			t.Fatal(err)
		}
		if e.kind != "BOOKMARK" {
			told = append(told, fmt.Sprint(e.kind, e.version))
		}
	}
	if !slices.Equal(told, []string{"DELETED7", "MODIFIED8"}) {
		t.Errorf("%q were told", told)
	}
}

// A shard in which nothing happens says nothing of how far it has come. It is asked, or events of others would wait a minute.
func TestAQuietShardIsAskedHowFarItIs(t *testing.T) {
	f := newFleet(t, 2)
	f.knows = []int{5, 5}
	watch, end := watchFrom(t, f.client(t), 5)
	defer end.Close()
	f.change(func() { f.history, f.knows[0] = append(f.history, change{9, "web", inShard(Shard{1, 2}), false}), 9 })
	for {
		e, err := watch.next()
		if err != nil {
			t.Fatal(err)
		}
		if e.kind == "MODIFIED" && e.version == 9 {
			return
		}
	}
}

// What the shards list is of different versions. The union of that never was, and a watch from the newest of them would miss what the others
// had not come to.
func TestListsOfDifferentVersionsMakeOneVersion(t *testing.T) {
	one, other := inShard(Shard{1, 2}), inShard(Shard{2, 2})
	f := newFleet(t, 2)
	f.history = []change{{3, "gone", one, false}, {4, "kept", one, false}, {6, "moved", one, false}, {7, "gone", one, true}, {8, "late", one, false}, {8, "moved", one, true}, {9, "moved", other, false}}
	f.knows = []int{6, 9}
	body := gjson.Parse(readAll(t, get(t, f.client(t), nil)))
	var names []string
	body.Get("items").ForEach(func(_, item gjson.Result) bool {
		names = append(names, item.Get("metadata.name").Str+item.Get("metadata.resourceVersion").Str)
		return true
	})
	if version := body.Get("metadata.resourceVersion").Str; version != "9" || !slices.Equal(names, []string{"kept4", "late8", "moved9"}) {
		t.Errorf("at version %s: %q", version, names)
	}
}

// A gateway asks for pages where a whole list takes long, and for one object where it wants to know the newest version.
func TestAListOfShardsIsWholeWhateverPageIsAskedFor(t *testing.T) {
	f := newFleet(t, 2)
	for i, shard := range []Shard{{1, 2}, {1, 2}, {2, 2}, {2, 2}} {
		f.history = append(f.history, change{i + 1, fmt.Sprint("pod-", i), inShard(shard), false})
	}
	f.knows = []int{4, 4}
	for limit, least := range map[string]int64{"": 4, "0": 4, "2": 4, "500": 4, "1": 0} {
		body := readAll(t, get(t, f.client(t), url.Values{"limit": {limit}}))
		list := gjson.GetMany(body, "items.#", "metadata.resourceVersion", "metadata.continue")
		if list[0].Int() < least || list[1].Str != "4" || list[2].Str != "" {
			t.Errorf("limit %s: %s", limit, body)
		}
	}
}

// What does not fit together is no answer: half of the objects, or some twice.
func TestShardsThatDoNotFitTogetherAreNoAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		break_ func(*fleet)
		want   string
	}{
		"both are the first":           {func(f *fleet) { f.serves[1] = "1/2" }, "answers as shard 1/2"},
		"one is of three":              {func(f *fleet) { f.serves[1] = "2/3" }, "answers as shard 2/3"},
		"they tell of other histories": {func(f *fleet) { f.epochs[1] = "other" }, "different histories"},
		"one is away":                  {func(f *fleet) { f.away[1] = true }, "connection refused"},
		"the first is away":            {func(f *fleet) { f.away[0] = true }, "connection refused"},
	} {
		for _, watch := range []string{"", "true"} {
			t.Run(name+" "+watch, func(t *testing.T) {
				f := newFleet(t, 2)
				f.history, f.knows = []change{{5, "web", inShard(Shard{1, 2}), false}}, []int{5, 5}
				test.break_(f)
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, pods+"?"+url.Values{"watch": {watch}, "resourceVersion": {"5"}}.Encode(), nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := f.client(t).Do(request)
				text := fmt.Sprint(err)
				if err == nil {
					text = readAll(t, response)
				}
				if err == nil && response.StatusCode != 503 || !strings.Contains(text, test.want) {
					t.Errorf("%v %s", response, text)
				}
			})
		}
	}
}

// bodies answer the watches of shards with texts, or nothing more where a text has no end.
type bodies []string

func (b bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	k, err := strconv.Atoi(strings.TrimPrefix(r.URL.Host, "core"))
	if err != nil {
		return nil, err
	}
	response := &http.Response{StatusCode: 200, Header: http.Header{Header: {Shard{k, len(b)}.String()}}, Request: r, Body: http.NoBody}
	if !isTrue(r.URL.Query().Get("watch")) {
		return response, nil
	}
	text, open := strings.CutSuffix(b[k-1], "…")
	if !open {
		response.Body = io.NopCloser(strings.NewReader(text))
		return response, nil
	}
	reader, writer := io.Pipe()
	response.Body = reader
	go func() {
		_, _ = io.WriteString(writer, text)
		<-r.Context().Done()
		writer.CloseWithError(r.Context().Err())
	}()
	return response, nil
}

func pod(version int) string {
	return fmt.Sprintf(`{"type":"MODIFIED","object":%s}`+"\n", change{version: version, name: fmt.Sprint("pod-", version)}.object())
}

// A watch ends in good order only if all that came was told: else whoever asks what follows a version would take its end for an answer. And a
// version that goes back, as after a restore of etcd, is passed on to nobody: it would be taken for one of a new history, or for nothing new.
func TestAMergedWatchEndsInGoodOrderOnlyIfAllWasTold(t *testing.T) {
	for name, test := range map[string]struct {
		shards bodies
		told   []uint64
		end    string
	}{
		"all was told":           {bodies{pod(6) + "…", `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6"}}}`}, []uint64{6}, "EOF"},
		"one event is left":      {bodies{pod(6) + pod(8) + "…", pod(7)}, []uint64{6, 7}, errHeld.Error()},
		"a version goes back":    {bodies{pod(8) + "…", pod(9) + pod(6) + "…"}, []uint64{8}, "told version 6 behind 9"},
		"older than the watch":   {bodies{pod(4) + "…", "…"}, nil, "told version 4 behind 5"},
		"an event without sense": {bodies{"{}…", "…"}, nil, "the version of a watch's event"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := NewMerge([]string{"https://core1/clusters/default", "https://core2/clusters/default"}, 2)
			if err != nil {
				t.Fatal(err)
			}
			watch, end := watchFrom(t, &http.Client{Transport: m.Wrap(test.shards)}, 5)
			defer end.Close()
			var told []uint64
			for {
				e, err := watch.next()
				if err != nil {
					if !strings.Contains(err.Error(), test.end) {
						t.Errorf("it ends with %v", err)
					}
					break
				}
				if e.kind != "BOOKMARK" {
					told = append(told, e.version)
				}
			}
			// In which order the shards are read is not given, so less may have been told than could be.
			if len(told) > len(test.told) || !slices.Equal(told, test.told[:len(told)]) {
				t.Errorf("%d were told", told)
			}
		})
	}
}

// A kind that is not divided each core has whole. One of them is enough, also while another one is away.
func TestAKindThatIsNotDividedIsAnsweredByAnyCore(t *testing.T) {
	for away := range 2 {
		f := newFleet(t, 2)
		f.history, f.knows, f.serves = []change{{5, "web", inShard(Shard{1, 2}), false}, {6, "db", inShard(Shard{2, 2}), false}}, []int{6, 6}, []string{"", ""}
		f.away[away] = true
		if body := readAll(t, get(t, f.client(t), nil)); gjson.Get(body, "items.#").Int() != 2 {
			t.Errorf("%d is away: %s", away, body)
		}
	}
}

// Whatever happens in which order, whoever follows the merged watch has the state at each version that it claims, goes on after each end from
// what it was told, and is told no older version behind a newer one.
func TestClientsOfShardsEndWithTheState(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 8 {
		n := 2 + round%3
		f := newFleet(t, n)
		client := f.client(t)
		for k := range n {
			f.knows[k] = 10
		}
		done := make(chan int, 1)
		go func() {
			version, names := 10, map[string]string{}
			for range 400 {
				f.change(func() {
					if random.IntN(3) > 0 {
						version += 1 + random.IntN(3)
						for range 1 + random.IntN(2)*random.IntN(3) { // several deletions are in one revision
							name := fmt.Sprint("pod-", random.IntN(12))
							uid, lives := names[name]
							if lives && random.IntN(2) == 0 {
								f.history = append(f.history, change{version, name, uid, true})
								delete(names, name)
								continue
							}
							if len(f.history) > 0 && f.history[len(f.history)-1].version == version {
								break
							}
							if !lives {
								uid = fmt.Sprint(random.Uint64())
								names[name] = uid
							}
							f.history = append(f.history, change{version, name, uid, false})
							break
						}
					}
					k := random.IntN(n)
					f.knows[k] = min(version, f.knows[k]+random.IntN(8))
					f.quiet[k] = random.IntN(3) == 0
					if random.IntN(20) == 0 {
						f.broken[random.IntN(n)]++
					}
				})
				if random.IntN(8) == 0 {
					time.Sleep(time.Millisecond) // so that others get to run; nothing depends on it
				}
			}
			version++
			done <- version // before what is told last: nothing follows that
			f.change(func() {
				f.history = append(f.history, change{version, "last", "last", false})
				for k := range n {
					f.knows[k], f.quiet[k] = version, false
				}
			})
		}()
		var list gjson.Result
		for code := 0; code != 200; { // a watch that brings a shard's list to the others' version may be broken off, too
			response := get(t, client, nil)
			code, list = response.StatusCode, gjson.Parse(readAll(t, response))
		}
		claimed := list.Get("metadata.resourceVersion").Uint()
		state := map[string]string{}
		list.Get("items").ForEach(func(_, item gjson.Result) bool {
			state[item.Get("metadata.name").Str] = item.Get("metadata.uid").Str + " " + item.Get("metadata.resourceVersion").Str
			return true
		})
		compare := func(what string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			want := map[string]string{}
			for name, c := range f.stateAt(Shard{}, int(claimed)) {
				want[name] = fmt.Sprint(c.uid, " ", c.version)
			}
			have, _ := json.Marshal(state)
			should, _ := json.Marshal(want)
			if string(have) != string(should) {
				t.Fatalf("%s at %d: %s, and not %s", what, claimed, have, should)
			}
		}
		compare("the list")
		last, ends := -1, 0
		for from, told := claimed, claimed; last < 0 || claimed < uint64(last); {
			watch, end := watchFrom(t, client, from)
			for last < 0 || claimed < uint64(last) {
				e, err := watch.next()
				if err != nil {
					ends++
					from = told
					if told > claimed { // of the last revision more may be to come
						from = told - 1
					}
					break
				}
				if e.version < from || e.version < told && told != from+1 && e.kind != "BOOKMARK" {
					t.Fatalf("%s of version %d behind %d", e.kind, e.version, told)
				}
				o := gjson.GetBytes(e.raw, "object.metadata")
				switch e.kind {
				case "BOOKMARK":
					claimed = e.version
					compare("a bookmark")
				case "DELETED":
					delete(state, o.Get("name").Str)
				default:
					state[o.Get("name").Str] = o.Get("uid").Str + " " + o.Get("resourceVersion").Str
				}
				told = max(told, e.version)
				select {
				case last = <-done:
				default:
				}
			}
			end.Close()
			select {
			case last = <-done:
			default:
			}
		}
		t.Logf("%d shards: to version %d, with %d ends", n, claimed, ends)
	}
}
