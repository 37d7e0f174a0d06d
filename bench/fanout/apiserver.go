//go:build linux

package main

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

// APIServer is the source behind the gateway: an API server that holds ConfigMaps, changes them, and allows
// everything. It runs on the same processors as what is measured, so it must be cheap: it renders a change once, and
// scans nothing. internal/apitest is made for faults, and is not that cheap.
type APIServer struct {
	*source.Source

	mu      sync.Mutex
	objects [][]byte // by number
	version uint64
	history []change
	floor   uint64        // a watch from an earlier version gets 410
	changed chan struct{} // closed at the next change
}

type change struct {
	version uint64
	line    []byte // the change as a line of a watch
}

// apiObjects is how many ConfigMaps there are; maxHistory how many changes are remembered.
const (
	apiObjects = 2000
	maxHistory = 20000
)

func newAPIServer() *APIServer {
	a := &APIServer{version: firstVersion, floor: firstVersion, changed: make(chan struct{})}
	for number := range apiObjects {
		a.objects = append(a.objects, object(number, firstVersion, mark.Mark{}))
	}
	a.Source = source.New(a.modify)
	return a
}

// modify changes one of the objects after the other.
func (a *APIServer) modify(m mark.Mark) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	number := int(m.Seq) % apiObjects
	a.objects[number] = object(number, a.version, m)
	a.history = append(a.history, change{a.version, watchLine("MODIFIED", a.objects[number])})
	if len(a.history) > maxHistory {
		a.floor = a.history[0].version
		a.history = a.history[1:]
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

func watchLine(kind string, object []byte) []byte {
	return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", kind, object)
}

// Start listens, and returns the address.
func (a *APIServer) Start(_ process.None, address *string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	*address = listener.Addr().String()
	go func() { _ = http.Serve(listener, a) }() // lasts as long as the process
	return nil
}

// ServeHTTP implements http.Handler.
func (a *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case "/api":
		answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "/apis":
		answer(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	case "/api/v1":
		answer(w, http.StatusOK, metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: []string{"get", "list", "watch"}},
				{Name: "namespaces", Kind: "Namespace", Verbs: []string{"get", "list", "watch"}},
			},
		})
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
	case "/api/v1/configmaps":
		if watch, _ := strconv.ParseBool(r.URL.Query().Get("watch")); watch {
			a.watch(w, r)
		} else {
			a.list(w, r)
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
