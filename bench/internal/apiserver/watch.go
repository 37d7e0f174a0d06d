//go:build linux

package apiserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// list answers with the objects in the order of their numbers, up to a limit.
func (s *Server) list(w http.ResponseWriter, r *http.Request, k *kind) {
	query := r.URL.Query()
	wanted, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	s.mu.Lock()
	objects, states, version := slices.Clone(k.objects), slices.Clone(k.states), s.version
	s.mu.Unlock()
	if wanted > version {
		fail(w, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Too large resource version")
		return
	}
	count := len(objects) + len(states)
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 {
		count = min(limit, count)
	}
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 256<<10) // a client that has gone is no error
	fmt.Fprintf(out, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[`,
		k.Kind.Kind, strings.TrimPrefix(k.Group+"/"+k.Version, "/"), version)
	for number := range count {
		if number > 0 {
			_ = out.WriteByte(',')
		}
		if k.Lazy {
			_, _ = out.Write(k.Render(number, states[number].version, states[number].mark))
		} else {
			_, _ = out.Write(objects[number])
		}
	}
	_, _ = out.WriteString("]}")
	_ = out.Flush()
}

// watch sends the changes after a version.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, k *kind) {
	query := r.URL.Query()
	var timeUp <-chan time.Time
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		timeUp = time.After(time.Duration(seconds) * time.Second)
	}
	after, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	w.Header().Set("Content-Type", "application/json")
	control := http.NewResponseController(w)
	for {
		news, gone, changed := s.after(k, after)
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
func (s *Server) after(k *kind, version uint64) (news []change, gone bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < k.floor {
		return nil, true, nil
	}
	i := sort.Search(len(k.history), func(i int) bool { return k.history[i].version > version })
	return k.history[i:len(k.history):len(k.history)], false, s.changed
}
