package http

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
)

// namesIn are the names of the objects of a list.
func namesIn(t *testing.T, a answer) (names []string) {
	t.Helper()
	var l list
	if err := json.Unmarshal([]byte(a.body), &l); err != nil || a.code != 200 {
		t.Fatalf("%v: %d %s", err, a.code, a.body)
	}
	return l.names()
}

// TestTheRestOfARevisionIsToldThoughItIsLate: what deletes several objects may come in parts, with
// any time in between. What has the first part is at the version of all of it.
func TestTheRestOfARevisionIsToldThoughItIsLate(t *testing.T) {
	inBubble(t, func(t *testing.T, g *gateway) {
		for n := range 6 {
			g.api.Put("pods", fmt.Sprintf("a/%d", n), "status.phase=Running")
		}
		const page, counts = "/api/v1/pods?limit=5", "/api/v1/pods?countBy=status.phase"
		onPage, counted := g.stream(page), g.stream(counts)
		onPage.until("page")
		counted.until("counts")
		pass(time.Second)
		part := 0
		var walk, id string
		var first answer
		version := g.api.InParts(func() {
			pass(time.Second)
			if part++; part > 1 {
				return
			}
			if f := onPage.until("page"); f.field("total") != "5" {
				t.Error(f.raw)
			} else if id = f.id; !strings.Contains(id, fmt.Sprintf(".%d-%d-", g.api.Version()-1, g.api.Version())) {
				t.Errorf("the position claims all of the version: %s", f.raw)
			}
			counted.until("counts")
			if first = g.get("/api/v1/pods"); first.header.Get("ETag") != "" {
				t.Errorf("there may be more of it, and the ETag is %s", first.header.Get("ETag"))
			}
			walk = g.list("/api/v1/pods?limit=2").Metadata.Continue
		}, func() { g.api.Delete("pods", "a/1") }, func() { g.api.Delete("pods", "a/2") }, func() { g.api.Put("pods", "a/3", "status.phase=Failed") })
		pass(time.Second)
		if f := counted.until("counts"); !strings.Contains(f.data, `"Running","count":4`) {
			t.Errorf("of the second part: %s", f.raw)
		}
		if f := counted.until("counts"); !strings.Contains(f.data, `"Running","count":3`) {
			t.Errorf("of the third part: %s", f.raw)
		}
		onPage.until("page")
		onPage.until("modified")
		back := g.stream(page, "Last-Event-ID: "+id)
		if f := back.until("page"); f.field("total") != "4" {
			t.Errorf("a page that was told the first part is resumed with %s", f.raw)
		}
		if rest := namesIn(t, g.get("/api/v1/pods?limit=9&continue="+walk)); !slices.Equal(rest, []string{"a/3", "a/4", "a/5"}) {
			t.Errorf("a walk that began with the first part, in which 2 came before, goes on with %v", rest)
		}
		if again := g.get("/api/v1/pods", "If-None-Match: "+first.header.Get("ETag")); again.code != 200 {
			t.Errorf("a list with the first part is confirmed: %d", again.code)
		}
		// A walk keeps a snapshot with the first part. It is not what there was at the version.
		exactly := fmt.Sprintf("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=%d", version)
		g.api.Put("pods", "a/new")
		pass(time.Second)
		if a := g.get(exactly); a.code != 410 {
			t.Errorf("exactly %d: %d %v", version, a.code, namesIn(t, a))
		}
	})
}

