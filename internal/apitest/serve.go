package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what, answer := a.route(r)
	a.mu.Lock()
	a.served[what]++
	a.requests = append(a.requests, r.Method+" "+r.URL.RequestURI())
	if text := a.warnings[what]; text != "" {
		w.Header().Set("Warning", fmt.Sprintf("299 - %q", text))
	}
	a.mu.Unlock()
	for {
		a.mu.Lock()
		intercept, changed := a.faults[what], a.changed
		if intercept == nil {
			intercept = a.faults[Everything]
		}
		a.mu.Unlock()
		var fault *Fault
		if intercept != nil {
			fault = intercept(r)
		}
		switch {
		case fault == nil:
			a.whole(r.Context())
			answer(w, r)
		case fault.Hang:
			select {
			case <-changed:
				continue
			case <-r.Context().Done():
			case <-a.closed:
			}
		case fault.Status != nil:
			if fault.Later > 0 {
				w.Header().Set("Retry-After", strconv.Itoa(fault.Later))
			}
			refuse(w, fault.Status)
		case fault.Err != nil:
			panic(fault.Err) // breaks off the connection
		default:
			reply(w, 200, fault.Body)
		}
		return
	}
}

// route finds who answers a request, and the name under which it is counted and made to fail.
func (a *API) route(r *http.Request) (what string, answer http.HandlerFunc) {
	path := strings.Trim(r.URL.Path, "/")
	parts := strings.Split(path, "/")
	switch {
	case len(parts) > 3 && parts[0] == "apis" && a.Aggregated[parts[1]] != nil:
		return "aggregated", a.Aggregated[parts[1]].ServeHTTP
	case path == "apis/apiregistration.k8s.io/v1/apiservices":
		return "services", a.services
	case path == "apis/authorization.k8s.io/v1/subjectaccessreviews" && r.Method == http.MethodPost:
		return "reviews", a.review
	case path == "apis/authorization.k8s.io/v1/selfsubjectaccessreviews" && r.Method == http.MethodPost:
		return "self reviews", a.selfReview
	case path == "api", path == "apis", parts[0] == "api" && len(parts) == 2, parts[0] == "apis" && len(parts) == 3:
		return "discovery", a.discover
	case a.Logs != nil && len(parts) == 7 && parts[0] == "api" && parts[4] == "pods" && parts[6] == "log":
		return "logs", a.Logs
	case a.Queues != nil && len(parts) > 3 && parts[1] == "visibility.kueue.x-k8s.io":
		return "queues", a.Queues
	case path == "version", parts[0] == "openapi":
		return "documents", document
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range a.kinds {
		key, found := k.keyOf(r.URL.Path)
		switch {
		case !found || !k.served && k.Kind != namespaces:
		case key != "":
			return k.name, func(w http.ResponseWriter, _ *http.Request) { a.get(w, k, key) }
		case r.URL.Query().Get("watch") == "true", r.URL.Query().Get("watch") == "1":
			return k.name, func(w http.ResponseWriter, r *http.Request) { a.watch(w, r, k) }
		default:
			return k.name, func(w http.ResponseWriter, r *http.Request) { a.list(w, r, k) }
		}
	}
	return "unknown", func(w http.ResponseWriter, _ *http.Request) { refuse(w, failure(404)) }
}

// keyOf is the key of the object that a path names, or "" for that of the whole kind.
func (k *kind) keyOf(path string) (key string, found bool) {
	rest, found := strings.CutPrefix(path, k.Path())
	if !k.Namespaced || found && rest == "" {
		return strings.TrimPrefix(rest, "/"), found && strings.LastIndexByte(rest, '/') <= 0
	}
	base, resource := strings.TrimSuffix(k.Path(), k.Resource)+"namespaces/", "/"+k.Resource+"/"
	rest, found = strings.CutPrefix(path, base)
	namespace, name, hasName := strings.Cut(rest, resource)
	return namespace + "/" + name, found && hasName && !strings.Contains(namespace+name, "/")
}

func refuse(w http.ResponseWriter, s *metav1.Status) { reply(w, int(s.Code), encode(s)) }

func reply(w http.ResponseWriter, code int, body string) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body) // a client that has gone is no error
}

func (a *API) review(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		refuse(w, failure(400))
		return
	}
	review.Status.Allowed = a.Allow == nil || a.Allow(review.Spec)
	reply(w, http.StatusCreated, encode(review))
}

