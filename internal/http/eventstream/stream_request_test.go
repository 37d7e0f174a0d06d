package eventstream

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/stream"
)

func TestStreamQueries(t *testing.T) {
	many := func(n int) string {
		var watches []string
		for i := range n {
			watches = append(watches, "w"+strings.Repeat("x", i)+"=/api/v1/pods")
		}
		return strings.Join(watches, "&")
	}
	for _, test := range []struct{ query, want string }{ // want is part of the refusal; "" for none
		{"pods=/api/v1/pods", ""},
		{"b=/api/v1/pods&a=/apis/batch/v1/jobs%3FlabelSelector%3Dq", ""},
		{"a=/clusters/east/api/v1/namespaces/x/pods/y", ""},
		{"a=/api/v1/pods&labelSelector=app%3Dweb&heartbeat=10s&watch=true&allowWatchBookmarks=1&timeoutSeconds=5", ""},
		{"a=/api/v1/pods&lastEventId=x&last_event_id=y", ""},
		{"a=" + url.QueryEscape("/api/v1/pods?heartbeat=20s"), ""},
		{many(32), ""},
		{many(33), "33 watches are more than the 32"},
		{"", "no watch is named"},
		{"labelSelector=a", "no watch is named"},
		{"A=/api/v1/pods", "neither a parameter nor the name of a watch"},
		{"a-b=/api/v1/pods", "neither a parameter nor the name of a watch"},
		{"1a=/api/v1/pods", "neither a parameter nor the name of a watch"},
		{"=/api/v1/pods", "neither a parameter nor the name of a watch"},
		{"a.b=/api/v1/pods", "neither a parameter nor the name of a watch"},
		{"labelselector=app", "is not a path"}, // a name, as it stands
		{"a=/api/v1/pods&a=/api/v1/pods", "two watches have this name"},
		{"a=/api/v1/pods&heartbeat=10s&heartbeat=20s", "heartbeat: given more than once"},
		{"a=" + url.QueryEscape("/api/v1/pods?labelSelector=a&labelSelector=b"), "labelSelector: given more than once"},
		{"a=" + url.QueryEscape("/api/v1/pods?bogus=1"), "bogus: unknown parameter"},
		{"a=" + url.QueryEscape("/api/v1/pods?search=x"), ""},
		{"a=" + url.QueryEscape("/api/v1/pods?sort=x"), "sort: stands in"},
		{"a=" + url.QueryEscape("/api/v1/pods?continue=x"), "continue: has no meaning"},
		{"a=/api/v1/pods%3Fticket%3Dx", "ticket: is the request's"},
		{"a=/api/v1/pods&continue=x", "continue: has no meaning"},
		{"a=" + url.QueryEscape("/api/v1/pods?lastEventId=x.1"), "there is one position for all"},
		{"a=" + url.QueryEscape("/api/v1/pods?x=%zz"), "malformed"},
		{"a=https://elsewhere.example.org/api/v1/pods", "is not a path"},
		{"a=//elsewhere/api/v1/pods", "is not a path"},
		{"a=api/v1/pods", "is not a path"},
		{"a=/api/v1/pods%23fragment", "is not a path"},
		{"a=", "is not a path"},
		{"a=/stream%3Fa%3D/api/v1/pods", "is not the path of a Kubernetes resource"},
		{"a=/api/v1/namespaces/x/pods/y/log", "is not the path of a Kubernetes resource"},
		{"a=/api/v1/pods&labelSelector=%3D%3D", "unable to parse labelSelector"},
		{"a=/api/v1/pods&fieldSelector=x", "unable to parse fieldSelector"},
		{"a=/api/v1/pods&fieldSelector=..%3Dx", "unable to parse fieldSelector"},
		{"a=/api/v1/pods&resourceVersion=-1", "resourceVersion: Invalid value"},
		{"a=/api/v1/pods&resourceVersion=01", "resourceVersion: Invalid value"},
		{"a=/api/v1/pods&sendInitialEvents=yes", "neither true nor false"},
		{"a=/api/v1/pods&heartbeat=soon", "is not a duration"},
		{"a=/api/v1/pods&heartbeat=-5s", "is not a duration"},
		{"a=/api/v1/pods&deltas=all", "is not merge-patch"},
		{"a=/api/v1/pods&conflate=x", "is not a duration"},
		{"a=/api/v1/pods&fields=..", "is not a path of an object"},
	} {
		query, err := url.ParseQuery(test.query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parseMulti(query, nil)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.query, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, not %q", test.query, err, test.want)
		case err != nil && reply.To(err).Code != http.StatusBadRequest:
			t.Errorf("%s: %d", test.query, reply.To(err).Code)
		}
	}
}

