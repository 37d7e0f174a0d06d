package http

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/http/rest"
	"github.com/kubecast/kubecast/internal/stream"
)

// atHour is when something was made.
func atHour(hour int) string {
	return fmt.Sprintf("metadata.creationTimestamp=2000-01-01T%02d:00:00Z", hour)
}

// handedOver is a gateway to a cluster in which the namespace blue was deleted, with all in it, and
// made anew by somebody else.
type handedOver struct {
	*gateway
	before, begun, now uint64 // versions: in its first life, when the second had begun, and of what came last
}

// reassign puts something into both lives, and makes a ring hold no more than events.
func reassign(t *testing.T, events int) *handedOver {
	t.Helper()
	g := newGateway(t, cached(stream.Options{Events: events, Bytes: 1 << 20, Age: time.Hour}, "pods", "namespaces"))
	g.watches("pods", 1)
	g.watches("namespaces", 1)
	g.api.Put("namespaces", "blue", atHour(1), "metadata.annotations.owner=former")
	g.api.Put("namespaces", "red", atHour(1))
	h := &handedOver{gateway: g, before: g.api.Put("pods", "red/other", atHour(2))}
	g.api.Put("pods", "blue/former", atHour(2), "spec.secret=1")
	g.api.Put("pods", "blue/former", atHour(2), "spec.secret=2")
	g.api.Put("pods", "blue/former-too", atHour(2))
	g.api.Delete("pods", "blue/former", "blue/former-too")
	g.api.Delete("namespaces", "blue")
	h.begun = g.api.Put("namespaces", "blue", atHour(3))
	g.api.Put("pods", "blue/own", atHour(4))
	g.api.Put("pods", "blue/short", atHour(4))
	g.api.Delete("pods", "blue/short")
	for range 10 {
		g.api.Put("pods", "red/other", atHour(2))
		h.now = g.api.Put("namespaces", "red", atHour(1))
	}
	h.now = g.api.Put("pods", "red/other", atHour(2))
	g.get(fmt.Sprintf("/api/v1/pods?limit=1&resourceVersion=%d", h.now)) // waits for it
	g.get(fmt.Sprintf("/api/v1/namespaces?limit=1&resourceVersion=%d", h.now-1))
	g.access.permit("mallory", in("blue"))
	g.access.permit("eve", auth.Scope{Names: map[string][]string{"blue": {"former", "former-too", "own", "short"}}})
	g.access.permit("trudy", in("blue", "red"))
	g.access.permit("carol", auth.Scope{Names: map[string][]string{"": {"former", "own"}}})
	return h
}

// toldAll reads a stream until a last event, and returns what it was told.
func toldAll(s *events, last string) (all []string, text string) {
	for {
		f := s.event()
		if text += f.raw; f.event != "narrowed" {
			all = append(all, f.String())
		}
		if f.String() == last {
			return all, text
		}
	}
}

