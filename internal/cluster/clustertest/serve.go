package clustertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/cluster"
)

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, r.Method+" "+r.URL.RequestURI())
	intercept := a.intercept
	a.mu.Unlock()
	if intercept != nil {
		if i := intercept(r); i != nil {
			a.intercepted(w, i)
			return
		}
	}
	switch r.URL.Path {
	case "/api", "/apis":
		a.discover(w, r.URL.Path == "/api")
		return
	case "/api/v1/namespaces/kube-system":
		fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"0b5e8a6e-1"}}`)
		return
	}
	a.mu.Lock()
	i := slices.IndexFunc(a.kinds, func(k cluster.Kind) bool { return k.Path() == r.URL.Path })
	if i < 0 {
		defer a.mu.Unlock()
		if text, found := a.get(r.URL.Path); found {
			fmt.Fprint(w, text)
		} else {
			fail(w, status(http.StatusNotFound, metav1.StatusReasonNotFound))
		}
		return
	}
	kind := a.kinds[i]
	a.mu.Unlock()
	if r.URL.Query().Get("watch") == "true" {
		a.watch(w, r, kind)
	} else {
		a.list(w, r, kind)
	}
}

// get finds the object that a path names.
func (a *API) get(path string) (text string, found bool) {
	for _, kind := range a.kinds {
		for _, o := range a.objects[kind] {
			own := kind.Path() + "/" + o.Name
			if kind.Namespaced {
				own = strings.TrimSuffix(kind.Path(), kind.Resource) + "namespaces/" + o.Namespace + "/" + kind.Resource + "/" + o.Name
			}
			if own == path {
				return o.JSON(kind), true
			}
		}
	}
	return "", false
}

func (a *API) intercepted(w http.ResponseWriter, i *Intercept) {
	switch {
	case i.Status != nil:
		fail(w, i.Status)
	case i.Err != nil:
		panic(i.Err) // breaks off the connection
	default:
		fmt.Fprint(w, i.Body)
	}
}

func fail(w http.ResponseWriter, s *metav1.Status) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s)
}

// tooLarge answers a request for a version that does not exist yet.
func tooLarge() *metav1.Status {
	s := status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
	s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}
	return s
}

func (a *API) list(w http.ResponseWriter, r *http.Request, kind cluster.Kind) {
	query := r.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	a.mu.Lock()
	defer a.mu.Unlock()
	if after, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64); after > a.version {
		fail(w, tooLarge())
		return
	}
	version := strconv.FormatUint(a.version, 10)
	items, known := a.sorted(kind), true
	if query.Get("resourceVersionMatch") == "Exact" {
		version = query.Get("resourceVersion")
		at, _ := strconv.ParseUint(version, 10, 64)
		items = slices.Collect(maps.Values(a.at(kind, at)))
	}
	if token := query.Get("continue"); token != "" {
		version, _, _ = strings.Cut(token, "-")
		items, known = a.pages[token]
		if !known {
			fail(w, status(http.StatusGone, metav1.StatusReasonExpired))
			return
		}
	}
	token := ""
	if a.paged && limit > 0 && len(items) > limit {
		token = fmt.Sprintf("%s-%d", version, len(items))
		a.pages[token], items = items[limit:], items[:limit]
	}
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`+"\n",
		kind.Kind, kind.APIVersion(), version, token, strings.Join(items, ","))
}

// sorted returns the objects of a kind in the order of their keys.
func (a *API) sorted(kind cluster.Kind) []string {
	all := make([]Object, 0, len(a.objects[kind]))
	for _, o := range a.objects[kind] {
		all = append(all, o)
	}
	slices.SortFunc(all, func(x, y Object) int { return cmp.Compare(x.key(), y.key()) })
	items := make([]string, len(all))
	for i, o := range all {
		items[i] = o.JSON(kind)
	}
	return items
}

type ending int

const (
	endNone ending = iota
	endClean
	endWithin // after one more event
	endCut
	endExpired
)

// watch is an open watch.
type watch struct {
	kind      cluster.Kind
	after     uint64 // events up to here were sent
	bookmarks int
	ending    ending
}

func (a *API) watch(w http.ResponseWriter, r *http.Request, kind cluster.Kind) {
	query := r.URL.Query()
	after, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	a.mu.Lock()
	if after > a.version {
		a.mu.Unlock()
		fail(w, tooLarge())
		return
	}
	this := &watch{kind: kind, after: after, bookmarks: a.bookmarks}
	if after < a.compacted {
		this.ending = endExpired
	}
	a.watches[this] = true
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watches, this)
	}()
	var timeout, nearly <-chan time.Time
	if seconds, _ := strconv.Atoi(query.Get("timeoutSeconds")); seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		timeout = timer.C
		if seconds > 2 && query.Get("allowWatchBookmarks") == "true" {
			timer := time.NewTimer(time.Duration(seconds-2) * time.Second)
			defer timer.Stop()
			nearly = timer.C
		}
	}
	out := io.Writer(w)
	w.WriteHeader(http.StatusOK)
	for {
		lines, how, changed := a.pending(this)
		if _, err := io.WriteString(out, lines); err != nil {
			return
		}
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		switch how {
		case endClean:
			return
		case endExpired:
			gone := status(http.StatusGone, metav1.StatusReasonExpired)
			a.mu.Lock()
			gone.Message = fmt.Sprintf("too old resource version: %d (%d)", after, a.compacted)
			a.mu.Unlock()
			text, _ := json.Marshal(gone)
			fmt.Fprintf(out, `{"type":"ERROR","object":%s}`+"\n", text)
			return
		case endCut:
			io.WriteString(out, `{"type":"ADDED","obj`)
			panic(http.ErrAbortHandler)
		}
		select {
		case <-changed:
		case <-nearly:
			a.mu.Lock()
			if !a.mute {
				this.bookmarks--
			}
			a.mu.Unlock()
		case <-timeout:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// pending returns what a watch has not been sent yet.
func (a *API) pending(w *watch) (lines string, how ending, changed chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var b strings.Builder
	if w.ending != endExpired {
		for _, e := range a.history {
			if e.kind == w.kind && e.object.version > w.after {
				fmt.Fprintf(&b, `{"type":%q,"object":%s}`+"\n", e.what, e.object.JSON(e.kind))
				if w.ending == endWithin {
					return b.String(), endClean, a.changed
				}
			}
		}
		w.after = max(w.after, a.version)
		if w.bookmarks != a.bookmarks {
			w.bookmarks = a.bookmarks
			b.WriteString(bookmark(w.kind, a.version))
		}
	}
	return b.String(), w.ending, a.changed
}

func bookmark(kind cluster.Kind, version uint64) string {
	return fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"}}}`+"\n",
		kind.Kind, kind.APIVersion(), version)
}
