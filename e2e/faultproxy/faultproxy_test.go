package faultproxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The proxy does what it is asked for, and nothing to other requests.
func TestFaultProxyFailsWhatIsChosen(t *testing.T) {
	t.Parallel()
	more := make(chan string)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s of %s\n", r.Header.Get("Authorization"), r.URL.Path)
		if verbOf(r) != "watch" {
			return
		}
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case text := <-more:
				fmt.Fprintln(w, text)
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(upstream.Close)
	p := start(t, upstream.URL, http.DefaultTransport)
	client := p.server.Client()
	get := func(path string) string {
		response, err := client.Get(p.URL + path)
		if err != nil {
			return "no answer"
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return "no whole answer"
		}
		return fmt.Sprintf("%d %s", response.StatusCode, bytes.TrimSpace(body))
	}
	const pods, bindings = "/api/v1/pods", "/apis/rbac.authorization.k8s.io/v1/rolebindings"
	for path, verb := range map[string]string{
		pods: "list", "/api/v1/namespaces/a/pods": "list", "/api/v1/namespaces": "list", "/api/v1/namespaces/a": "get",
		"/api/v1/namespaces/a/pods/x": "get", "/apis/batch/v1": "get", bindings: "list", bindings + "?watch=1": "watch",
	} {
		if got := verbOf(httptest.NewRequest(http.MethodGet, path, nil)); got != verb {
			t.Errorf("%s is a %s, not a %s", path, got, verb)
		}
	}
	if got := get(pods); got != "200 of "+pods {
		t.Fatal(got)
	}
	for does, want := range map[Failing]string{500: "500 ", 429: "429 ", IsCut: "no answer"} {
		f, mend := p.Fail(t, "list", bindings, does)
		if got := get(bindings); !strings.HasPrefix(got, want) {
			t.Errorf("%d: %q", does, got)
		}
		if got := get(pods); got != "200 of "+pods {
			t.Errorf("%d: another is answered with %q", does, got)
		}
		if n := p.Times(f); n == 0 {
			t.Errorf("%d: %d requests have met it", does, n)
		}
		mend()
		if got := get(bindings); got != "200 of "+bindings {
			t.Errorf("%d: mended, it is answered with %q", does, got)
		}
	}
	response, err := client.Get(p.URL + pods + "?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	frames := make(chan string)
	go func() {
		defer close(frames)
		piece := make([]byte, 100)
		for {
			n, err := response.Body.Read(piece)
			if n > 0 {
				frames <- strings.TrimSpace(string(piece[:n]))
			}
			if err != nil {
				return
			}
		}
	}()
	<-frames
	more <- "one"
	if got := <-frames; got != "one" {
		t.Fatal(got)
	}
	held, mend := p.Fail(t, "watch", pods, IsHeld)
	more <- "two"
	for end := time.Now().Add(10 * time.Second); p.Times(held) == 0; time.Sleep(time.Millisecond) { // until then it could not have been told
		if time.Now().After(end) {
			t.Fatal("nothing is held")
		}
	}
	select {
	case got := <-frames:
		t.Fatalf("while it is held it tells %q", got)
	case <-time.After(100 * time.Millisecond):
	}
	mend()
	if got := <-frames; got != "two" {
		t.Error(got)
	}
	p.Fail(t, "watch", pods, 503)
	if got, open := <-frames; open {
		t.Errorf("after it was cut it tells %q", got)
	}
}
