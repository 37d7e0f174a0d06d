package apitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Trim(r.URL.Path, "/")
	parts := strings.Split(path, "/")
	switch {
	case path == "apis/authorization.k8s.io/v1/subjectaccessreviews" && r.Method == http.MethodPost:
		if a.enter(w, r, "reviews") {
			a.review(w, r)
		}
	case path == "api", path == "apis", parts[0] == "api" && len(parts) == 2, parts[0] == "apis" && len(parts) == 3:
		if a.enter(w, r, "discovery") {
			a.discovery(w, path)
		}
	case a.Logs != nil && len(parts) == 7 && parts[0] == "api" && parts[4] == "pods" && parts[6] == "log":
		if a.enter(w, r, "logs") {
			a.Logs(w, r)
		}
	case path == "version", parts[0] == "openapi":
		if a.enter(w, r, "documents") {
			a.document(w, r, path)
		}
	default:
		a.resource(w, r, "/"+path)
	}
}

// enter counts a request. It reports false if a fault has answered it.
func (a *API) enter(w http.ResponseWriter, r *http.Request, what string) bool {
	a.mu.Lock()
	a.served[what]++
	a.mu.Unlock()
	for {
		a.mu.Lock()
		f, ok := a.faults[what]
		if !ok {
			f = a.faults[Everything]
		}
		changed := a.changed
		a.mu.Unlock()
		switch {
		case f.hang:
			select {
			case <-changed:
			case <-r.Context().Done():
				return false
			case <-a.closed:
				return false
			}
		case f.code != 0:
			status(w, f.code, "made to fail: "+secretDetail)
			return false
		default:
			return true
		}
	}
}

// secretDetail is part of every error, so that tests can look for it where it must not appear.
const secretDetail = "detail-of-the-inside"

// SecretDetail is part of the text of every error that the API server answers. No client may ever see it.
const SecretDetail = secretDetail

func status(w http.ResponseWriter, code int, message string) {
	reasons := map[int]metav1.StatusReason{
		401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound,
		405: metav1.StatusReasonMethodNotAllowed, 410: metav1.StatusReasonExpired, 422: metav1.StatusReasonInvalid,
		500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable,
	}
	reply(w, code, failure(code, reasons[code], message))
}

func failure(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(encode(body)) // a client that has gone is no error
}

func (a *API) review(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		status(w, 400, err.Error())
		return
	}
	review.Status.Allowed = a.Allow == nil || a.Allow(review.Spec)
	reply(w, http.StatusCreated, review)
}

// discovery answers in the legacy form, to which client-go falls back.
func (a *API) discovery(w http.ResponseWriter, path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch path {
	case "api":
		reply(w, 200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		return
	case "apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, k := range a.kinds {
			version := metav1.GroupVersionForDiscovery{GroupVersion: k.apiVersion(), Version: k.Version}
			same := func(g metav1.APIGroup) bool { return g.Name == k.Group }
			if k.Group != "" && !slices.ContainsFunc(groups.Groups, same) {
				groups.Groups = append(groups.Groups, metav1.APIGroup{
					Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
				})
			}
		}
		reply(w, 200, groups)
		return
	}
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/"),
	}
	for _, k := range a.kinds {
		if k.apiVersion() == list.GroupVersion {
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: k.Resource, Kind: k.Kind.Kind, Namespaced: k.Namespaced, Verbs: k.Verbs},
				metav1.APIResource{Name: k.Resource + "/status", Kind: k.Kind.Kind, Namespaced: k.Namespaced, Verbs: []string{"get"}})
		}
	}
	reply(w, 200, list)
}

