package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// faults are the faults of "devcluster fault". Each function returns when clients can see the fault.
var faults = []struct {
	name, help string
	do         func(*cluster, context.Context) error
}{
	{"apiserver-kill", "SIGKILL to kube-apiserver; connections to its port are then refused", (*cluster).killAPIServer},
	{"apiserver-start", "starts a killed kube-apiserver on the same port, and waits until it is ready;\nthe controllers, the scheduler and kwok are started anew, too", (*cluster).startAPIServer},
	{"apiserver-restart", "SIGTERM to kube-apiserver, which ends its watches in good order, and apiserver-start", (*cluster).restartAPIServer},
	{"pods-vanish", "all pods whose names begin with vanish- are deleted in one revision of etcd, as what is bound to one\nlease is: several deletions have one resourceVersion", (*cluster).vanishPods},
	{"etcd-compact", "makes all older resourceVersions answer 410, and marks the state for etcd-restore;\nkube-apiserver is killed and started, since its watch cache would still know them", (*cluster).compact},
	{"etcd-restore", "takes etcd back to the last etcd-compact, else to the moment of \"ready\", so that\nresourceVersions go back and are used again; kube-apiserver is killed and started", (*cluster).restore},
}

func findFault(name string) func(*cluster, context.Context) error {
	for _, f := range faults {
		if f.name == name {
			return f.do
		}
	}
	return nil
}

// fault does one fault at a time: a second one waits for the first.
func (c *cluster) fault(ctx context.Context, name string) error {
	do := findFault(name)
	if do == nil {
		return fmt.Errorf("unknown fault %q", name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return errors.New("this devcluster is ending")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("not done within two minutes"))
	defer cancel()
	return do(c, ctx)
}

func (c *cluster) vanishPods(ctx context.Context) error {
	n, err := vanish(ctx, c.etcdPort, "/registry/pods/", "vanish-")
	if err == nil && n == 0 {
		err = errors.New("there is no pod whose name begins with vanish-")
	}
	return err
}

const apiServer = "kube-apiserver"

func (c *cluster) killAPIServer(context.Context) error {
	if !c.running(apiServer) {
		return errors.New("kube-apiserver is not running")
	}
	c.takeAPIServer()
	return nil
}

// takeAPIServer kills the API server, and before it those who would miss it. One that was just
// started gives it ten seconds (the controller manager), and ends then; and after an outage they
// would sleep out back-offs of up to half a minute, kwok for each pod. New ones are at work in a
// second.
func (c *cluster) takeAPIServer() {
	c.kill(clients...)
	c.kill(apiServer)
}

func (c *cluster) startAPIServer(ctx context.Context) error {
	if c.running(apiServer) {
		return errors.New("kube-apiserver is running already")
	}
	if err := c.start(apiServer); err != nil {
		return err
	}
	if err := c.waitForAPIServer(ctx); err != nil {
		return err
	}
	return c.start(clients...)
}

func (c *cluster) restartAPIServer(ctx context.Context) error {
	if !c.running(apiServer) {
		return errors.New("kube-apiserver is not running; apiserver-start starts it")
	}
	c.kill(clients...) // see takeAPIServer
	c.processes[apiServer].terminate(ctx, 10*time.Second)
	return c.startAPIServer(ctx)
}

// compact makes every version before the present one unknown. Compacting only etcd would not be enough, since the API
// server answers watches from its own cache of recent changes. So the API server is restarted: the cache of a new one
// begins with the present state. While none runs, nothing writes, so the present is one well-defined revision.
func (c *cluster) compact(ctx context.Context) error {
	c.takeAPIServer()
	revision, err := etcdRevision(ctx, c.etcdPort)
	if err != nil {
		return fmt.Errorf("asking etcd for its revision: %w", err)
	}
	if err := compactEtcd(ctx, c.etcdPort, revision); err != nil {
		return err
	}
	if err := c.snapshotEtcd(); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	return poll(ctx, pollInterval, "old versions to be gone", func(ctx context.Context) error {
		return c.expectGone(ctx, revision-1)
	})
}

// expectGone returns nil if a watch from the version is answered with 410.
func (c *cluster) expectGone(ctx context.Context, version int64) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	w, err := c.client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: fmt.Sprint(version)})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.Stop()
	event, ok := <-w.ResultChan()
	if !ok {
		return fmt.Errorf("a watch from version %d is not refused", version)
	}
	if event.Type == watch.Error {
		if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return err
		}
		return nil
	}
	return fmt.Errorf("a watch from version %d is answered with %s", version, strings.ToLower(string(event.Type)))
}

// restore replaces etcd's data by the snapshot. The controllers, the scheduler and kwok are restarted, too: they hold
// versions that are now in the future, and a watch from there tells nothing until the versions have caught up. That
// is the very situation in which the gateway is to be tested, but not they.
func (c *cluster) restore(ctx context.Context) error {
	before, err := etcdRevision(ctx, c.etcdPort)
	if err != nil {
		return fmt.Errorf("asking etcd for its revision: %w", err)
	}
	c.takeAPIServer()
	c.kill("etcd")
	if err := c.restoreEtcdData(); err != nil {
		return err
	}
	if err := c.start("etcd"); err != nil {
		return err
	}
	if err := c.waitForEtcd(ctx); err != nil {
		return err
	}
	after, err := etcdRevision(ctx, c.etcdPort)
	if err != nil {
		return fmt.Errorf("asking etcd for its revision: %w", err)
	}
	if after > before {
		return fmt.Errorf("etcd's revision is %d after restoring, and was %d before", after, before)
	}
	return c.startAPIServer(ctx)
}
