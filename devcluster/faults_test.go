package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// All faults are done on the same cluster, in this order: each must leave a cluster that works.
func TestFaults(t *testing.T) {
	cluster := startUp(t, install(t), t.TempDir(), "--jobs", "0", "--nodes", "2")
	t.Run("etcd-restore goes back to ready", cluster.restoresToReady)
	t.Run("apiserver-kill and apiserver-start", cluster.killsAndStarts)
	t.Run("apiserver-restart", cluster.restarts)
	t.Run("etcd-compact", cluster.compacts)
	t.Run("etcd-restore goes back to etcd-compact", cluster.restoresToCompact)
	cluster.submit(t, testJob("after-all", nil))
	cluster.waitForJob(t, "after-all", batchv1.JobComplete)
	t.Run("a death that is no fault", cluster.endsWithAComponent)
}

// make makes an object and returns its resourceVersion.
func (i *instance) make(t *testing.T, name string) int {
	t.Helper()
	made, err := i.client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	version, err := strconv.Atoi(made.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func (i *instance) exists(t *testing.T, name string) bool {
	t.Helper()
	_, err := i.client.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// watchFrom returns the first event of a watch from the version.
func (i *instance) watchFrom(t *testing.T, version int) watch.Event {
	t.Helper()
	w, err := i.client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: fmt.Sprint(version)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	return <-w.ResultChan()
}

func (i *instance) restoresToReady(t *testing.T) {
	var last int
	for n := range 50 {
		last = i.make(t, fmt.Sprint("after-ready-", n))
	}
	i.fault(t, "etcd-restore")
	if i.exists(t, "after-ready-0") {
		t.Error("what was made after ready is still there")
	}
	if version := i.make(t, "after-restore"); version >= last {
		t.Errorf("the version after the restore is %d, before it was %d", version, last)
	}
	nodes, err := i.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 2 {
		t.Errorf("%d nodes after the restore (%v), want 2", len(nodes.Items), err)
	}
}

func (i *instance) killsAndStarts(t *testing.T) {
	i.make(t, "before-kill")
	i.fault(t, "apiserver-kill")
	_, err := i.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a request to a killed API server: %v, want it refused", err)
	}
	for _, fault := range []string{"apiserver-kill", "apiserver-restart"} {
		out, err := runCommand(i.devcluster, "fault", "--dir", string(i.dir), fault)
		if err == nil || !strings.Contains(out, "kube-apiserver is not running") {
			t.Errorf("%s of a killed API server: %v, %q, want it refused", fault, err, out)
		}
	}
	i.fault(t, "apiserver-start")
	if !i.exists(t, "before-kill") {
		t.Error("what was made before the kill is gone")
	}
	out, err := runCommand(i.devcluster, "fault", "--dir", string(i.dir), "apiserver-start")
	if err == nil || !strings.Contains(out, "kube-apiserver is running already") {
		t.Errorf("apiserver-start of a running API server: %v, %q, want it refused", err, out)
	}
}

func (i *instance) restarts(t *testing.T) {
	version := i.make(t, "before-restart")
	w, err := i.client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: fmt.Sprint(version)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	before := i.apiServerPID(t)
	i.fault(t, "apiserver-restart")
	if after := i.apiServerPID(t); after == before {
		t.Error("it is still the same process")
	}
	if event, ok := <-w.ResultChan(); ok {
		t.Errorf("the watch says %v, want it to end cleanly", event)
	}
	if !i.exists(t, "before-restart") {
		t.Error("what was made before the restart is gone")
	}
}

func (i *instance) apiServerPID(t *testing.T) int {
	t.Helper()
	for pid, name := range children(t, i.cmd.Process.Pid) {
		if name == "kube-apiserver" {
			return pid
		}
	}
	t.Fatal("no kube-apiserver runs")
	return 0
}

func (i *instance) compacts(t *testing.T) {
	old := i.make(t, "before-compact-1")
	last := i.make(t, "before-compact-2")
	if event := i.watchFrom(t, old); event.Type != watch.Added {
		t.Fatalf("a watch from version %d before compacting says %v, want an added object", old, event)
	}
	i.fault(t, "etcd-compact")
	event := i.watchFrom(t, old)
	if event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("a watch from version %d after compacting says %v, want it expired", old, event)
	}
	// Lists of an exact version are answered by etcd, as are kinds without a watch cache.
	_, err := i.client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{
		ResourceVersion: fmt.Sprint(old), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("a list of version %d after compacting: %v, want it expired", old, err)
	}
	if version := i.make(t, "after-compact"); version <= last {
		t.Errorf("the version after compacting is %d, before it was %d", version, last)
	}
}

func (i *instance) restoresToCompact(t *testing.T) {
	var last int
	for n := range 50 {
		last = i.make(t, fmt.Sprint("lost-", n))
	}
	i.fault(t, "etcd-restore")
	for name, want := range map[string]bool{"before-compact-2": true, "after-compact": false, "lost-0": false} {
		if i.exists(t, name) != want {
			t.Errorf("%s exists: %v, want %v", name, !want, want)
		}
	}
	if version := i.make(t, "after-second-restore"); version >= last {
		t.Errorf("the version after the restore is %d, before it was %d", version, last)
	}
}

// A component that dies without being asked to ends devcluster, which names it.
func (i *instance) endsWithAComponent(t *testing.T) {
	pids := expectComponents(t, i.cmd.Process.Pid)
	syscall.Kill(i.apiServerPID(t), syscall.SIGKILL)
	eventually(t, "devcluster to end", func(context.Context) error {
		select {
		case <-i.done:
			return nil
		default:
			return errors.New("it runs")
		}
	})
	if i.err == nil || !strings.Contains(i.stderr.String(), "kube-apiserver ended by itself (signal: killed)") {
		t.Errorf("devcluster up: %v, %q, want an error that names kube-apiserver", i.err, i.stderr)
	}
	expectGoneProcesses(t, pids)
}
