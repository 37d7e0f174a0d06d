package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// logging creates a pod of two containers that write, with annotations of the development cluster.
func (s *stage) logging(t *testing.T, namespace, name string, annotations map[string]string) {
	t.Helper()
	p := pod(namespace, name, map[string]string{"app": namespace})
	p.Annotations = annotations
	p.Spec.SchedulerName, p.Spec.NodeName = "", "node-00"
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "registry.example.org/side:1"})
	if _, err := s.kube.CoreV1().Pods(namespace).Create(context.Background(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func sortedLines(text string) string {
	return strings.Join(slices.Sorted(slices.Values(strings.Fields(strings.ReplaceAll(text, " ", "_")))), "\n")
}

// kubectl logs prints the same at the gateway as at the API server, whatever it is asked for, and however it fails.
func TestKubectlLogsPrintsTheSame(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.secureGateway(t)
	s.namespaces(t, "kubectl-logs")
	s.logging(t, "kubectl-logs", "done", map[string]string{"devcluster.kubecast.io/run-seconds": "2", "devcluster.kubecast.io/log-lines-per-second": "200"})
	s.logging(t, "kubectl-logs", "failed", map[string]string{"devcluster.kubecast.io/run-seconds": "1", "devcluster.kubecast.io/fail-percent": "100"})
	s.logging(t, "kubectl-logs", "creating", map[string]string{"devcluster.kubecast.io/start-seconds": "3600"})
	s.kubectl(t, "", "wait", "-n", "kubectl-logs", "--for=jsonpath={.status.phase}=Succeeded", "pod/done")
	s.kubectl(t, "", "wait", "-n", "kubectl-logs", "--for=jsonpath={.status.phase}=Failed", "pod/failed")
	s.kubectl(t, "", "wait", "-n", "kubectl-logs", "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ContainerCreating", "pod/creating")
	gateway := kubectlTo(t, g, s.admin(t), "")
	for _, command := range []string{
		"done", "done -c main", "done -c side --tail=3", "done --all-containers", "done --all-containers --prefix --tail=2",
		"done -c main --timestamps --tail=7", "done -c main --since=1h", "done -c main --since-time=2020-01-01T00:00:00Z --limit-bytes=300",
		"done -c main --since-time=2999-01-01T00:00:00Z", "failed -c main", "failed -c main -f", "-l app=kubectl-logs,none!=x --all-containers --tail=2 --ignore-errors",
		"creating -c main", "done -c none", "done -c main -p", "nothing", "done -c main --tail=-7", "done -c main --since-time=yesterday",
	} {
		arguments := append([]string{"logs", "-n", "kubectl-logs"}, strings.Fields(command)...)
		want, wantErr := s.tryKubectl(arguments...)
		got, gotErr := s.tryKubectl(append(gateway, arguments...)...)
		a, b := failure(got, gotErr), failure(want, wantErr)
		if strings.Contains(command, "--all-containers") { // kubectl reads several in any order
			a, b = sortedLines(a), sortedLines(b)
		}
		if a != b {
			t.Errorf("kubectl logs %s: prints\n%s\nnot\n%s", command, a, b)
		}
		if strings.HasPrefix(command, "done -c main --timestamps") && strings.Count(got, "\n") != 7 {
			t.Errorf("kubectl logs %s: %s", command, got)
		}
	}
	for _, path := range []string{"", "?container=main&sinceSeconds=x", "?container=main&sinceSeconds=-1", "?container=main&limitBytes=0", "?container=main&stream=Stderr", "?follow=maybe&container=main"} {
		arguments := []string{"get", "--raw", "/api/v1/namespaces/kubectl-logs/pods/done/log" + path}
		want, wantErr := s.tryKubectl(arguments...)
		got, gotErr := s.tryKubectl(append(gateway, arguments...)...)
		if a, b := failure(got, gotErr), failure(want, wantErr); a != b {
			t.Errorf("%s: prints\n%s\nnot\n%s", path, a, b)
		}
	}
	if out, err := s.tryKubectl(append(gateway, "get", "--raw", "/api/v1")...); err != nil || strings.Count(out, `"name":"pods/`) != 1 || !strings.Contains(out, `"name":"pods/log"`) {
		t.Errorf("discovery: %v %s", err, out)
	}

	// Two who follow a container while it runs are told the same, to its end.
	s.logging(t, "kubectl-logs", "runs", map[string]string{"devcluster.kubecast.io/run-seconds": "6", "devcluster.kubecast.io/log-lines-per-second": "50"})
	s.kubectl(t, "", "wait", "-n", "kubectl-logs", "--for=jsonpath={.status.phase}=Running", "pod/runs")
	ways := [][]string{nil, gateway, gateway}
	told, errs := make([]string, len(ways)), make([]error, len(ways))
	var following sync.WaitGroup
	for i, way := range ways {
		following.Go(func() {
			told[i], errs[i] = s.tryKubectl(append(way, "logs", "-f", "--timestamps", "-n", "kubectl-logs", "runs", "-c", "main")...)
		})
	}
	following.Wait()
	if lines := strings.Count(told[0], "\n"); errors.Join(errs...) != nil || told[1] != told[0] || told[2] != told[0] || lines < 100 {
		t.Errorf("%v: %s", errors.Join(errs...), fmt.Sprintf("of %d lines, %d and %d bytes of %d", lines, len(told[1]), len(told[2]), len(told[0])))
	}
}