func (a *API) selfReview(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Spec.ResourceAttributes == nil {
		refuse(w, failure(400))
		return
	}
	review.Status.Allowed = a.AllowSelf == nil || a.AllowSelf(*review.Spec.ResourceAttributes)
	reply(w, http.StatusCreated, encode(review))
}

// document answers the version and a few OpenAPI documents, with ETags as those of API servers.
func document(w http.ResponseWriter, r *http.Request) {
	body, ok := map[string]string{
		"/version":                   `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`,
		"/openapi/v2":                `{"swagger":"2.0"}`,
		"/openapi/v3":                `{"paths":{"apis/batch/v1":{"serverRelativeURL":"/openapi/v3/apis/batch/v1?hash=B1"}}}`,
		"/openapi/v3/apis/batch/v1":  `{"openapi":"3.0.0"}`,
		"/openapi/v3/apis/secret/v1": `{"not":"in the index"}`,
	}[r.URL.Path]
	if !ok {
		refuse(w, failure(404))
		return
	}
	if accept := r.Header.Get("Accept"); strings.HasSuffix(accept, "+protobuf") {
		w.Header().Set("Content-Type", accept)
		body = "\x0a\x03" + body
	}
	if w.Header().Set("Etag", `"B1"`); r.Header.Get("If-None-Match") == `"B1"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	reply(w, 200, body)
}

func (a *API) get(w http.ResponseWriter, k *kind, key string) {
	a.mu.Lock()
	o, ok := k.objects[key]
	if !ok && k.Kind == namespaces && a.everThere(key) {
		o, ok = object{uid: "uid-of-" + key, version: 1, fields: []string{"metadata.creationTimestamp=" + everThereSince}}.encoded(k.Kind, key), true
	}
	a.mu.Unlock()
	if !ok {
		refuse(w, failure(404))
		return
	}
	reply(w, 200, o.json)
}

// tooLarge refuses a version that does not exist yet.
func (a *API) tooLarge(asked uint64) *metav1.Status {
	if asked <= a.version {
		return nil
	}
	s := failure(504)
	s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}
	return s
}

func (a *API) list(w http.ResponseWriter, r *http.Request, k *kind) {
	a.mu.Lock()
	version, items, token, refused := a.page(k, r.URL.Query())
	a.mu.Unlock()
	if refused != nil {
		refuse(w, refused)
		return
	}
	metadata := fmt.Sprintf(`{"resourceVersion":"%d","continue":%q}`, version, token)
	if k.Measured {
		metadata = "{}"
	}
	reply(w, 200, fmt.Sprintf(`{"kind":"%sList","apiVersion":%q,"metadata":%s,"items":[%s]}`+"\n", k.Kind.Kind, k.APIVersion(), metadata, strings.Join(items, ",")))
}

// page returns what is asked for of a kind, and the token for what comes after it.
func (a *API) page(k *kind, query url.Values) (version uint64, items []string, token string, refused *metav1.Status) {
	asked, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	limit, _ := strconv.Atoi(query.Get("limit"))
	if refused = a.tooLarge(asked); refused != nil {
		return 0, nil, "", refused
	}
	version, objects := a.version, k.objects
	if query.Get("resourceVersionMatch") == "Exact" {
		version, objects = asked, a.at(k, asked)
	}
	if token = query.Get("continue"); token != "" {
		known := false
		if items, known = a.pages[token]; !known {
			return 0, nil, "", failure(410)
		}
		_, _ = fmt.Sscan(token, &version)
	} else {
		for _, key := range slices.Sorted(maps.Keys(objects)) {
			items = append(items, objects[key].json)
		}
	}
	if !a.paged || limit == 0 || len(items) <= limit {
		return version, items, "", nil
	}
	token = fmt.Sprintf("%d-%d", version, len(items))
	a.pages[token] = items[limit:]
	return version, items[:limit], token, nil
}

// everThereSince is when namespaces were made that no test makes: before anything in them.
const everThereSince = "1999-01-01T00:00:00Z"

// everThere reports whether there was something in a namespace that no test has ever made. Whoever
// gets that namespace is told that it was there all the time; lists do not have it. The lock is
// held.
func (a *API) everThere(namespace string) (was bool) {
	for _, e := range a.history {
		if e.kind.Kind == namespaces && e.key == namespace {
			return false
		}
		was = was || e.kind.Namespaced && strings.HasPrefix(e.key, namespace+"/")
	}
	return was
}
