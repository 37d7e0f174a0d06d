package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	podsPerNode  = 250
	podsPerOwner = 100
	teams        = 10
	writers      = 16
)

// fill makes pods, and returns when all of them run. They are like a Deployment's pods, except that they are bound to
// their nodes from the start, which saves the scheduler's work.
func fill(ctx context.Context, config *rest.Config, count, nodes int, progress io.Writer) error {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for team := range teams {
		if err := makeNamespace(ctx, client, namespace(team)); err != nil {
			return err
		}
	}
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for first := 0; first < count; first += podsPerOwner {
		owner, err := makeOwner(creating, client, first/podsPerOwner)
		if err != nil {
			return fmt.Errorf("making an owner: %w", err)
		}
		for i := first; i < min(first+podsPerOwner, count); i++ {
			group.Go(func() error {
				_, err := client.CoreV1().Pods(owner.Namespace).Create(creating, pod(i, nodes, owner), metav1.CreateOptions{})
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("making pods: %w", err)
	}
	fmt.Fprintf(progress, "%d pods are made, waiting until they run …\n", count)
	return waitRunning(ctx, client)
}

func namespace(team int) string { return fmt.Sprintf("team-%02d", team) }

func makeNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return err
	}
	for { // no pods can be made before the namespace has its ServiceAccount
		_, err := client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the ServiceAccount of %s: %w", name, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func waitRunning(ctx context.Context, client kubernetes.Interface) error {
	for {
		list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.phase!=Running", Limit: 1})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// makeOwner makes a ReplicaSet to which the pods belong, or the garbage collector would remove them. It has no
// replicas, and does not control the pods.
func makeOwner(ctx context.Context, client kubernetes.Interface, n int) (*appsv1.ReplicaSet, error) {
	none := int32(0)
	labels := map[string]string{"app": fmt.Sprintf("owner-%d", n)}
	return client.AppsV1().ReplicaSets(namespace(n%teams)).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("inference-service-%04d-6b8f7d9c5d", n)},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &none,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "none"}}},
			},
		},
	}, metav1.CreateOptions{})
}

// pod is a pod like those of real platforms. Two sorts alternate: a server with probes, ports, a configuration and a
// token, and a worker with little more than a command and environment. Their sizes spread from 2.5 to 4.5 KB of
// compact JSON, so that they do not happen to fit one size class of the allocator.
func pod(i, nodes int, owner *appsv1.ReplicaSet) *corev1.Pod {
	app := owner.Name[:len("inference-service-0000")]
	block := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.Namespace,
			Name:      fmt.Sprintf("%s-%05d", owner.Name, i),
			Labels: map[string]string{
				"app.kubernetes.io/name":       app,
				"app.kubernetes.io/instance":   app + "-production",
				"app.kubernetes.io/part-of":    "recommendations",
				"app.kubernetes.io/managed-by": "Helm",
				"kubecast.io/owner":            fmt.Sprintf("user-%03d", i%300),
				"pod-template-hash":            "6b8f7d9c5d",
			},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &block,
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%02d", i%nodes),
			Volumes:  []corev1.Volume{{Name: "models", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	main := worker(i)
	if i%2 == 0 {
		off := false
		p.Spec.AutomountServiceAccountToken = &off
	} else {
		serve(&main)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: app + "-config"}}}})
	}
	p.Spec.Containers = []corev1.Container{main}
	return p
}

func worker(i int) corev1.Container {
	c := corev1.Container{
		Name:    "main",
		Image:   "registry.example.org/recommendations/ranker:2026.11.3-7f3c1d2",
		Command: []string{"/usr/local/bin/ranker", "--config=/etc/ranker/config.yaml"},
		Env: []corev1.EnvVar{
			{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "MODEL", Value: fmt.Sprintf("s3://models/ranker/%05d/model.onnx", i%97)},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("512Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "models", MountPath: "/var/lib/models"}},
	}
	for n := range i % 9 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("RANKER_OPTION_%d", n), Value: strings.Repeat("value ", 1+n%4)})
	}
	return c
}

// serve turns a worker's container into a server's.
func serve(c *corev1.Container) {
	c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "metrics", ContainerPort: 9090}}
	c.ReadinessProbe, c.LivenessProbe = probe("/ready", 5), probe("/live", 10)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "config", MountPath: "/etc/ranker", ReadOnly: true})
}

func probe(path string, period int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http")}},
		PeriodSeconds: period,
	}
}
