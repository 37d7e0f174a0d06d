//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/e2e/controlplane"
)

// cluster is a real control plane on loopback.
type cluster struct {
	*controlplane.ControlPlane
	config    *rest.Config
	client    *kubernetes.Clientset
	apiServer int // its process
}

// namespace is the namespace of the pods.
const namespace = "default"

// startCluster runs devcluster, and returns when it is ready.
func startCluster(ctx context.Context, binary, dir string) (_ *cluster, err error) {
	plane, err := controlplane.Start(ctx, controlplane.Options{Program: binary, Dir: dir, Nodes: 1})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			plane.Stop()
		}
	}()
	c := &cluster{ControlPlane: plane}
	if c.config, c.client, err = connect(plane.Kubeconfig()); err != nil {
		return nil, err
	}
	if c.apiServer, err = process.Find(os.Getpid(), "devcluster", "kube-apiserver"); err != nil {
		return nil, err
	}
	return c, nil
}

func connect(kubeconfig string) (*rest.Config, *kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1 // the API server's priority and fairness is the limit
	client, err := kubernetes.NewForConfig(config)
	return config, client, err
}

func podName(number int) string { return fmt.Sprintf("worker-%05d", number) }

// createPods makes pods that the scheduler ignores, so that only the benchmark changes them. It returns the size of
// one, in bytes, as the API server sends it.
func (c *cluster) createPods(ctx context.Context, count int) (size int, err error) {
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(patchers)
	for number := range count {
		group.Go(func() error {
			_, err := c.client.CoreV1().Pods(namespace).Create(making, pod(number), metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("make the pods: %w", err)
	}
	body, err := c.client.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").Name(podName(0)).
		SetHeader("Accept", "application/json").DoRaw(ctx)
	return len(body), err
}

// pod is a training worker of about 5 KB.
func pod(number int) *corev1.Pod {
	var env []corev1.EnvVar
	for i := range 12 {
		env = append(env, corev1.EnvVar{
			Name:  fmt.Sprintf("TRAINING_PARAMETER_%02d", i),
			Value: fmt.Sprintf("s3://models/team-vision/run-%05d/shard-%02d/", number, i) + strings.Repeat("x", 40),
		})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   podName(number),
			Labels: map[string]string{"app": "training", "run": fmt.Sprintf("run-%05d", number), "team": "vision"},
		},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "kubecast.io/bench"}},
			Containers: []corev1.Container{{
				Name:    "worker",
				Image:   "registry.example.org/team-vision/train:2026.1",
				Command: []string{"python", "-m", "train", "--config", "/etc/train/config.yaml"},
				Env:     env,
			}},
		},
	}
}

// currentVersion is the resourceVersion of the pods at this moment.
func (c *cluster) currentVersion(ctx context.Context) (string, error) {
	list, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	return list.ResourceVersion, nil
}

// token returns a token for a user who may read the cluster, and the configuration with which the gateway accepts it.
func token(binary, dir string, out io.Writer) (token, config string, err error) {
	key := filepath.Join(dir, "key.pem")
	cmd := exec.Command(binary, "token", "--key", key, "--user", "bench", "--group", "platform", "--ttl", "12h")
	cmd.Stderr = out
	said, err := cmd.Output()
	if err != nil {
		return "", "", fmt.Errorf("sign a token: %w", err)
	}
	return strings.TrimSpace(string(said)), fmt.Sprintf(`auth:
  jwt:
  - {issuer: "https://kubecast.local", audiences: [kubecast], publicKeyFile: %s.pub}
requests: {perUser: 0, perSecond: 0}
stream: {perUser: 0, perAddress: 0, watchesPerUser: 0}
`, key), nil
}
