package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// churn changes pods at random: it makes them, moves them in and out of selectors, deletes them, and makes them again
// under the same name. All randomness comes from one seed, which the test prints.
type churn struct {
	stage      *stage
	namespaces []string
	test       string // value of the label test, by which a watch of all namespaces sees only these
	pause      time.Duration
	forgiving  bool // failures are expected, since the API server is made to fail

	resting sync.Mutex // held while the churn must rest

	random *rand.Rand
	alive  []*corev1.Pod
	made   int
}

// seed returns a source of randomness from $KUBECAST_E2E_SEED, or from a new seed. It prints the seed.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("KUBECAST_E2E_SEED"), 10, 64)
	if err != nil {
		n = rand.Uint64()
	}
	t.Logf("repeat with KUBECAST_E2E_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// startChurn churns until the returned function is called. That ends the churn with last: it makes a pod in each
// namespace that matches every selector of the tests. A client that has this pod has been told everything before it.
func (s *stage) startChurn(t *testing.T, c *churn) (finish func()) {
	t.Helper()
	c.stage = s
	if c.pause == 0 {
		c.pause = 15 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("churn: %v", err)
		}
	})
	t.Cleanup(stop)
	return func() {
		t.Helper()
		stop()
		c.last(t)
		t.Logf("%d pods were made", c.made)
	}
}

func (c *churn) run(ctx context.Context) error {
	ticks := time.NewTicker(c.pause)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		c.resting.Lock()
		err := c.step()
		c.resting.Unlock()
		if err != nil && !c.forgiving {
			return err
		}
	}
}

// step takes one random action. It has no context, so that an action that has begun is finished.
func (c *churn) step() error {
	if len(c.alive) < 5 || len(c.alive) < 40 && c.random.IntN(3) == 0 {
		return c.create(fmt.Sprintf("pod-%d", c.made), "")
	}
	i := c.random.IntN(len(c.alive))
	switch c.random.IntN(8) {
	case 0:
		return c.remove(i)
	case 1: // another of the same name
		again := c.alive[i]
		if err := c.remove(i); err != nil {
			return err
		}
		return c.create(again.Name, again.Namespace)
	case 2, 3:
		return c.setPhase(i)
	}
	return c.relabel(i)
}

func (c *churn) create(name, namespace string) error {
	if namespace == "" {
		namespace = c.namespaces[c.random.IntN(len(c.namespaces))]
	}
	c.made++
	made, err := c.stage.kube.CoreV1().Pods(namespace).Create(context.Background(),
		pod(namespace, name, map[string]string{"test": c.test, "app": c.app()}), metav1.CreateOptions{})
	if err == nil {
		c.alive = append(c.alive, made)
	}
	return err
}

func (c *churn) app() string { return []string{"a", "b"}[c.random.IntN(2)] }

func (c *churn) remove(i int) error {
	p := c.alive[i]
	err := c.stage.kube.CoreV1().Pods(p.Namespace).Delete(context.Background(), p.Name, *metav1.NewDeleteOptions(0))
	if err == nil || apierrors.IsNotFound(err) {
		c.alive[i] = c.alive[len(c.alive)-1]
		c.alive = c.alive[:len(c.alive)-1]
		return nil
	}
	return err
}

func (c *churn) relabel(i int) error {
	p := c.alive[i].DeepCopy()
	p.Labels["app"] = c.app()
	p.Annotations = map[string]string{"turn": strconv.Itoa(c.random.IntN(1000))}
	changed, err := c.stage.kube.CoreV1().Pods(p.Namespace).Update(context.Background(), p, metav1.UpdateOptions{})
	return c.changed(i, changed, err)
}

func (c *churn) setPhase(i int) error {
	p := c.alive[i].DeepCopy()
	p.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning}[c.random.IntN(2)]
	changed, err := c.stage.kube.CoreV1().Pods(p.Namespace).UpdateStatus(context.Background(), p, metav1.UpdateOptions{})
	return c.changed(i, changed, err)
}

// changed takes the outcome of an update. After a conflict, which an earlier failure may cause, the pod is not used
// any more.
func (c *churn) changed(i int, pod *corev1.Pod, err error) error {
	switch {
	case err == nil:
		c.alive[i] = pod
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		c.alive[i] = c.alive[len(c.alive)-1]
		c.alive = c.alive[:len(c.alive)-1]
	}
	return err
}

// lastPod is the name of the pods that last makes; they match every selector of the tests.
const lastPod = "zz-last"

func (c *churn) last(t *testing.T) {
	t.Helper()
	c.mark(t, lastPod)
}

// mark makes a pod in each namespace that matches every selector of the tests.
func (c *churn) mark(t *testing.T, name string) {
	t.Helper()
	ctx := context.Background()
	for _, namespace := range c.namespaces {
		eventually(t, "the pod "+name+" is made", func() error {
			p, err := c.stage.kube.CoreV1().Pods(namespace).Create(ctx, pod(namespace, name, map[string]string{"test": c.test, "app": "a"}), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				p, err = c.stage.kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			}
			if err != nil {
				return err
			}
			p.Status.Phase = corev1.PodRunning
			_, err = c.stage.kube.CoreV1().Pods(namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
			return err
		})
	}
}

// waitTold waits until a follower of a scope has been told everything of the churn.
func (c *churn) waitTold(t *testing.T, f *follower, watch string, scope scope) {
	t.Helper()
	c.waitMark(t, f, watch, scope, lastPod)
	c.stage.waitEqual(t, f, watch, scope)
}

// waitMark waits until a follower of a scope has been told of a mark.
func (c *churn) waitMark(t *testing.T, f *follower, watch string, scope scope, name string) {
	t.Helper()
	namespaces := slices.DeleteFunc(slices.Clone(c.namespaces), func(n string) bool { return !scope.sees(n) })
	if scope.namespace != "" {
		namespaces = []string{scope.namespace}
	}
	eventually(t, f.name+" has been told of "+name, func() error {
		return f.look(watch, func(v *view) error {
			for _, namespace := range namespaces {
				if o, ok := v.objects[namespace+"/"+name]; !ok || !strings.Contains(o.json, `"phase":"Running"`) {
					return fmt.Errorf("that of %s is not there", namespace)
				}
			}
			return nil
		})
	})
}

// scopes returns watches of the churned pods, each with another filter.
func (c *churn) scopes() map[string]scope {
	all := "test=" + c.test
	return map[string]scope{
		"all namespaces": {kind: podsKind, labelSelector: all},
		"one namespace":  {kind: podsKind, namespace: c.namespaces[0]},
		"a label":        {kind: podsKind, labelSelector: all + ",app=a"},
		"a field":        {kind: podsKind, labelSelector: all, fieldSelector: "status.phase=Running"},
		"everything":     {kind: podsKind, namespace: c.namespaces[1], labelSelector: "app in (a,c)", fieldSelector: "status.phase!=Pending"},
	}
}
