package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	crilogs "k8s.io/cri-client/pkg/logs"
)

// kubelet is the part of a kubelet that the API server asks for logs, for all simulated nodes; kwok plays the rest.
//
// The log of a container begins to exist when it is first asked for. From then on it is a file as
// container runtimes write it, with what the container has written since its start, and it grows
// until the container ends. It is read by the kubelet's own code, so all parameters mean what they
// mean on a real node.
type kubelet struct {
	client kubernetes.Interface
	dir    directory
	port   int
	server *http.Server

	ctx     context.Context // ends with it
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	logs map[logName]*containerLog
}

// logName is one run of a container.
type logName struct {
	pod       types.UID
	container string
	restart   int32
}

// containerLog is the log of one run of a container.
type containerLog struct {
	path  string
	ended chan struct{} // closed once all of it is written
}

// startKubelet listens on a free port of 127.0.0.1.
func startKubelet(dir directory, client kubernetes.Interface) (*kubelet, error) {
	// The API server's own certificate is for 127.0.0.1, too.
	certificate, err := tls.LoadX509KeyPair(dir.pki("apiserver.crt"), dir.pki("apiserver.key"))
	if err != nil {
		return nil, fmt.Errorf("the kubelets' certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the kubelets' port: %w", err)
	}
	k := &kubelet{client: client, dir: dir, port: listener.Addr().(*net.TCPAddr).Port, logs: map[logName]*containerLog{}}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	routes := http.NewServeMux()
	routes.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serve)
	k.server = &http.Server{
		Handler:     routes,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{certificate}},
		BaseContext: func(net.Listener) context.Context { return k.ctx },
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	k.running.Go(func() { _ = k.server.ServeTLS(listener, "", "") }) // it ends by stop only
	return k, nil
}

func (k *kubelet) stop() {
	k.cancel()
	_ = k.server.Close()
	k.running.Wait()
}

// serve answers as a kubelet does, whose words the API server passes on.
func (k *kubelet) serve(w http.ResponseWriter, r *http.Request) {
	options, err := readLogOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	pod, err := k.client.CoreV1().Pods(r.PathValue("namespace")).Get(r.Context(), r.PathValue("pod"), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	found, err := k.find(pod, r.PathValue("container"), r.URL.Query().Get("previous") == "true")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, err)
		return
	}
	out := flushing{w, http.NewResponseController(w)}
	// What fails after the first byte is told by nobody.
	_ = crilogs.ReadLogs(r.Context(), found.path, "", options, containerRuntime{log: found}, out, out)
}

func readLogOptions(query url.Values) (*crilogs.LogOptions, error) {
	options := &crilogs.LogOptions{Follow: query.Get("follow") == "true", Timestamp: query.Get("timestamps") == "true"}
	number := func(name string) *int64 {
		if !query.Has(name) {
			return nil
		}
		n, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil {
			n = 0
		}
		return &n
	}
	options.TailLines, options.LimitBytes = number("tailLines"), number("limitBytes")
	if seconds := number("sinceSeconds"); seconds != nil {
		options.Since = time.Now().Add(-time.Duration(*seconds) * time.Second)
	}
	if text := query.Get("sinceTime"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, fmt.Errorf("sinceTime: %w", err)
		}
		options.Since = since
	}
	return options, nil
}

