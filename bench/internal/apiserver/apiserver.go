//go:build linux

// Package apiserver is an API server for benchmarks: one kind, whose objects are changed at a steady rate or all at once. It runs on
// the same processors as what is measured, so it must be cheap: it renders a change once, and scans nothing.
// internal/apitest is made for faults, and is not that cheap.
package apiserver

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// Kind is the kind that a server has.
type Kind struct{ Group, Version, Resource, Kind string }

func (k Kind) path() string {
	if k.Group == "" {
		return "/api/" + k.Version
	}
	return "/apis/" + k.Group + "/" + k.Version
}

// Server holds objects, changes them, and allows everything.
type Server struct {
	*source.Source
	kind   Kind
	render Render

	mu      sync.Mutex
	objects [][]byte // by number
	version uint64
	history []change
	floor   uint64        // a watch from an earlier version gets 410
	changed chan struct{} // closed at the next change
}

// Render renders the object of a number as it is after an event. The first is of the zero Mark.
type Render func(number int, version uint64, m mark.Mark) []byte

type change struct {
	version uint64
	line    []byte // the change as a line of a watch
}

const (
	// FirstVersion is the resourceVersion before the first event.
	FirstVersion = 1000
	// maxHistory is how many changes are remembered.
	maxHistory = 20000
)

// New makes a server with so many objects. An event changes one of them after the other.
func New(kind Kind, objects int, render Render) *Server {
	s := &Server{kind: kind, render: render, version: FirstVersion, floor: FirstVersion, changed: make(chan struct{})}
	for number := range objects {
		s.objects = append(s.objects, render(number, FirstVersion, mark.Mark{}))
	}
	s.Source = source.New(s.modify)
	return s
}

// modify changes one of the objects after the other.
func (s *Server) modify(m mark.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	number := int(m.Seq) % len(s.objects)
	s.objects[number] = s.render(number, s.version, m)
	s.history = append(s.history, change{s.version, watchLine("MODIFIED", s.objects[number])})
	if len(s.history) > maxHistory {
		s.floor = s.history[0].version
		s.history = s.history[1:]
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func watchLine(kind string, object []byte) []byte {
	return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", kind, object)
}

// Start listens, and returns the address.
func (s *Server) Start(_ process.None, address *string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	*address = listener.Addr().String()
	go func() { _ = http.Serve(listener, s) }() // lasts as long as the process
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	group := s.kind.path()
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case "/api":
		answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "/apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		if s.kind.Group != "" {
			version := metav1.GroupVersionForDiscovery{GroupVersion: s.kind.Group + "/" + s.kind.Version, Version: s.kind.Version}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: s.kind.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
		answer(w, http.StatusOK, groups)
	case "/api/v1", group:
		list := metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/"),
		}
		if path == group {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: s.kind.Resource, Kind: s.kind.Kind, Namespaced: true, Verbs: []string{"get", "list", "watch"}})
		}
		if path == "/api/v1" {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: "namespaces", Kind: "Namespace", Verbs: []string{"get", "list", "watch"}})
		}
		answer(w, http.StatusOK, list)
	case "/api/v1/namespaces/kube-system":
		answer(w, http.StatusOK, map[string]any{
			"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "kube-system", "uid": "bench"},
		})
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
		review.Status.Allowed = true
		answer(w, http.StatusCreated, review)
	case group + "/" + s.kind.Resource:
		if watch, _ := strconv.ParseBool(r.URL.Query().Get("watch")); watch {
			s.watch(w, r)
		} else {
			s.list(w, r)
		}
	default:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone is no error
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	answer(w, code, status(code, reason, message))
}

func status(code int, reason metav1.StatusReason, message string) metav1.Status {
	s := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
	if reason == metav1.StatusReasonTimeout {
		s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}
	}
	return s
}
