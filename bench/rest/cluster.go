//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

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

const (
	namespace = "default"
	groups    = 100 // of which a selector selects one
)

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
	if c.config, err = plane.RESTConfig(); err != nil {
		return nil, err
	}
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return nil, err
	}
	c.apiServer, err = process.Find(os.Getpid(), "devcluster", "kube-apiserver")
	return c, err
}

// tlsConfig returns a TLS configuration without HTTP/2, which would cost the API server more.
func tlsConfig(config *rest.Config) (*tls.Config, error) {
	made, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	made = made.Clone()
	made.NextProtos = []string{"http/1.1"}
	host, _, err := net.SplitHostPort(strings.TrimPrefix(config.Host, "https://"))
	made.ServerName = host
	return made, err
}

// list reads all pods as client-go would do it, and drops them.
func (c *cluster) list(ctx context.Context) error {
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.Host+everyPod, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept-Encoding", "identity")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func podName(number int) string { return fmt.Sprintf("worker-%05d", number) }

// createPods makes the pods with some numbers. The scheduler ignores them, so that they do not change. One in a
// hundred runs, and each belongs to one of a hundred groups.
func (c *cluster) createPods(ctx context.Context, from, to int) error {
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(16)
	pods := c.client.CoreV1().Pods(namespace)
	for number := from; number < to; number++ {
		group.Go(func() error {
			made, err := pods.Create(making, pod(number), metav1.CreateOptions{})
			if err != nil || number%groups != 0 {
				return err
			}
			made.Status.Phase = corev1.PodRunning
			_, err = pods.UpdateStatus(making, made, metav1.UpdateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("make the pods: %w", err)
	}
	return nil
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
			Labels: map[string]string{"app": "training", "group": fmt.Sprintf("g-%02d", number%groups), "team": "vision"},
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
