//go:build linux

package apiserver

import (
	"encoding/json"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// list answers with the objects in the order of their numbers, up to a limit.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	wanted, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	s.mu.Lock()
	objects, version := s.items(), s.version
	s.mu.Unlock()
	if wanted > version {
		fail(w, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Too large resource version")
		return
	}
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 {
		objects = objects[:min(limit, len(objects))]
	}
	answer(w, http.StatusOK, map[string]any{
		"kind": s.kind.Kind + "List", "apiVersion": strings.TrimPrefix(s.kind.Group+"/"+s.kind.Version, "/"), "items": objects,
		"metadata": map[string]any{"resourceVersion": strconv.FormatUint(version, 10)},
	})
}

// items returns the objects. The caller holds the lock.
func (s *Server) items() []json.RawMessage {
	items := make([]json.RawMessage, len(s.objects))
	for i, object := range s.objects {
		items[i] = object
	}
	return items
}

// watch sends the changes after a version.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var timeUp <-chan time.Time
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		timeUp = time.After(time.Duration(seconds) * time.Second)
	}
	after, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	w.Header().Set("Content-Type", "application/json")
	control := http.NewResponseController(w)
	for {
		news, gone, changed := s.after(after)
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
func (s *Server) after(version uint64) (news []change, gone bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.floor {
		return nil, true, nil
	}
	i := sort.Search(len(s.history), func(i int) bool { return s.history[i].version > version })
	return s.history[i:len(s.history):len(s.history)], false, s.changed
}