// A namespace is deleted, and somebody else makes one of the same name. Who may see that one only,
// and goes on from a position before it, is told nothing of what was in the former one: neither
// from the ring nor from what the API server still knows.
func TestReplayOfANamespaceIsNotItsNextTenants(t *testing.T) {
	for _, events := range []int{1000, 4} {
		h := reassign(t, events)
		for user, paths := range map[string][]string{
			"mallory": {"/api/v1/pods", "/api/v1/namespaces/blue/pods"},
			"eve":     {"/api/v1/pods", "/api/v1/namespaces/blue/pods"},
			"trudy":   {"/api/v1/pods?fieldSelector=metadata.namespace%3Dblue", "/api/v1/namespaces/blue/pods"},
		} {
			as := "Authorization: Bearer " + user
			for _, path := range paths {
				fresh := h.stream(path, as)
				fresh.until("synced")
				// The position of a stream that was open in the first life; or one that somebody
				// makes of another of their own.
				position := strings.Replace(fresh.lastID, fmt.Sprint(h.now), fmt.Sprint(h.before), 1)
				fresh.close()
				for _, from := range [][2]string{
					{path, "Last-Event-ID: " + position},
					{withQuery(path, fmt.Sprintf("resourceVersion=%d", h.before)), as},
					{withQuery(path, fmt.Sprintf("deltas=merge-patch&conflate=1s&resourceVersion=%d", h.before)), as},
				} {
					s := h.stream(from[0], as, from[1])
					all, text := toldAll(s, "synced")
					if got := strings.Join(all, ", "); got != "reset expired, added own, synced" || strings.Contains(text, `"name":"former`) {
						t.Errorf("%d events: %s is told of the former tenant by %v: %s", events, user, from, text)
					}
					s.close()
				}
				s := h.stream("/stream?a="+escape(path), as, "Last-Event-ID: "+strings.Replace(position, ".", ".a-", 1))
				if all, text := toldAll(s, "a.synced"); strings.Contains(text, `"name":"former`) || !strings.Contains(text, "a.reset") {
					t.Errorf("%d events: %s is told on a stream of several: %v", events, user, all)
				}
				s.close()
				w := h.watch(withQuery(path, fmt.Sprintf("watch=true&resourceVersion=%d", h.before)), as)
				w.expect("ERROR 410")
				w.end()
				// What has happened since the second life began is told as it happened.
				w = h.watch(withQuery(path, fmt.Sprintf("watch=true&resourceVersion=%d", h.begun)), as)
				w.expect("ADDED own", "ADDED short", "DELETED short")
				w.close()
			}
		}
		for _, path := range []string{"/api/v1/namespaces", "/api/v1/namespaces/blue"} {
			w := h.watch(withQuery(path, fmt.Sprintf("watch=true&resourceVersion=%d", h.before)), "Authorization: Bearer mallory")
			w.expect("ERROR 410")
			w.end()
			w = h.watch(withQuery(path, fmt.Sprintf("watch=true&resourceVersion=%d", h.before)))
			w.expect("DELETED blue", "ADDED blue")
			w.close()
		}
		// Who may see all namespaces is told all of it, also in this one; and who may see a name in all of them.
		for _, path := range []string{"/api/v1/pods?fieldSelector=metadata.namespace%3Dblue", "/api/v1/namespaces/blue/pods"} {
			w := h.watch(withQuery(path, fmt.Sprintf("watch=true&resourceVersion=%d", h.before)))
			w.expect("ADDED former", "MODIFIED former", "ADDED former-too", "DELETED former", "DELETED former-too", "ADDED own", "ADDED short", "DELETED short")
			w.close()
		}
		w := h.watch(fmt.Sprintf("/api/v1/pods?watch=true&resourceVersion=%d", h.before), "Authorization: Bearer carol")
		w.expect("ADDED former", "MODIFIED former", "DELETED former", "ADDED own")
		w.close()
	}
}

func withQuery(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}
	return path + "?" + query
}

// As long as nobody can say which namespace lives, who may see that one only begins anew, and so
// does whoever may see one that is gone. What became of objects that are there still needs no
// question.
func TestReplayThatNobodyCanSayWhoseItIsBeginsAnew(t *testing.T) {
	h := reassign(t, 1000)
	path := "/api/v1/namespaces/blue/pods"
	since := fmt.Sprintf("?watch=true&resourceVersion=%d", h.begun)
	for _, code := range []int{403, 404, 500} {
		h.api.Intercept(func(r *http.Request) *apitest.Fault {
			if r.URL.Path == "/api/v1/namespaces/blue" {
				return apitest.Refuse(code)
			}
			return nil
		})
		w := h.watch(path+since, "Authorization: Bearer mallory")
		w.expect("ERROR 410")
		w.end()
		version := h.api.Put("pods", "blue/own", atHour(4))
		h.get(fmt.Sprintf("%s?resourceVersion=%d", path, version))
		w = h.watch(fmt.Sprintf("%s?watch=true&resourceVersion=%d", path, version-1), "Authorization: Bearer mallory")
		w.expect("MODIFIED own")
		w.close()
		w = h.watch(path + since)
		w.expect("ADDED own", "ADDED short", "DELETED short")
		w.close()
	}
	h.api.Intercept(nil)
	w := h.watch(path+since, "Authorization: Bearer mallory")
	w.expect("ADDED own", "ADDED short", "DELETED short")
	w.close()
}

