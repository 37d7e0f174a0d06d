package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pollInterval is the interval at which a condition is checked while devcluster waits for it.
const pollInterval = 50 * time.Millisecond

func (c *cluster) waitForEtcd(ctx context.Context) error {
	return poll(ctx, pollInterval, "etcd", func(ctx context.Context) error {
		_, err := etcdRevision(ctx, c.etcdPort)
		return err
	})
}

func (c *cluster) waitForAPIServer(ctx context.Context) error {
	return poll(ctx, pollInterval, "kube-apiserver", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func (c *cluster) waitForNodes(ctx context.Context, want int) error {
	return poll(ctx, pollInterval, "the nodes", func(ctx context.Context) error {
		list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		ready := 0
		for _, node := range list.Items {
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if ready < want {
			return fmt.Errorf("%d of %d nodes are Ready", ready, want)
		}
		return nil
	})
}

// tryJob runs a job, because nothing less shows that admission, controllers, scheduler and kwok all work. It leaves
// nothing but events, in a namespace where nobody looks for jobs.
func (c *cluster) tryJob(ctx context.Context) error {
	const namespace, name = metav1.NamespaceSystem, "devcluster-ready"
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "true", Image: "registry.example.org/true"}},
			},
		}},
	}
	jobs := c.client.BatchV1().Jobs(namespace)
	if _, err := jobs.Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("submitting a job: %w", err)
	}
	err := poll(ctx, pollInterval, "a job to run", func(ctx context.Context) error {
		pods, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + name})
		if err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return errors.New("it has no pod yet")
		}
		pod := pods.Items[0]
		if pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("its pod is %s (node %q)", pod.Status.Phase, pod.Spec.NodeName)
		}
		return nil
	})
	if err != nil {
		return err
	}
	policy := metav1.DeletePropagationBackground
	if err := jobs.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting a job: %w", err)
	}
	return nil
}