// TestWhatIsConfirmedIsWhatThereIs: a client that lists again and again, by the ETag of what it
// has, has what a client is sent that comes without. Lists of one version, of which all is asked
// for, and walks in pages are each of one state that there was.
func TestWhatIsConfirmedIsWhatThereIs(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *gateway) {
				g.access.permit("carl", auth.Scope{Namespaces: []string{"team-a"}})
				m := &pageModel{T: t, Rand: rand.New(rand.NewPCG(seed, 3)), replicas: []*gateway{g}, api: g}
				l := &lister{pageModel: m, had: map[string]answer{}, walks: map[string]*walk{}}
				for range 20 {
					m.put(fmt.Sprintf("team-%c/pod-%d", 'a'+rune(m.IntN(3)), m.IntN(12)))
				}
				pass(time.Second)
				for range 150 {
					keys := g.api.Keys("pods")
					if m.IntN(4) > 0 || len(keys) < 4 {
						m.put(fmt.Sprintf("team-%c/pod-%d", 'a'+rune(m.IntN(3)), m.IntN(12)))
					} else {
						m.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
						changes := []func(){func() { g.api.Delete("pods", keys[0]) }, func() { g.api.Delete("pods", keys[1]) }, func() { m.put(keys[2]) }}
						m.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
						g.api.InParts(l.look, changes[:1+m.IntN(3)]...)
					}
					if m.IntN(10) == 0 {
						g.api.Skip(1)
						g.api.Bookmark()
					}
					l.look()
				}
				if l.confirmed < 50 || l.exact < 10 || l.walked < 10 {
					t.Errorf("only %d lists were confirmed, %d were of a version, and %d were walked", l.confirmed, l.exact, l.walked)
				}
			})
		})
	}
}

// lister lists what a pageModel has.
type lister struct {
	*pageModel
	had                      map[string]answer
	walks                    map[string]*walk
	confirmed, exact, walked int
}

// walk is a list that is read in pages.
type walk struct {
	version, next string
	names         []string
}

func (l *lister) look() {
	pass(time.Duration(l.IntN(300)) * time.Millisecond)
	synctest.Wait()
	for _, user := range []string{"alice", "carl"} {
		as := "Authorization: Bearer " + user
		for _, path := range []string{
			"/api/v1/pods", "/api/v1/namespaces/team-a/pods", "/api/v1/pods?sort=-spec.n", "/api/v1/namespaces/team-a/pods?countBy=status.phase",
			"/api/v1/namespaces/team-a/pods?labelSelector=app%3Dweb&fields=status",
		} {
			had := l.had[user+path]
			now := l.api.get(path, as)
			if tag := had.header.Get("ETag"); tag != "" {
				if again := l.api.get(path, as, "If-None-Match: "+tag); again.code == 304 {
					l.confirmed++
					if l.content(now) != l.content(had) {
						l.Fatalf("%s of %s is confirmed by %s, though it was %s and is %s", path, user, tag, had.body, now.body)
					}
				}
			}
			l.had[user+path] = now
		}
		l.walk(user, as)
		version := l.api.api.Version() - uint64(l.IntN(3))
		a := l.api.get(fmt.Sprintf("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=%d", version), as)
		if a.code == 410 {
			continue
		}
		l.exact++
		if got, want := namesIn(l.T, a), l.namesAt(user, l.api.api.At("pods", version)); !slices.Equal(got, want) {
			l.Fatalf("%s is shown exactly %d: %v, not %v", user, version, got, want)
		}
	}
}

// content is a list without its version.
func (l *lister) content(a answer) string {
	var body map[string]any
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		l.Fatal(err, a.body)
	}
	delete(body, "metadata")
	delete(body, "resourceVersion")
	text, err := json.Marshal(body)
	if err != nil {
		l.Fatal(err)
	}
	return string(text)
}

// walk reads one more page, or begins anew.
func (l *lister) walk(user, as string) {
	w := l.walks[user]
	if w == nil {
		w = &walk{}
		l.walks[user] = w
	}
	a := l.api.get("/api/v1/pods?limit=7&continue="+w.next, as)
	if a.code == 410 {
		delete(l.walks, user)
		return
	}
	var page list
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.code != 200 {
		l.Fatal(err, a.body)
	}
	w.names, w.next, w.version = append(w.names, page.names()...), page.Metadata.Continue, page.Metadata.ResourceVersion
	if w.next != "" {
		return
	}
	delete(l.walks, user)
	l.walked++
	var version uint64
	if _, err := fmt.Sscan(w.version, &version); err != nil {
		l.Fatal(err)
	}
	for _, objects := range l.api.api.States("pods", version) {
		if slices.Equal(w.names, l.namesAt(user, objects)) {
			return
		}
	}
	l.Fatalf("%s walks over %v at %d, which there never was", user, w.names, version)
}

func (l *lister) namesAt(user string, objects map[string]string) (names []string) {
	for key := range objects {
		if user != "carl" || strings.HasPrefix(key, "team-a/") {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	return names
}
