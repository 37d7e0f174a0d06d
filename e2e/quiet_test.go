package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Watches of quiet kinds begin at once, last, and tell what happens in the end. That holds for client-go and kubectl,
// over plain HTTP and over TLS with HTTP/2. The quiet time is several times as long as a client may take nothing.
func TestQuietWatchesBeginAtOnceAndLast(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	const writeTimeout = "500ms"
	for name, opts := range map[string]gatewayOptions{"plain": {}, "tls": overTLS(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := "quiet-" + name
			s.namespaces(t, namespace)
			opts.config = "stream: {writeTimeout: " + writeTimeout + "}\n"
			g := s.startGateway(t, opts)
			g.waitReady(t)
			token := s.viewer(t)
			mustKnow(t, token, "/apis/batch/v1/jobs", g)
			client, err := kubernetes.NewForConfig(g.restConfig(token, ""))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), eventuallyWithin)
			defer cancel()
			list, err := client.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var quiet []watch.Interface
			for _, o := range []metav1.ListOptions{
				{ResourceVersion: list.ResourceVersion},
				{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true},
				{},
			} {
				w, err := client.BatchV1().Jobs(namespace).Watch(ctx, o) // waits for the answer's head
				if err != nil {
					t.Fatal(err)
				}
				defer w.Stop()
				quiet = append(quiet, w)
			}
			var lines <-chan string
			if g.caFile != "" { // otherwise kubectl would send no credentials
				lines = s.kubectlGetW(ctx, t, append(kubectlTo(t, g, token, ""), "-n", namespace))
			}
			time.Sleep(3 * time.Second) // six times what a client may take
			job := shortJob("late")
			suspended := true
			job.Spec.Suspend = &suspended // so that nothing else happens to it
			if _, err := s.kube.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			for i, w := range quiet {
				for {
					event, open := <-w.ResultChan()
					if !open {
						t.Fatalf("watch %d has ended", i)
					}
					if event.Type == watch.Bookmark {
						continue
					}
					if o, ok := event.Object.(*batchv1.Job); !ok || event.Type != watch.Added || o.Name != "late" {
						t.Fatalf("watch %d tells %s %v", i, event.Type, event.Object)
					}
					break
				}
			}
			if lines == nil {
				return
			}
			select {
			case line := <-lines:
				if !strings.Contains(line, "late") {
					t.Errorf("kubectl get -w tells %q", line)
				}
			case <-ctx.Done():
				t.Error("kubectl get -w tells nothing")
			}
		})
	}
}

// kubectlGetW runs kubectl get jobs -w, and sends its output line by line. How it ended comes as a last line.
func (s *stage) kubectlGetW(ctx context.Context, t *testing.T, way []string) <-chan string {
	t.Helper()
	arguments := append(s.cluster.KubectlCommand(), append(way, "get", "jobs", "-w", "-o", "name")...)
	cmd := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10)
	go func() {
		text := bufio.NewScanner(out)
		for text.Scan() {
			lines <- text.Text()
		}
		_, _ = io.Copy(io.Discard, out)
		lines <- fmt.Sprintf("it has ended: %v %s", cmd.Wait(), said.String())
	}()
	return lines
}