// Whoever is connected while their namespace is made anew is told all that happens, and no reset.
func TestStreamGoesOnInANamespaceThatIsMadeAnew(t *testing.T) {
	g := newGateway(t, cached(streamOptions(), "pods"))
	g.api.Put("namespaces", "blue", atHour(1))
	g.api.Put("pods", "blue/one", atHour(2))
	g.access.permit("mallory", in("blue"))
	var streams []*events
	for range 3 { // some of them are told together
		for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/blue/pods"} {
			s := g.stream(path, "Authorization: Bearer mallory")
			s.until("synced")
			streams = append(streams, s)
		}
	}
	g.api.Delete("pods", "blue/one")
	g.api.Delete("namespaces", "blue")
	g.api.Put("namespaces", "blue", atHour(3))
	g.api.Put("pods", "blue/two", atHour(4))
	g.api.Delete("pods", "blue/two")
	for _, s := range streams {
		s.expect("deleted one", "added two", "deleted two")
	}
}

// Lists of a version that was kept, and pages that go on in one, show nothing of a former
// namespace, whoever it was kept for.
func TestKeptSnapshotsOfANamespaceAreNotItsNextTenants(t *testing.T) {
	g := newGateway(t, cached(streamOptions(), "pods"))
	g.api.Put("namespaces", "blue", atHour(1))
	g.api.Put("pods", "blue/former", atHour(2), "spec.secret=1")
	g.api.Put("pods", "blue/former-too", atHour(2))
	version := g.api.Put("pods", "red/other", atHour(2))
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/blue/pods"} {
		g.get(fmt.Sprintf("%s?limit=1&resourceVersion=%d", path, version)) // which is kept
	}
	g.api.Delete("pods", "blue/former", "blue/former-too")
	g.api.Delete("namespaces", "blue")
	g.api.Put("namespaces", "blue", atHour(3))
	g.api.Put("pods", "blue/own", atHour(4))
	now := g.api.Put("pods", "blue/own-too", atHour(4))
	g.get(fmt.Sprintf("/api/v1/pods?resourceVersion=%d", now))
	exactly := fmt.Sprintf("?resourceVersionMatch=Exact&resourceVersion=%d", version)
	g.access.permit("mallory", in("blue"))
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/blue/pods"} {
		as := "Authorization: Bearer mallory"
		if a := g.get(path+exactly, as); a.code != 410 || strings.Contains(a.body, "former") {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
		if a := g.get(path + exactly); a.code != 200 || !strings.Contains(a.body, "former-too") {
			t.Errorf("%s of who may see all: %d %s", path, a.code, a.body)
		}
		page := g.get(path+"?limit=1", as)
		if page.code != 200 {
			t.Fatalf("%d %s", page.code, page.body)
		}
		token := continueOf(t, page.body)
		token.Version, token.Namespace, token.Name = version, "blue", "a"
		if a := g.get(path+"?limit=1&continue="+token.Encode(), as); a.code != 410 || strings.Contains(a.body, "former") {
			t.Errorf("%s, a page that goes on: %d %s", path, a.code, a.body)
		}
	}
	// Of one's own namespace, what was kept remains to be had.
	g.api.Delete("pods", "blue/own")
	own := fmt.Sprintf("?resourceVersionMatch=Exact&resourceVersion=%d", now)
	g.eventually("the pod is gone", func() bool { return !strings.Contains(g.get("/api/v1/pods").body, `"own"`) })
	if a := g.get("/api/v1/pods"+own, "Authorization: Bearer mallory"); a.code != 200 || !strings.Contains(a.body, `"own"`) {
		t.Errorf("%d %s", a.code, a.body)
	}
}

func continueOf(t *testing.T, list string) (token rest.Token) {
	t.Helper()
	var body struct{ Metadata struct{ Continue string } }
	if err := json.NewDecoder(strings.NewReader(list)).Decode(&body); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	text, err := base64.RawURLEncoding.DecodeString(body.Metadata.Continue)
	if err == nil {
		err = json.Unmarshal(text, &token)
	}
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	return token
}
