//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// APIServer is the source behind the gateway. It has ConfigMaps, some for each of the good users, and large pods, by
// which the hostile user can make requests expensive. It allows everything, and counts its requests.
type APIServer struct {
	*source.Source
	asked atomic.Int64

	mu      sync.Mutex
	kinds   map[string]*kind
	version uint64
	changed chan struct{} // closed at the next change
}

// kind is the objects of one kind.
type kind struct {
	name, list string
	render     func(number int, version uint64, m mark.Mark) []byte
	objects    [][]byte // by number
	history    []change
	floor      uint64 // a watch from an earlier version gets 410
}

type change struct {
	version uint64
	line    []byte // the change as a line of a watch
}

const (
	firstVersion = 1000
	maxHistory   = 20000
	mapsOfUser   = 10
	manyPods     = 1000
	mapSize      = 2 << 10
	podSize      = 20 << 10
	podChanges   = 20 // per second
)

func newAPIServer() *APIServer {
	a := &APIServer{version: firstVersion, changed: make(chan struct{}), kinds: map[string]*kind{}}
	a.Source = source.New(func(m mark.Mark) {
		number := int(m.Seq % users)
		a.modify("configmaps", number*mapsOfUser+int(m.Seq/users)%mapsOfUser, m)
	})
	a.add(users*mapsOfUser, &kind{name: "configmaps", list: "ConfigMapList", render: configMap})
	a.add(manyPods, &kind{name: "pods", list: "PodList", render: pod})
	return a
}

func (a *APIServer) add(objects int, k *kind) {
	k.floor = firstVersion
	for number := range objects {
		k.objects = append(k.objects, k.render(number, firstVersion, mark.Mark{}))
	}
	a.kinds[k.name] = k
}

func namespaceOf(user int) string { return fmt.Sprintf("user-%03d", user) }

func configMap(number int, version uint64, m mark.Mark) []byte {
	b := metadata("ConfigMap", namespaceOf(number/mapsOfUser), "settings", number, version, m)
	return pad(append(b, `"data":{"payload":"`...), mapSize, `"}}`)
}

// pod is a pod of many fields.
func pod(number int, version uint64, m mark.Mark) []byte {
	b := metadata("Pod", namespaceOf(number%users), "worker", number, version, m)
	b = fmt.Appendf(b, `"spec":{"nodeName":"node-%d","priority":%d,"containers":[{"name":"main","env":[`, number%50, number*7919%1000)
	for i := range podSize / 100 {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"name":"PARAMETER_%03d","value":"s3://models/team/run-%05d/shard-%03d"}`, i, number, i)
	}
	b = append(b, `]}]},"status":{"phase":"Running","message":"`...)
	return pad(b, podSize, `"}}`)
}

func metadata(kind, namespace, name string, number int, version uint64, m mark.Mark) []byte {
	b := fmt.Appendf(nil, `{"kind":%q,"apiVersion":"v1","metadata":{"name":"%s-%05d","namespace":%q,"uid":"%s-0000-4000-8000-%012d",`+
		`"resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"bench"},"annotations":{"kubecast.io/bench":"`,
		kind, name, number, namespace, strings.ToLower(kind), number, version)
	return append(m.Append(b), `"}},`...)
}

func pad(b []byte, size int, end string) []byte {
	if missing := size - len(b) - len(end); missing > 0 {
		b = append(b, bytes.Repeat([]byte("k"), missing)...)
	}
	return append(b, end...)
}

func (a *APIServer) modify(name string, number int, m mark.Mark) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.kinds[name]
	a.version++
	k.objects[number] = k.render(number, a.version, m)
	k.history = append(k.history, change{a.version, watchLine("MODIFIED", k.objects[number])})
	if len(k.history) > maxHistory {
		k.floor = k.history[0].version
		k.history = k.history[1:]
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

func watchLine(kind string, object []byte) []byte {
	return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", kind, object)
}

// Start listens, and returns the address. From then on pods change.
func (a *APIServer) Start(_ process.None, address *string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	*address = listener.Addr().String()
	go func() { _ = http.Serve(listener, a) }() // these last as long as the process
	go func() {
		for number := range time.Tick(time.Second / podChanges) {
			a.modify("pods", int(number.UnixMilli()/(1000/podChanges)%manyPods), mark.Mark{})
		}
	}()
	return nil
}

// Asked returns the number of requests so far.
func (a *APIServer) Asked(_ process.None, count *int64) error {
	*count = a.asked.Load()
	return nil
}

// ServeHTTP implements http.Handler.
func (a *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.asked.Add(1)
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case "/api":
		answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "/apis":
		answer(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	case "/api/v1":
		verbs := []string{"get", "list", "watch"}
		answer(w, http.StatusOK, metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs},
				{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: verbs},
				{Name: "namespaces", Kind: "Namespace", Verbs: verbs},
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
	case "/api/v1/configmaps", "/api/v1/pods":
		k := a.kinds[strings.TrimPrefix(path, "/api/v1/")]
		if watch, _ := strconv.ParseBool(r.URL.Query().Get("watch")); watch {
			a.watch(w, r, k)
		} else {
			a.answerList(w, r, k)
		}
	default:
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	}
}

func (a *APIServer) answerList(w http.ResponseWriter, r *http.Request, k *kind) {
	query := r.URL.Query()
	wanted, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	a.mu.Lock()
	objects, version := append([][]byte(nil), k.objects...), a.version
	a.mu.Unlock()
	if wanted > version {
		fail(w, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Too large resource version")
		return
	}
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 {
		objects = objects[:min(limit, len(objects))]
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[`, k.list, version)
	_, _ = w.Write(bytes.Join(objects, []byte(","))) // a client that has gone is no error
	_, _ = w.Write([]byte("]}"))
}

// watch sends the changes after a version.
func (a *APIServer) watch(w http.ResponseWriter, r *http.Request, k *kind) {
	query := r.URL.Query()
	var timeUp <-chan time.Time
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		timeUp = time.After(time.Duration(seconds) * time.Second)
	}
	after, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	w.Header().Set("Content-Type", "application/json")
	control := http.NewResponseController(w)
	for {
		news, gone, changed := a.after(k, after)
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
func (a *APIServer) after(k *kind, version uint64) (news []change, gone bool, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if version < k.floor {
		return nil, true, nil
	}
	i := sort.Search(len(k.history), func(i int) bool { return k.history[i].version > version })
	return k.history[i:len(k.history):len(k.history)], false, a.changed
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
