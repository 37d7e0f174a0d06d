package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// chronicle is the test's own watch on the pods of a churn, through all faults. It says what the clients of any scope
// should be told. What happened while the API server was unable to tell is a gap in it.
type chronicle struct {
	kube  kubernetes.Interface
	label string
	from  uint64
	stop  func()

	mu      sync.Mutex
	pods    map[string]facts // as they are now, by namespace/name
	version uint64           // everything up to this version is known, except perhaps for some changes of that very version
	newest  map[string]bool  // the pods for which a change at that version is known
	happened
}

// happened is a part of a chronicle.
type happened struct {
	changes []podChange
	gaps    stretches
}

// podChange is one change of a pod: its facts before and after, nil where it did not exist.
type podChange struct {
	key, uid      string
	version       uint64
	at            time.Time // when it was seen
	before, after *facts
}

// facts are the values that selectors ask for.
type facts struct {
	uid, namespace string
	labels         labels.Set
	phase          corev1.PodPhase
}

// beginChronicle watches the pods of a label test from now on.
func (s *stage) beginChronicle(t *testing.T, test string) *chronicle {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &chronicle{kube: s.kube, label: "test=" + test}
	eventually(t, "the chronicle begins", func() error { return c.list(ctx) })
	c.from, c.gaps = c.version, nil
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.run(ctx)
	}()
	c.stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(c.stop)
	return c
}

func (c *chronicle) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.watch(ctx)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			err = c.list(ctx)
		}
		if err != nil {
			time.Sleep(20 * time.Millisecond) // a fault of the API server is under way
		}
	}
}

// list begins anew from the present state; the changes that led to it are a gap.
func (c *chronicle) list(ctx context.Context) error {
	list, err := c.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: c.label})
	if err != nil {
		return err
	}
	version, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods = map[string]facts{}
	for i := range list.Items {
		c.pods[keyOf(&list.Items[i])] = factsOf(&list.Items[i])
	}
	c.gaps = append(c.gaps, interval{c.version, version})
	c.version, c.newest = version, nil
	return nil
}

func (c *chronicle) watch(ctx context.Context) error {
	c.mu.Lock()
	from := c.version
	if c.newest != nil {
		from-- // a watch may have broken off in the middle of a version
	}
	version := strconv.FormatUint(from, 10)
	c.mu.Unlock()
	watching, err := c.kube.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{LabelSelector: c.label, ResourceVersion: version})
	if err != nil {
		return err
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		if err := c.note(event.Type, event.Object.(*corev1.Pod)); err != nil {
			return err
		}
	}
	return errors.New("the watch ended")
}

func (c *chronicle) note(kind watch.EventType, pod *corev1.Pod) error {
	version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if version < c.version || version == c.version && c.newest[keyOf(pod)] {
		return nil // is known
	}
	if version > c.version {
		c.newest = map[string]bool{}
	}
	if c.newest != nil {
		c.newest[keyOf(pod)] = true
	}
	change := podChange{key: keyOf(pod), uid: string(pod.UID), version: version, at: time.Now()}
	if before, ok := c.pods[change.key]; ok {
		change.before = &before
	}
	if kind == watch.Deleted {
		delete(c.pods, change.key)
	} else {
		after := factsOf(pod)
		change.after = &after
		c.pods[change.key] = after
	}
	c.changes = append(c.changes, change)
	c.version = version
	return nil
}

func keyOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func factsOf(pod *corev1.Pod) facts {
	return facts{string(pod.UID), pod.Namespace, pod.Labels, pod.Status.Phase}
}

// untilNow returns what happened after the part that was forgotten.
func (c *chronicle) untilNow(t *testing.T) (part happened) {
	t.Helper()
	var now uint64
	eventually(t, "the chronicle is up to now", func() error {
		if now == 0 {
			list, err := c.kube.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{LabelSelector: c.label})
			if err != nil {
				return err
			}
			for i := range list.Items {
				version, err := strconv.ParseUint(list.Items[i].ResourceVersion, 10, 64)
				if err != nil {
					return err
				}
				now = max(now, version)
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.version < now {
			return fmt.Errorf("it is at version %d, not %d", c.version, now)
		}
		part = happened{slices.Clone(c.changes), slices.Clone(c.gaps)}
		return nil
	})
	return part
}

// forget forgets what happened until the end of a part.
func (c *chronicle) forget(part happened) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = slices.Clone(c.changes[len(part.changes):])
}

// told returns what a client of a scope should be told: a pod that begins to match is added, one that ceases to match
// is deleted.
func (h happened) told(t *testing.T, s scope) (events []told) {
	t.Helper()
	byLabel, err := labels.Parse(s.labelSelector)
	if err != nil {
		t.Fatal(err)
	}
	byField, err := fields.ParseSelector(s.fieldSelector)
	if err != nil {
		t.Fatal(err)
	}
	matches := func(f *facts) bool {
		return f != nil && (s.namespace == "" || f.namespace == s.namespace) && s.sees(f.namespace) && byLabel.Matches(f.labels) &&
			byField.Matches(fields.Set{"status.phase": string(f.phase)})
	}
	for _, c := range h.changes {
		before, after := matches(c.before), matches(c.after)
		event := ""
		switch {
		case before && after:
			event = "modified"
		case before:
			event = "deleted"
		case after:
			event = "added"
		default:
			continue
		}
		events = append(events, told{occurrence: occurrence{c.uid, c.version, !after}, at: c.at, event: event, key: c.key})
	}
	return events
}