// find returns the log of a container, and makes it if it is asked for for the first time. Errors are a kubelet's.
func (k *kubelet) find(pod *corev1.Pod, container string, previous bool) (*containerLog, error) {
	status, ok := statusOf(pod, container)
	if !ok {
		return nil, fmt.Errorf("container %q in pod %q is not available", container, pod.Name)
	}
	restart, state := status.RestartCount, status.State
	if previous {
		if restart, state = restart-1, status.LastTerminationState; restart < 0 || state.Terminated == nil {
			return nil, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
		}
	}
	var started metav1.Time
	switch {
	case state.Running != nil:
		started = state.Running.StartedAt
	case state.Terminated != nil:
		started = state.Terminated.StartedAt
	case state.Waiting != nil && state.Waiting.Reason != "":
		return nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod.Name, state.Waiting.Reason)
	default:
		return nil, fmt.Errorf("container %q in pod %q is not available", container, pod.Name)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	name := logName{pod.UID, container, restart}
	if known := k.logs[name]; known != nil {
		return known, nil
	}
	folder := k.dir.path("pod-logs", strings.Join([]string{pod.Namespace, pod.Name, string(pod.UID)}, "_"), container, strconv.Itoa(int(restart)))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	made := &containerLog{path: filepath.Join(folder, "log"), ended: make(chan struct{})}
	file, err := os.OpenFile(made.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	output := newTrainingOutput(pod, name, started.Time)
	if _, err := file.Write(output.until(time.Now(), state.Terminated)); err != nil {
		file.Close()
		return nil, err
	}
	k.logs[name] = made
	if state.Terminated != nil {
		close(made.ended)
		return made, file.Close()
	}
	k.running.Go(func() {
		defer file.Close()
		k.write(file, output, pod, name)
		close(made.ended)
	})
	return made, nil
}

func statusOf(pod *corev1.Pod, container string) (corev1.ContainerStatus, bool) {
	for _, all := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for _, status := range all {
			if status.Name == container {
				return status, true
			}
		}
	}
	return corev1.ContainerStatus{}, false
}

// write writes what the container writes, until it has ended.
func (k *kubelet) write(file io.Writer, output *trainingOutput, pod *corev1.Pod, name logName) {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	states := make(chan *corev1.ContainerStateTerminated)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() { k.awaitEnd(ctx, pod, name, states) })
	for {
		var ended *corev1.ContainerStateTerminated
		timer := time.NewTimer(time.Until(output.next()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case ended = <-states:
			timer.Stop()
		case <-timer.C:
		}
		if _, err := file.Write(output.until(time.Now(), ended)); err != nil || ended != nil {
			return
		}
	}
}

// awaitEnd says how the run of a container ended.
func (k *kubelet) awaitEnd(ctx context.Context, pod *corev1.Pod, name logName, ended chan<- *corev1.ContainerStateTerminated) {
	killed := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Killed"}
	tell := func(how *corev1.ContainerStateTerminated) {
		select {
		case ended <- how:
		case <-ctx.Done():
		}
	}
	for ; ctx.Err() == nil; sleep(ctx, 200*time.Millisecond) {
		now, err := k.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && now.UID != name.pod:
			tell(killed)
			return
		case err != nil:
			sleep(ctx, time.Second) // the API server may be away on purpose
			continue
		}
		how := now
		for how != nil {
			status, _ := statusOf(how, name.container)
			switch {
			case status.RestartCount > name.restart && status.LastTerminationState.Terminated != nil:
				tell(status.LastTerminationState.Terminated)
				return
			case status.RestartCount == name.restart && status.State.Terminated != nil:
				tell(status.State.Terminated)
				return
			}
			how = k.nextState(ctx, how)
		}
	}
}

// nextState waits for another state of a pod. It returns nil if the pod has gone, or nobody tells any more.
func (k *kubelet) nextState(ctx context.Context, pod *corev1.Pod) *corev1.Pod {
	watch, err := k.client.CoreV1().Pods(pod.Namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + pod.Name, ResourceVersion: pod.ResourceVersion,
	})
	if err != nil {
		sleep(ctx, time.Second)
		return nil
	}
	defer watch.Stop()
	event := <-watch.ResultChan() // or none, once the watch has ended
	if now, ok := event.Object.(*corev1.Pod); ok && event.Type == "MODIFIED" && now.UID == pod.UID {
		return now
	}
	return nil
}

// containerRuntime is asked by the kubelet's code whether a container still runs, and nothing else.
type containerRuntime struct {
	internalapi.RuntimeService
	log *containerLog
}

func (c containerRuntime) ContainerStatus(context.Context, string, bool) (*runtimeapi.ContainerStatusResponse, error) {
	state := runtimeapi.ContainerState_CONTAINER_RUNNING
	select {
	case <-c.log.ended:
		state = runtimeapi.ContainerState_CONTAINER_EXITED
	default:
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{State: state}}, nil
}

// flushing sends each line at once.
type flushing struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (f flushing) Write(line []byte) (int, error) {
	n, err := f.ResponseWriter.Write(line)
	return n, errors.Join(err, f.control.Flush())
}
