package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubecast/kubecast/e2e/process"
)

// ownKubelet is the label of nodes that devcluster leaves alone.
const ownKubelet = "devcluster.kubecast.io/own-kubelet"

// kubelet runs the pods of a node of its own as processes: init containers and the first container, each the gateway with the container's
// arguments, the ConfigMaps and Secrets that it mounts as files, the token of its ServiceAccount, its readiness probe, preStop and grace period.
// A pod has an address of its own on loopback. Where files and addresses are differs from a container's, so paths of mounts are replaced in arguments and files.
type kubelet struct {
	s       *stage
	node    string
	dir     string
	ctx     context.Context
	running sync.WaitGroup
	errors  func(error)

	mu   sync.Mutex
	seen map[types.UID]bool
	logs map[string]*process.Process // by pod/container
}

// startKubelet makes a node, which takes pods that tolerate and select it by ownKubelet=NODE.
func (s *stage) startKubelet(t *testing.T, node string) *kubelet {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k := &kubelet{s: s, node: node, dir: t.TempDir(), ctx: ctx, seen: map[types.UID]bool{}, logs: map[string]*process.Process{}, errors: func(err error) { t.Error(err) }}
	capacity := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("100")}
	_, err := s.kube.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{ownKubelet: node}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: ownKubelet, Value: node, Effect: corev1.TaintEffectNoSchedule}}},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	k.running.Go(k.watch)
	t.Cleanup(func() {
		cancel()
		k.running.Wait()
		if err := s.kube.CoreV1().Nodes().Delete(context.Background(), node, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return k
}

// watch looks for pods of the node.
func (k *kubelet) watch() {
	for k.ctx.Err() == nil {
		pods, err := k.s.kube.CoreV1().Pods("").List(k.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.node})
		if err == nil {
			for _, pod := range pods.Items {
				k.mu.Lock()
				begun := k.seen[pod.UID]
				k.seen[pod.UID] = true
				k.mu.Unlock()
				if !begun {
					k.running.Go(func() { k.run(pod.DeepCopy()) })
				}
			}
		}
		sleep(k.ctx, 200*time.Millisecond)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// podAddress is one on loopback at which nobody has a pod's ports, of this process or of another.
func podAddress() (string, error) {
	for range 100 {
		ip := fmt.Sprintf("127.%d.%d.%d", 16+rand.IntN(224), rand.IntN(256), 1+rand.IntN(254))
		free := true
		for _, port := range []string{"8080", "9090"} {
			listener, err := net.Listen("tcp", net.JoinHostPort(ip, port))
			if free = free && err == nil; err == nil {
				_ = listener.Close()
			}
		}
		if free {
			return ip, nil
		}
	}
	return "", errors.New("no address is free on loopback")
}

// isGone reports whether a pod is no more, as the API server says: one that does not answer says nothing.
func isGone(pod, now *corev1.Pod, err error) bool {
	return apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID
}

// run is a pod's life.
func (k *kubelet) run(pod *corev1.Pod) {
	ip, err := podAddress()
	if err != nil {
		k.errors(fmt.Errorf("pod %s: %w", pod.Name, err))
		return
	}
	dir := filepath.Join(k.dir, string(pod.UID))
	mounts, err := k.mount(pod, dir)
	if err != nil {
		k.errors(fmt.Errorf("pod %s: %w", pod.Name, err))
		return
	}
	for _, c := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers[0]) {
		args := []string{}
		for _, a := range c.Args {
			args = append(args, mounts.Replace(a))
		}
		switch args[0] {
		case "serve":
			args = append(args, "--listen", ip+":8080", "--ops-listen", ip+":9090", "--kubeconfig", filepath.Join(dir, "kubeconfig"))
		case "check", "preflight":
			args = append(args, "--kubeconfig", filepath.Join(dir, "kubeconfig"))
		}
		p, err := process.Start(process.Options{Path: k.s.gateway, Args: args})
		if err != nil {
			k.errors(err)
			return
		}
		k.mu.Lock()
		k.logs[pod.Name+"/"+c.Name] = p
		k.mu.Unlock()
		if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			select {
			case <-p.Done():
			case <-k.ctx.Done():
				p.Kill()
			}
			if code := p.ExitCode(); code != 0 || c.Name == pod.Spec.Containers[0].Name {
				k.ended(pod, c.Name, code)
				return
			}
			continue
		}
		k.serve(pod, c, p, ip)
	}
}

// ended tells that a pod has ended, and lets it go once it is to go.
func (k *kubelet) ended(pod *corev1.Pod, container string, code int) {
	phase := corev1.PodSucceeded
	if code != 0 {
		phase = corev1.PodFailed
	}
	k.tell(pod, fmt.Sprintf(`{"status":{"phase":%q,"containerStatuses":[{"name":%q,"image":"x","imageID":"x","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":%d}}}]}}`, phase, container, code))
	for k.ctx.Err() == nil {
		now, err := k.s.kube.CoreV1().Pods(pod.Namespace).Get(k.ctx, pod.Name, metav1.GetOptions{})
		if isGone(pod, now, err) {
			return
		}
		if err == nil && now.DeletionTimestamp != nil {
			k.remove(pod)
			return
		}
		sleep(k.ctx, 200*time.Millisecond)
	}
}

// serve probes a container's readiness, until its pod is to end; then it waits for preStop, and ends it within the grace period.
func (k *kubelet) serve(pod *corev1.Pod, c corev1.Container, p *process.Process, ip string) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	was := ""
	for k.ctx.Err() == nil {
		now, err := k.s.kube.CoreV1().Pods(pod.Namespace).Get(k.ctx, pod.Name, metav1.GetOptions{})
		if isGone(pod, now, err) || err == nil && now.DeletionTimestamp != nil {
			break
		}
		ready := "False"
		if response, err := client.Get("http://" + ip + ":9090" + c.ReadinessProbe.HTTPGet.Path); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				ready = "True"
			}
		}
		if ready != was {
			k.tell(pod, fmt.Sprintf(`{"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}],"conditions":[{"type":"Ready","status":%q},{"type":"ContainersReady","status":%q}],
				"containerStatuses":[{"name":%q,"image":"x","imageID":"x","ready":%t,"restartCount":0,"state":{"running":{}}}]}}`, ip, ip, ready, ready, c.Name, ready == "True"))
			was = ready
		}
		sleep(k.ctx, 300*time.Millisecond)
	}
	if k.ctx.Err() == nil && c.Lifecycle != nil {
		sleep(k.ctx, time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second)
	}
	p.Signal(syscall.SIGTERM)
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	if c.Lifecycle != nil {
		grace -= time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
	}
	select {
	case <-p.Done():
	case <-k.ctx.Done():
		p.Kill()
	case <-time.After(grace):
		k.errors(fmt.Errorf("pod %s had to be killed after its grace period", pod.Name))
		p.Kill()
	}
	if code := p.ExitCode(); code != 0 && k.ctx.Err() == nil {
		k.errors(fmt.Errorf("pod %s ended with %d: %s", pod.Name, code, p.Stderr))
	}
	k.remove(pod)
}

