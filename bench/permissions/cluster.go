//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubecast/kubecast/bench/internal/mark"
	"github.com/kubecast/kubecast/e2e/controlplane"
)

// cluster is a real control plane on loopback.
type cluster struct {
	*controlplane.ControlPlane
	client *kubernetes.Clientset
}

// atOnce is how many requests are made at the same time.
const atOnce = 16

// viewer is the ClusterRole that users are bound to, by namespace.
const viewer = "bench-viewer"

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
	config, err := plane.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	return &cluster{ControlPlane: plane, client: client}, err
}

func namespaceName(number int) string { return fmt.Sprintf("team-%02d", number) }

// each calls do for the numbers below a count, for some of them at once.
func each(ctx context.Context, count int, do func(ctx context.Context, number int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for number := range count {
		group.Go(func() error { return do(ctx, number) })
	}
	return group.Wait()
}

func (c *cluster) createNamespaces(ctx context.Context, count int) error {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: viewer},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods", "configmaps"}, Verbs: []string{"get", "list", "watch"}}},
	}
	if _, err := c.client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	return each(ctx, count, func(ctx context.Context, number int) error {
		name := namespaceName(number)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
		// Pods cannot be made before their service account exists. The other objects that the controllers make are
		// waited for, too, since later only the benchmark is to change anything.
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			_, err := c.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			if err == nil {
				_, err = c.client.CoreV1().ConfigMaps(name).Get(ctx, rootCertificate, metav1.GetOptions{})
			}
			if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
				return err
			}
		}
	})
}

// rootCertificate is the ConfigMap that a controller puts into each namespace. It is the only one in the benchmark's
// namespaces.
const rootCertificate = "kube-root-ca.crt"

// pod is a training worker of about 5 KB. The scheduler ignores it, so that only the benchmark changes it.
func pod(number int) *corev1.Pod {
	var env []corev1.EnvVar
	for i := range 12 {
		env = append(env, corev1.EnvVar{
			Name:  fmt.Sprintf("TRAINING_PARAMETER_%02d", i),
			Value: fmt.Sprintf("s3://models/team-vision/run-%05d/shard-%02d/", number, i) + strings.Repeat("x", 40),
		})
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName(number), Labels: map[string]string{"app": "training"}},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "kubecast.io/bench"}},
			Containers: []corev1.Container{{
				Name: "worker", Image: "registry.example.org/team-vision/train:2026.1",
				Command: []string{"python", "-m", "train", "--config", "/etc/train/config.yaml"}, Env: env,
			}},
		},
	}
}

func podName(number int) string { return fmt.Sprintf("worker-%05d", number) }

// patch marks a pod with the number of the change, and the time of the request.
func (c *cluster) patch(ctx context.Context, namespace, name string, m mark.Mark) error {
	patch := m.Append([]byte(`{"metadata":{"annotations":{"kubecast.io/bench":"`))
	patch = append(patch, `"}}}`...)
	if _, err := c.client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch %s: %w", name, err)
	}
	return nil
}

// bind lets a user see a namespace.
func (c *cluster) bind(ctx context.Context, user, namespace string) error {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: viewer},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	_, err := c.client.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})
	return err
}

func (c *cluster) unbind(ctx context.Context, user, namespace string) error {
	return c.client.RbacV1().RoleBindings(namespace).Delete(ctx, user, metav1.DeleteOptions{})
}
