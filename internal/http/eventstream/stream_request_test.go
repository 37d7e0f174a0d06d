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
		_, err = parseMulti(query, ObjectParsers(nil))
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
		if _, err := parseMulti(url.Values{name: {"/api/v1/pods"}, "other": {"/api/v1/nodes"}}, ObjectParsers(nil)); err == nil {
			t.Errorf("a watch may be called %s", name)
		}
	}
	if reserved < 5 {
		t.Errorf("only %d names are reserved", reserved)
	}
}

// queries is what sources are asked for, by their names.
type queries map[string]url.Values

// parsers are those of objects, which write down what they are asked.
func (q queries) parsers() Parsers {
	parsers := ObjectParsers(nil)
	objects := parsers["api"].Parse
	for prefix := range parsers {
		parsers[prefix] = Sources{Defaults: true, Parse: func(name, path string, query url.Values) (Opener, error) {
			q[name] = query
			return objects(name, path, query)
		}}
	}
	return parsers
}

func TestOwnParametersComeBeforeTheDefaults(t *testing.T) {
	query, _ := url.ParseQuery("a=" + url.QueryEscape("/api/v1/pods?labelSelector=app=a&heartbeat=30s&resourceVersion=7") +
		"&b=" + url.QueryEscape("/api/v1/pods?sendInitialEvents=true&conflate=0s") +
		"&c=" + url.QueryEscape("/api/v1/pods?labelSelector=") +
		"&labelSelector=app%3Ddefault&sendInitialEvents=false&heartbeat=40s&conflate=1ms&resourceVersion=5")
	of := queries{}
	req, err := parseMulti(query, of.parsers())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a": "conflate=1ms&labelSelector=app%3Da&resourceVersion=7&sendInitialEvents=false",
		"b": "conflate=0s&labelSelector=app%3Ddefault&resourceVersion=5&sendInitialEvents=true",
		"c": "conflate=1ms&labelSelector=&resourceVersion=5&sendInitialEvents=false",
	} {
		if got := of[name].Encode(); got != want {
			t.Errorf("%s is asked for with %s, not %s", name, got, want)
		}
	}
	if req.heartbeat != 30*time.Second {
		t.Errorf("the shortest heartbeat counts, not %v", req.heartbeat)
	}
}

// TestDefaultsAreOnlyForThoseThatTakeThem: a history knows no fieldSelector, and would refuse a stream that has one for its
// watches.
func TestDefaultsAreOnlyForThoseThatTakeThem(t *testing.T) {
	of := queries{}
	parsers := of.parsers()
	parsers["history"] = Sources{Parse: func(name, _ string, query url.Values) (Opener, error) {
		of[name] = query
		return nil, nil
	}}
	query := url.Values{"pods": {"/api/v1/pods"}, "past": {"/history/apis/batch/v1/jobs"}, "labelSelector": {"app=x"}}
	if _, err := parseMulti(query, parsers); err != nil || of["pods"].Get("labelSelector") != "app=x" || len(of["past"]) > 0 {
		t.Errorf("%v, %v", err, of)
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
		req, err := parseMulti(query, ObjectParsers(nil))
		if err != nil {
			if code := reply.To(err).Code; code != http.StatusBadRequest {
				t.Errorf("%q: %d: %v", text, code, err)
			}
			return
		}
		if len(req.openings) == 0 || len(req.openings) > maxWatches {
			t.Errorf("%q: %d watches", text, len(req.openings))
		}
		if req.heartbeat != 0 && (req.heartbeat < minHeartbeat || req.heartbeat > maxHeartbeat) {
			t.Errorf("%q: heartbeat %v", text, req.heartbeat)
		}
		last := ""
		for _, o := range req.openings {
			if !stream.ValidName(o.name) || o.name <= last || isParameter(o.name) || o.open == nil {
				t.Errorf("%q: %q", text, o.name)
			}
			last = o.name
		}
	})
}
