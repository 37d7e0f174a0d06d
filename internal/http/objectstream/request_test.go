package objectstream

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/visibility"
)

// TestOtherThingsAreOtherQuestions: watches of different things must not share an answer to what may be seen of them.
func TestOtherThingsAreOtherQuestions(t *testing.T) {
	pod := visibility.Target{Version: "v1", Resource: "pods", Namespace: "a"}
	key := func(store *cache.Store, target visibility.Target) string {
		return newWatch(nil, nil, watchRequest{target: target}, access.Grant{Store: store}).Question().Key
	}
	base := key(nil, pod)
	if other := key(nil, visibility.Target{Version: "v1", Resource: "pods", Name: "a"}); other == base {
		t.Error("another target is taken for the same")
	}
	if other := key(new(cache.Store), pod); other == base {
		t.Error("another store is taken for the same")
	}
}

// TestWhereAWatchBegins is what its parameters say together.
func TestWhereAWatchBegins(t *testing.T) {
	for _, test := range []struct {
		query    string
		after    uint64
		quiet    bool
		conflate time.Duration
	}{
		{"labelSelector=app=a&resourceVersion=7&sendInitialEvents=false&conflate=1ms", 7, false, 10 * time.Millisecond},
		{"sendInitialEvents=true&resourceVersion=5&conflate=0s", 0, false, 0},
		{"sendInitialEvents=false", 0, true, 0},
		{"labelSelector=&resourceVersion=5", 5, false, 0},
	} {
		query, err := url.ParseQuery(test.query)
		if err != nil {
			t.Fatal(err)
		}
		w, err := parse("/api/v1/pods", query)
		if err != nil || w.after != test.after || w.quiet != test.quiet || w.conflate != test.conflate {
			t.Errorf("%s: %v, %+v", test.query, err, w)
		}
		if empty := query.Get("labelSelector") == ""; w.selector.Empty() != empty {
			t.Errorf("%s: %+v", test.query, w.selector)
		}
	}
}

// FuzzParse: whatever is accepted names a kind, and says one thing of where the watch begins; and what is refused is
// refused with a 400 that is not about us.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"/api/v1/pods?labelSelector=x&resourceVersion=5", "/apis/batch/v1/jobs?sendInitialEvents=false&conflate=1s",
		"/api/v1/pods?fieldSelector=metadata.name%3Dx%5C%2C", "//", "/api", "/clusters/a/api/v1/pods?conflate=99h",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, err := url.Parse(text)
		if err != nil {
			return
		}
		w, err := parse(address.Path, address.Query())
		if err != nil {
			if code := reply.To(err).Code; code != http.StatusBadRequest {
				t.Errorf("%q: %d: %v", text, code, err)
			}
			return
		}
		if w.target.Resource == "" || w.quiet && w.after > 0 || w.conflate < 0 || w.conflate > time.Minute {
			t.Errorf("%q: %+v", text, w)
		}
	})
}