// TestNamesOfParametersAreReserved: a watch called so would be passed over in silence.
func TestNamesOfParametersAreReserved(t *testing.T) {
	reserved := 0
	for _, name := range slices.Concat(watchParameters, connectionParameters, liveQueryParameters, ignoredParameters, listParameters, takenParameters) {
		if !stream.ValidName(name) {
			continue
		}
		reserved++
		if _, err := parseMulti(url.Values{name: {"/api/v1/pods"}, "other": {"/api/v1/nodes"}}, nil); err == nil {
			t.Errorf("a watch may be called %s", name)
		}
	}
	if reserved < 5 {
		t.Errorf("only %d names are reserved", reserved)
	}
}

func TestOwnParametersComeBeforeTheDefaults(t *testing.T) {
	query, _ := url.ParseQuery("a=" + url.QueryEscape("/api/v1/pods?labelSelector=app=a&heartbeat=30s&resourceVersion=7") +
		"&b=" + url.QueryEscape("/api/v1/pods?sendInitialEvents=true&conflate=0s") +
		"&c=" + url.QueryEscape("/api/v1/pods?labelSelector=") +
		"&labelSelector=app%3Ddefault&sendInitialEvents=false&heartbeat=40s&conflate=1ms&resourceVersion=5")
	req, err := parseMulti(query, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := req.watches[0], req.watches[1], req.watches[2]
	if a.after != 7 || a.quiet || a.conflate != minConflate {
		t.Errorf("a: %+v", a)
	}
	if b.after != 0 || b.quiet || b.conflate != 0 {
		t.Errorf("b: %+v", b)
	}
	if !c.selector.Empty() || c.after != 5 {
		t.Errorf("c: %+v", c)
	}
	if req.heartbeat != 30*time.Second {
		t.Errorf("the shortest heartbeat counts, not %v", req.heartbeat)
	}
}

// FuzzParseMulti: whatever is accepted has watches with valid and different names, in order, within the bounds; and
// what is refused is refused with a 400 that is not about us.
func FuzzParseMulti(f *testing.F) {
	for _, seed := range []string{
		"pods=/api/v1/pods", "a=/api/v1/pods%3FlabelSelector%3Dx&b=/apis/batch/v1/jobs&heartbeat=5s", "limit=/api/v1/pods&x=/api/v1/pods",
		"a=/api/v1/pods&fields=a.b,c&deltas=merge-patch&conflate=1s&resourceVersion=5&sendInitialEvents=false", "a=%2F%2F&b=%00",
		"a=/api/v1/pods%3FfieldSelector%3Dmetadata.name%3Dx%5C%2C", ";", "a;b=/c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		req, err := parseMulti(query, nil)
		if err != nil {
			if code := reply.To(err).Code; code != http.StatusBadRequest {
				t.Errorf("%q: %d: %v", text, code, err)
			}
			return
		}
		if len(req.watches) == 0 || len(req.watches) > maxWatches {
			t.Errorf("%q: %d watches", text, len(req.watches))
		}
		if req.heartbeat != 0 && (req.heartbeat < minHeartbeat || req.heartbeat > maxHeartbeat) {
			t.Errorf("%q: heartbeat %v", text, req.heartbeat)
		}
		last := ""
		for _, w := range req.watches {
			if !stream.ValidName(w.name) || w.name <= last || isParameter(w.name) || w.target.Resource == "" {
				t.Errorf("%q: %+v", text, w)
			}
			if w.quiet && w.after > 0 || w.conflate < 0 || w.conflate > maxConflate {
				t.Errorf("%q: %+v", text, w)
			}
			last = w.name
		}
	})
}
