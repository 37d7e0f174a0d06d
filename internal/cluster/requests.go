package cluster

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// RequestKind is what requests to an API server are counted by.
type RequestKind struct {
	Verb string // get, list, watch, create or patch
	Code string // of the answer; "none": there was none
}

const noAnswer = "none"

// usual are the kinds that are told from the start, though there was no such request: whoever derives a rate from a
// counter misses what it begins with.
func usual() (kinds []RequestKind) {
	for verb, success := range map[string]string{"get": "200", "list": "200", "watch": "200", "create": "201"} {
		for _, code := range []string{success, "403", "429", "500", "503", noAnswer} {
			kinds = append(kinds, RequestKind{verb, code})
		}
	}
	return kinds
}

// requests counts the requests to one API server. Each attempt counts that client-go makes of a request.
type requests struct {
	mu     sync.Mutex
	counts map[RequestKind]uint64
}

func newRequests() *requests {
	r := &requests{counts: map[RequestKind]uint64{}}
	for _, kind := range usual() {
		r.counts[kind] = 0
	}
	return r
}

func (r *requests) count(request *http.Request, response *http.Response, err error) {
	kind := RequestKind{verbOf(request), noAnswer}
	if err == nil {
		kind.Code = strconv.Itoa(response.StatusCode)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[kind]++
}

// Requests calls f with the number of requests of each kind that were made so far.
func (c *Cluster) Requests(f func(RequestKind, uint64)) {
	c.breaker.requests.mu.Lock()
	counts := maps.Clone(c.breaker.requests.counts) // f may wait, and each request takes this lock
	c.breaker.requests.mu.Unlock()
	for kind, n := range counts {
		f(kind, n)
	}
}

// verbOf is the verb that an API server authorizes a request by. What is no resource is read by get.
func verbOf(request *http.Request) string {
	switch query := request.URL.Query(); {
	case request.Method == http.MethodPost:
		return "create"
	case request.Method == http.MethodPatch:
		return "patch"
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		return "watch"
	case isCollection(request.URL.Path):
		return "list"
	}
	return "get"
}

// isCollection reports whether a path names all objects of a kind, or those in a namespace. The path may follow one
// below which the API server stands.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		var rest []string
		switch {
		case part == "api" && len(parts) > i+2:
			rest = parts[i+2:]
		case part == "apis" && len(parts) > i+3:
			rest = parts[i+3:]
		default:
			continue
		}
		return len(rest) == 1 || len(rest) == 3 && rest[0] == "namespaces"
	}
	return false
}