// document answers the version and a few OpenAPI documents, with ETags as those of API servers.
func (a *API) document(w http.ResponseWriter, r *http.Request, path string) {
	body, ok := map[string]string{
		"version":                   `{"major":"1","minor":"36","gitVersion":"v1.36.3"}`,
		"openapi/v2":                `{"swagger":"2.0"}`,
		"openapi/v3":                `{"paths":{"apis/batch/v1":{"serverRelativeURL":"/openapi/v3/apis/batch/v1?hash=B1"}}}`,
		"openapi/v3/apis/batch/v1":  `{"openapi":"3.0.0"}`,
		"openapi/v3/apis/secret/v1": `{"not":"in the index"}`,
	}[path]
	if !ok {
		status(w, 404, "the server could not find the requested resource")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if accept := r.Header.Get("Accept"); strings.HasSuffix(accept, "+protobuf") {
		w.Header().Set("Content-Type", accept)
		body = "\x0a\x03" + body
	}
	if w.Header().Set("Etag", `"B1"`); r.Header.Get("If-None-Match") == `"B1"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write([]byte(body)) // a client that has gone is no error
}

// resource answers a LIST or a WATCH of a whole kind, or a GET of an object without a namespace.
func (a *API) resource(w http.ResponseWriter, r *http.Request, path string) {
	a.mu.Lock()
	var k *kind
	var name string
	for _, served := range a.kinds {
		if path == served.path() {
			k = served
		} else if rest, ok := strings.CutPrefix(path, served.path()+"/"); ok && !strings.Contains(rest, "/") {
			k, name = served, rest
		} else if key, ok := served.keyOf(path); ok {
			k, name = served, key
		}
	}
	a.mu.Unlock()
	if k == nil {
		status(w, 404, "the server could not find the requested resource")
		return
	}
	if !a.enter(w, r, k.Name) {
		return
	}
	switch {
	case name != "":
		a.get(w, k, name)
	case r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1":
		a.watch(w, r, k)
	default:
		a.list(w, r, k)
	}
}

// keyOf is the key of the object in a namespace that a path names.
func (k *kind) keyOf(path string) (key string, ok bool) {
	base, resource := k.path()[:strings.LastIndexByte(k.path(), '/')], "/"+k.Resource+"/"
	rest, ok := strings.CutPrefix(path, base+"/namespaces/")
	namespace, name, found := strings.Cut(rest, resource)
	return namespace + "/" + name, ok && found && k.Namespaced && !strings.Contains(namespace+name, "/")
}

func (a *API) get(w http.ResponseWriter, k *kind, name string) {
	a.mu.Lock()
	o, ok := k.objects[name]
	a.mu.Unlock()
	if !ok {
		status(w, 404, name+" not found")
		return
	}
	reply(w, 200, json.RawMessage(o.json))
}

func (a *API) list(w http.ResponseWriter, r *http.Request, k *kind) {
	a.mu.Lock()
	if asked, _ := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64); asked > a.version {
		defer a.mu.Unlock()
		tooLarge := failure(504, metav1.StatusReasonTimeout, fmt.Sprintf("Too large resource version: %d, current: %d", asked, a.version))
		tooLarge.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}
		reply(w, 504, tooLarge)
		return
	}
	items := []json.RawMessage{}
	for _, key := range sortedKeys(k.objects) {
		items = append(items, k.objects[key].json)
	}
	version := a.version
	a.mu.Unlock()
	metadata := map[string]any{}
	if !k.Measured {
		metadata["resourceVersion"] = strconv.FormatUint(version, 10)
	}
	reply(w, 200, map[string]any{"kind": k.Kind.Kind + "List", "apiVersion": k.apiVersion(), "items": items, "metadata": metadata})
}

func (a *API) watch(w http.ResponseWriter, r *http.Request, k *kind) {
	query := r.URL.Query()
	var timeUp, nearly <-chan time.Time
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		timeUp = timer.C
		if seconds > 2 && query.Get("allowWatchBookmarks") == "true" {
			timer := time.NewTimer(time.Duration(seconds-2) * time.Second)
			defer timer.Stop()
			nearly = timer.C
		}
	}
	var after uint64
	a.change(func() {
		k.watches++
		if after, _ = strconv.ParseUint(query.Get("resourceVersion"), 10, 64); after == 0 {
			after = a.version
		}
	})
	defer a.change(func() { k.watches-- })

	w.Header().Set("Content-Type", "application/json")
	a.mu.Lock()
	// For a version that is yet to come, a real API server may send nothing until it comes. This one answers 410.
	epoch, tooOld := k.epoch, after < k.floor || after > a.version
	a.mu.Unlock()
	if tooOld {
		message := fmt.Sprintf("too old resource version: %d", after)
		send(w, "ERROR", encode(failure(410, metav1.StatusReasonExpired, message)))
		return
	}
	flush(w)
	for ending := false; ; {
		a.mu.Lock()
		var news []event
		for _, e := range k.history {
			if e.version > after {
				news = append(news, e)
			}
		}
		if ending {
			news = append(news, event{a.version, "BOOKMARK", k.bookmark(a.version)})
		}
		broken, changed := k.epoch != epoch, a.changed
		a.mu.Unlock()
		ending = false
		for _, e := range news {
			send(w, e.kind, e.json)
			after = e.version
		}
		flush(w)
		if broken {
			panic(http.ErrAbortHandler) // the connection breaks, and the body has no end
		}
		select {
		case <-changed:
		case <-nearly:
			ending = true
		case <-timeUp:
			return
		case <-r.Context().Done():
			return
		case <-a.closed:
			return
		}
	}
}

func send(w http.ResponseWriter, kind string, object []byte) {
	_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, object) // a client that has gone is no error
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
