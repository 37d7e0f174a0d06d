//go:build linux

package main

import (
	"encoding/json"
	"net/http"
	"sort"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// list answers with the objects in the order of their numbers, up to a limit.
func (a *APIServer) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	wanted, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	a.mu.Lock()
	objects, version := a.items(), a.version
	a.mu.Unlock()
	if wanted > version {
		fail(w, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Too large resource version")
		return
	}
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 {
		objects = objects[:min(limit, len(objects))]
	}
	answer(w, http.StatusOK, map[string]any{
		"kind": "ConfigMapList", "apiVersion": "v1", "items": objects,
		"metadata": map[string]any{"resourceVersion": strconv.FormatUint(version, 10)},
	})
}

// items returns the objects. The caller holds the lock.
func (a *APIServer) items() []json.RawMessage {
	items := make([]json.RawMessage, len(a.objects))
	for i, object := range a.objects {
		items[i] = object
	}
	return items
}

// watch sends the changes after a version.
func (a *APIServer) watch(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var timeUp <-chan time.Time
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		timeUp = time.After(time.Duration(seconds) * time.Second)
	}
	after, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	w.Header().Set("Content-Type", "application/json")
	control := http.NewResponseController(w)
	for {
		news, gone, changed := a.after(after)
		if gone {
			expired, _ := json.Marshal(status(http.StatusGone, metav1.StatusReasonExpired, "too old resource version"))
			_, _ = w.Write(watchLine("ERROR", expired))
			return
		}
		for _, change := range news {
			_, _ = w.Write(change.line) // the context shows that a client has gone
			after = change.version
		}
		if control.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-timeUp:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// after returns what happened after a version, and a channel that is closed when there is more. It reports gone if
// that history is forgotten.
func (a *APIServer) after(version uint64) (news []change, gone bool, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if version < a.floor {
		return nil, true, nil
	}
	i := sort.Search(len(a.history), func(i int) bool { return a.history[i].version > version })
	return a.history[i:len(a.history):len(a.history)], false, a.changed
}
