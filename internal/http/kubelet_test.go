package http

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
)

// between is a kind that may stand between an owner and its pods.
var between = before(func(api *apitest.API) {
	api.Serve(apitest.Deployments, true)
})

// kubelet has the logs of the containers of pods, and says in these what runs. Its clock is the test's.
type kubelet struct {
	mu       sync.Mutex
	changed  chan struct{} // closed at the next change
	runs     map[string]*logRun
	pods     map[string]*fakePod
	requests int
	breaks   int // connections of an earlier break are broken
	put      func(key string, fields ...string)
	instead  atomic.Pointer[http.HandlerFunc] // answers in its place
}

type fakePod struct {
	fields     []string
	containers []string
	restarts   map[string]int
	waits      map[string]bool
}

type logRun struct {
	lines    []string
	times    []time.Time
	began    time.Time
	ended    bool
	exitCode int
}

func newKubelet() *kubelet {
	return &kubelet{changed: make(chan struct{}), runs: map[string]*logRun{}, pods: map[string]*fakePod{}}
}

func (k *kubelet) change(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
	close(k.changed)
	k.changed = make(chan struct{})
}

func runKey(pod, container string, restart int) string {
	return fmt.Sprint(pod, "/", container, "/", restart)
}

// starts starts containers of a pod, which it makes if there is none; one that has run runs again.
func (k *kubelet) starts(pod string, containers ...string) {
	k.change(func() {
		p := k.pods[pod]
		if p == nil {
			p = &fakePod{restarts: map[string]int{}, waits: map[string]bool{}}
			k.pods[pod] = p
		}
		for _, c := range containers {
			if slices.Contains(p.containers, c) {
				p.restarts[c]++
			} else {
				p.containers = append(p.containers, c)
			}
			p.waits[c] = false
			k.runs[runKey(pod, c, p.restarts[c])] = &logRun{began: time.Now()}
		}
	})
	k.report(pod)
}

// writes writes lines of the run that runs.
func (k *kubelet) writes(pod, container string, lines ...string) {
	k.change(func() {
		r := k.runs[runKey(pod, container, k.pods[pod].restarts[container])]
		for _, line := range lines {
			now := time.Now().UTC()
			r.lines = append(r.lines, now.Format("2006-01-02T15:04:05.000000000Z07:00")+" "+line+"\n")
			r.times = append(r.times, now)
		}
	})
}

// exits ends the run that runs. What the pod says comes a moment later, as with a real one.
func (k *kubelet) exits(pod, container string, code int) {
	k.change(func() {
		r := k.runs[runKey(pod, container, k.pods[pod].restarts[container])]
		r.ended, r.exitCode = true, code
	})
	time.Sleep(50 * time.Millisecond)
	k.report(pod)
}

// backsOff has a container that has ended wait to be started again.
func (k *kubelet) backsOff(pod, container string) {
	k.change(func() { k.pods[pod].waits[container] = true })
	k.report(pod)
}

// breakAll breaks all connections.
func (k *kubelet) breakAll() { k.change(func() { k.breaks++ }) }

// report writes the pod's status.
func (k *kubelet) report(pod string) {
	k.mu.Lock()
	p := k.pods[pod]
	var statuses []map[string]any
	state := func(r *logRun) map[string]any {
		if !r.ended {
			return map[string]any{"running": map[string]any{"startedAt": r.began}}
		}
		reason := "Completed"
		if r.exitCode != 0 {
			reason = "Error"
		}
		return map[string]any{"terminated": map[string]any{"startedAt": r.began, "exitCode": r.exitCode, "reason": reason}}
	}
	for _, c := range p.containers {
		n := p.restarts[c]
		s := map[string]any{"name": c, "restartCount": n, "state": state(k.runs[runKey(pod, c, n)])}
		switch {
		case p.waits[c]:
			s["lastState"], s["state"] = s["state"], map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}}
		case n > 0:
			s["lastState"] = state(k.runs[runKey(pod, c, n-1)])
		}
		statuses = append(statuses, s)
	}
	fields := slices.Clone(p.fields)
	k.mu.Unlock()
	text, _ := json.Marshal(statuses)
	k.put(pod, append(fields, "status.containerStatuses:="+string(text))...)
}

func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	pod, c := parts[3]+"/"+parts[5], q.Get("container")
	k.mu.Lock()
	k.requests++
	p := k.pods[pod]
	var of *logRun
	if p != nil {
		n := p.restarts[c]
		if q.Get("previous") == "true" {
			n--
		}
		of = k.runs[runKey(pod, c, n)]
	}
	at, breaks := 0, k.breaks
	if of != nil && q.Has("tailLines") {
		n, _ := strconv.Atoi(q.Get("tailLines"))
		at = max(0, len(of.lines)-n)
	}
	k.mu.Unlock()
	if of == nil {
		w.WriteHeader(404)
		return
	}
	since, _ := time.Parse(time.RFC3339, q.Get("sinceTime"))
	w.Header().Set("Content-Type", "text/plain")
	flush := func() { _ = http.NewResponseController(w).Flush() }
	flush()
	for {
		k.mu.Lock()
		text, changed, broken, ended := "", k.changed, k.breaks != breaks, of.ended || q.Get("follow") != "true"
		for ; at < len(of.lines) && len(text) < 32<<10; at++ {
			if !of.times[at].Before(since) {
				text += of.lines[at]
			}
		}
		more := at < len(of.lines)
		k.mu.Unlock()
		if broken {
			_, _ = io.WriteString(w, text[:len(text)/2])
			panic(http.ErrAbortHandler)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		flush()
		switch {
		case more:
		case ended:
			return
		default:
			select {
			case <-changed:
			case <-r.Context().Done():
				return
			}
		}
	}
}

// withKubelet runs a test with replicas whose cluster has a kubelet.
func withKubelet(t *testing.T, replicas int, test func(*testing.T, *kubelet, []*gateway), opts ...option) {
	t.Helper()
	var k *kubelet
	opts = append(opts, func(g *gateway, _ *Options) {
		if k == nil || g.api.Logs == nil {
			k = newKubelet()
			api := g.api
			k.put = func(key string, fields ...string) { api.Put("pods", key, fields...) }
			api.Logs = func(w http.ResponseWriter, r *http.Request) {
				if answer := k.instead.Load(); answer != nil {
					(*answer)(w, r)
					return
				}
				k.ServeHTTP(w, r)
			}
		}
	})
	inBubbleOf(t, replicas, func(t *testing.T, all []*gateway) { test(t, k, all) }, opts...)
}

// vanishes ends all runs of a pod, which is gone.
func (k *kubelet) vanishes(pod string) {
	k.change(func() {
		for _, c := range k.pods[pod].containers {
			k.runs[runKey(pod, c, k.pods[pod].restarts[c])].ended = true
		}
		delete(k.pods, pod)
	})
}

func ownedBy(kind, apiVersion string, names ...string) string {
	var refs []string
	for _, name := range names {
		refs = append(refs, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":"u"}`, apiVersion, kind, name))
	}
	return "metadata.ownerReferences:=[" + strings.Join(refs, ",") + "]"
}

// ownedPod makes a pod that belongs to owners.
func (k *kubelet) ownedPod(pod, owners string) {
	k.pods[pod] = &fakePod{fields: []string{owners}, restarts: map[string]int{}, waits: map[string]bool{}}
}