func (k *kubelet) tell(pod *corev1.Pod, status string) {
	_, err := k.s.kube.CoreV1().Pods(pod.Namespace).Patch(k.ctx, pod.Name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	if err != nil && k.ctx.Err() == nil && !strings.Contains(err.Error(), "not found") {
		k.errors(fmt.Errorf("the status of pod %s: %w", pod.Name, err))
	}
}

func (k *kubelet) remove(pod *corev1.Pod) {
	now := int64(0)
	_ = k.s.kube.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
}

// mount writes the files of a pod's volumes, and says what the paths of its mounts are here.
func (k *kubelet) mount(pod *corev1.Pod, dir string) (*strings.Replacer, error) {
	volumes, claims := map[string]map[string][]byte{}, map[string]string{}
	for _, v := range pod.Spec.Volumes {
		files := map[string][]byte{}
		switch {
		case v.ConfigMap != nil:
			found, err := k.s.kube.CoreV1().ConfigMaps(pod.Namespace).Get(k.ctx, v.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			for name, text := range found.Data {
				files[name] = []byte(text)
			}
		case v.Secret != nil:
			found, err := k.s.kube.CoreV1().Secrets(pod.Namespace).Get(k.ctx, v.Secret.SecretName, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			files = found.Data
		case v.PersistentVolumeClaim != nil:
			claims[v.Name] = filepath.Join(k.dir, "claims", pod.Namespace, v.PersistentVolumeClaim.ClaimName)
			if err := os.MkdirAll(claims[v.Name], 0o700); err != nil {
				return nil, err
			}
		}
		volumes[v.Name] = files
	}
	var pairs []string
	here := map[string]string{}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		here[m.MountPath] = m.Name
	}
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(here))) { // the longer of two that begin alike is first
		pairs = append(pairs, path, filepath.Join(dir, path))
	}
	mounts := strings.NewReplacer(pairs...)
	for path, volume := range here {
		if claim := claims[volume]; claim != "" {
			if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700), os.Symlink(claim, filepath.Join(dir, path))); err != nil {
				return nil, err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Join(dir, path), 0o700); err != nil {
			return nil, err
		}
		for name, text := range volumes[volume] {
			if err := os.WriteFile(filepath.Join(dir, path, name), []byte(mounts.Replace(string(text))), 0o600); err != nil {
				return nil, err
			}
		}
	}
	if automount := pod.Spec.AutomountServiceAccountToken; automount != nil && !*automount {
		return mounts, nil
	}
	return mounts, k.kubeconfig(pod, filepath.Join(dir, "kubeconfig"))
}

// kubeconfig is what a pod's token and certificate in /var/run/secrets come to.
func (k *kubelet) kubeconfig(pod *corev1.Pod, file string) error {
	token, err := k.s.kube.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(k.ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(k.s.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	return clientcmd.WriteToFile(*config, file)
}

// log is what a container has printed.
func (k *kubelet) log(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.logs[name]; p != nil {
		return p.Stdout.String() + p.Stderr.String()
	}
	return ""
}
