package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/cluster"
)

// documentServer is an API server that has only documents; tests change its answers.
type documentServer struct {
	mu     sync.Mutex
	answer http.HandlerFunc
	asked  int
}

func (s *documentServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked++
	answer := s.answer
	s.mu.Unlock()
	done := make(chan *http.Response, 1)
	go func() {
		recorder := httptest.NewRecorder()
		answer(recorder, r)
		done <- recorder.Result()
	}()
	select {
	case response := <-done:
		return response, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (s *documentServer) set(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *documentServer) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *documentServer) connect(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Connect(cluster.Options{Name: "test", Config: &rest.Config{Host: "http://api.test", Transport: s}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func says(body, etag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Accept"))
		if etag != "" {
			w.Header().Set("Etag", `"`+etag+`"`)
		}
		if etag != "" && r.Header.Get("If-None-Match") == `"`+etag+`"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, body)
	}
}

func TestDocumentsAreAskedForOnceASecondAndServedWhileTheClusterIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &documentServer{}
		c := api.connect(t)
		get := func(want string, asked int) *cluster.Document {
			t.Helper()
			d, err := c.Document(t.Context(), "/openapi/v2", "application/json")
			if err != nil || string(d.Body) != want || api.requests() != asked {
				t.Fatalf("%v, %v, after %d requests; not %q after %d", d, err, api.requests(), want, asked)
			}
			return d
		}
		api.set(says("one", "1"))
		first := get("one", 1)
		get("one", 1) // not asked again
		time.Sleep(time.Second)
		if again := get("one", 2); again != first { // 304
			t.Error("what is unchanged was read again")
		}
		api.set(says("two", "2"))
		time.Sleep(time.Second)
		if second := get("two", 3); second.Tag == first.Tag || second.Hash != "2" {
			t.Errorf("%+v", second)
		}
		// Another content type is another document.
		if d, err := c.Document(t.Context(), "/openapi/v2", "application/x"); err != nil || d.ContentType != "application/x" || d.Tag == get("two", 4).Tag {
			t.Errorf("%+v, %v", d, err)
		}
		api.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
		time.Sleep(time.Hour / 100)
		get("two", 5)
		get("two", 5) // not every request waits for a cluster that is away
		api.set(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		time.Sleep(time.Second)
		began := time.Now()
		get("two", 6)
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("waited %s for a cluster that hangs", waited)
		}
		time.Sleep(10 * time.Second)
		api.set(says("three", "3"))
		time.Sleep(time.Second)
		get("three", 7)
		// A document that the API server no longer has is not served from memory.
		api.set(http.NotFound)
		time.Sleep(time.Second)
		if d, err := c.Document(t.Context(), "/openapi/v2", "application/json"); !errors.Is(err, cluster.ErrNoDocument) {
			t.Errorf("%v, %v", d, err)
		}
		api.set(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		if d, err := c.Document(t.Context(), "/openapi/v2", "application/json"); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("%v, %v", d, err)
		}
	})
}

// TestDocumentsAreFresherWhileDefinitionsChange: clients look for a kind that they have just installed.
func TestDocumentsAreFresherWhileDefinitionsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &documentServer{}
		c := api.connect(t)
		get := func(want string) {
			t.Helper()
			if d, err := c.Document(t.Context(), "/openapi/v2", "application/json"); err != nil || string(d.Body) != want {
				t.Errorf("%+v, %v, not %s", d, err, want)
			}
		}
		api.set(says("one", "1"))
		get("one")
		c.Defined("example.org")
		for i, text := range []string{"two", "three", "four"} {
			time.Sleep(100 * time.Millisecond)
			api.set(says(text, fmt.Sprint(i+2)))
			get(text)
		}
		time.Sleep(5 * time.Second)
		get("four")
		time.Sleep(100 * time.Millisecond)
		api.set(says("five", "5"))
		get("four")
	})
}

func TestHugeDocumentIsRefused(t *testing.T) {
	api := &documentServer{}
	api.set(says(strings.Repeat("x", 33<<20), ""))
	if _, err := api.connect(t).Document(t.Context(), "/openapi/v2", "application/json"); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("a document of 33 MiB: %v", err)
	}
}

func TestDiscoveryPromisesOnlyWhatIsServed(t *testing.T) {
	api := &documentServer{}
	c := api.connect(t)
	for form, test := range map[string][2]string{
		"application/json": {
			`{"kind":"APIResourceList","groupVersion":"v1","resources":[
				{"name":"pods","kind":"Pod","shortNames":["po"],"verbs":["create","get","list","patch","watch"]},
				{"name":"pods/log","kind":"Pod","verbs":["get"]},
				{"name":"bindings","kind":"Binding","verbs":["create"]},
				{"name":"componentstatuses","kind":"ComponentStatus","verbs":["get","list"]}]}`,
			`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","shortNames":["po"],"verbs":["get","list","watch"]},{"name":"pods/log","kind":"Pod","verbs":["get"]}]}`,
		},
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList": {
			`{"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"pods","verbs":["get","list","watch"],
				"subresources":[{"subresource":"exec","verbs":["create"]},{"subresource":"log","responseKind":{"kind":"Pod"},"verbs":["get"]}]}]}]},{"metadata":{"name":"batch"},"versions":[{"version":"v1","freshness":"Current","resources":[
				{"resource":"jobs","verbs":["delete","get","list","watch"],"categories":["all"],"subresources":[{"subresource":"status"}]},
				{"resource":"reviews","verbs":["create"]},{"resource":"selfsubjectreviews","verbs":["create"]}]}]},
				{"metadata":{"name":"authentication.k8s.io"},"versions":[{"version":"v1","resources":[
				{"resource":"tokenreviews","verbs":["create"]},{"resource":"selfsubjectreviews","verbs":["create"]}]}]}]}`,
			`{"kind":"APIGroupDiscoveryList","items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"pods","verbs":["get","list","watch"],"subresources":[{"subresource":"log","responseKind":{"kind":"Pod"},"verbs":["get"]}]}]}]},{"metadata":{"name":"batch"},"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":"jobs","verbs":["get","list","watch"],"categories":["all"]}]}]},{"metadata":{"name":"authentication.k8s.io"},"versions":[{"version":"v1","resources":[{"resource":"selfsubjectreviews","verbs":["create"]}]}]}]}`,
		},
	} {
		api.set(says(test[0], ""))
		if d, err := c.Document(t.Context(), "/apis", form); err != nil || string(d.Body) != test[1] || d.ContentType != form {
			t.Errorf("%s: %v\n%s\nnot\n%s", form, err, d.Body, test[1])
		}
	}
	for i, text := range []string{`{"kind":"APIResourceList","resources":{"x":1}}`, `{"kind":"APIResourceList","resources":[1,{"name":2,"verbs":3}]}`, `{"kind":"Other"}`, `[]`, `x`} {
		api.set(says(text, ""))
		if _, err := c.Document(t.Context(), fmt.Sprint("/apis/", i), "application/json"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
