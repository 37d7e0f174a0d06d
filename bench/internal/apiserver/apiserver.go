//go:build linux

// Package apiserver is an API server for benchmarks: some kinds, whose objects are changed at a
// steady rate or all at once. It runs on the same processors as what is measured, so it must be
// cheap: it renders a change once, and scans nothing. internal/apitest is made for faults, and is
// not that cheap.
package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// Kind is a kind that a server has.
type Kind struct {
	Group, Version, Resource, Kind string
	Whole                          bool // of the cluster, and not of namespaces
	Objects                        int  // how many there are
	Render                         Render
	// Lazy says that objects are rendered when they are listed, and only what they were rendered from is kept: of a million,
	// the texts would take as much memory as what is measured.
	Lazy    bool
	History int // how many changes are remembered; 0: maxHistory
}

// Render renders the object of a number as it is after an event. The first is of the zero Mark.
type Render func(number int, version uint64, m mark.Mark) []byte

func (k Kind) group() string {
	if k.Group == "" {
		return "/api/" + k.Version
	}
	return "/apis/" + k.Group + "/" + k.Version
}

// Server holds objects, changes them, allows everything, and counts its requests.
type Server struct {
	*source.Source
	kinds []*kind
	asked atomic.Int64

	mu      sync.Mutex
	version uint64
	changed chan struct{} // closed at the next change
}

// kind is the objects of one kind.
type kind struct {
	Kind
	objects [][]byte      // by number; nil if the kind is lazy
	states  []objectState // by number; nil if it is not
	history []change
	floor   uint64 // a watch from an earlier version gets 410
}

// objectState is what an object is rendered from.
type objectState struct {
	version uint64
	mark    mark.Mark
}

type change struct {
	version uint64
	line    []byte // the change as a line of a watch
}

const (
	// FirstVersion is the resourceVersion before the first event.
	FirstVersion = 1000
	// maxHistory is how many changes of a kind are remembered.
	maxHistory = 20000
)

// New makes a server of some kinds. An event changes one object of the first after the other.
func New(kinds ...Kind) *Server {
	s := &Server{version: FirstVersion, changed: make(chan struct{})}
	for _, of := range kinds {
		k := &kind{Kind: of, floor: FirstVersion}
		if of.Lazy {
			k.states = make([]objectState, of.Objects)
			for number := range k.states {
				k.states[number].version = FirstVersion
			}
		}
		for number := range of.Objects - len(k.states) {
			k.objects = append(k.objects, of.Render(number, FirstVersion, mark.Mark{}))
		}
		s.kinds = append(s.kinds, k)
	}
	s.Source = source.New(func(m mark.Mark) { s.Modify(0, int(m.Seq)%kinds[0].Objects, m) })
	return s
}

// Modify changes an object of the kind of an index.
func (s *Server) Modify(of, number int, m mark.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[of]
	s.version++
	object := k.Render(number, s.version, m)
	if k.Lazy {
		k.states[number] = objectState{s.version, m}
	} else {
		k.objects[number] = object
	}
	k.history = append(k.history, change{s.version, watchLine("MODIFIED", object)})
	if len(k.history) > cmp.Or(k.History, maxHistory) {
		k.floor = k.history[0].version
		k.history = k.history[1:]
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Expire forgets all history, as an API server that restarts does, so that every watch has to begin with a list.
func (s *Server) Expire(_ process.None, _ *process.None) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++ // so that those are behind who were told everything
	for _, k := range s.kinds {
		k.floor, k.history = s.version, nil
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

func watchLine(kind string, object []byte) []byte {
	return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", kind, object)
}

// Start listens, and returns the address.
func (s *Server) Start(_ process.None, address *string) (err error) {
	*address, err = Serve(s)
	return err
}

// Serve serves a handler at an address of its own on loopback, for as long as the process lasts.
func Serve(handler http.Handler) (address string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = http.Serve(listener, handler) }()
	return listener.Addr().String(), nil
}

// Asked returns the number of requests so far.
func (s *Server) Asked(_ process.None, count *int64) error {
	*count = s.asked.Load()
	return nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	path := strings.TrimSuffix(r.URL.Path, "/")
	for _, k := range s.kinds {
		if path != k.group()+"/"+k.Resource {
			continue
		}
		if watch, _ := strconv.ParseBool(r.URL.Query().Get("watch")); watch {
			s.watch(w, r, k)
		} else {
			s.list(w, r, k)
		}
		return
	}
	switch path {
	case "/api":
		answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "/apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, k := range s.kinds {
			if k.Group != "" {
				version := metav1.GroupVersionForDiscovery{GroupVersion: k.Group + "/" + k.Version, Version: k.Version}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
			}
		}
		answer(w, http.StatusOK, groups)
	case "/api/v1/namespaces/kube-system":
		answer(w, http.StatusOK, map[string]any{
			"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "kube-system", "uid": "bench", "resourceVersion": "1"},
		})
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
		review.Status.Allowed = true
		answer(w, http.StatusCreated, review)
	default:
		if resources := s.resources(path); resources != nil {
			answer(w, http.StatusOK, metav1.APIResourceList{
				TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
				GroupVersion: strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/"),
				APIResources: resources,
			})
			return
		}
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	}
}

// resources are those of a group's version; nil: there is none of this path.
func (s *Server) resources(group string) (all []metav1.APIResource) {
	verbs := []string{"get", "list", "watch"}
	for _, k := range s.kinds {
		if group == k.group() {
			all = append(all, metav1.APIResource{Name: k.Resource, Kind: k.Kind.Kind, Namespaced: !k.Whole, Verbs: verbs})
		}
	}
	if group == "/api/v1" {
		all = append(all, metav1.APIResource{Name: "namespaces", Kind: "Namespace", Verbs: verbs})
	}
	return all
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
