package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	batchtyped "k8s.io/client-go/kubernetes/typed/batch/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Pods of jobs begin, end, fail and are deleted by the hundred, by the real controllers, while
// gateways and their databases are killed. Each pod has one run in each database, at its job. What
// nobody saw happen, since no gateway of a database lived, is dated as the API server says, to the
// second; and what runs come to is what jobs and usage say.
func TestEachPodHasOneRunWhateverIsKilled(t *testing.T) {
	t.Parallel()
	s := onFaultStage(t)
	const namespace = "killed-runs"
	s.namespaces(t, namespace)
	random := seed(t)
	records := s.startRecording(t, random, s.gateway)
	o := s.observePods(t, namespace)
	finish := s.runJobs(t, namespace, random)
	var away []between
	for range 2 {
		away = append(away, o.whileNobodyRecords(t, records))
		for _, r := range records {
			r.hurt(t, random)
		}
	}
	const least = 200
	advancing(t, "there are pods enough", o.steps, func() error {
		if made, _ := o.since(0); made < least {
			return fmt.Errorf("%d", made)
		}
		return nil
	})
	finish()
	lives := o.ended(t)
	token := s.viewer(t)
	for _, r := range records {
		unseen := 0
		advancing(t, "each pod has its run in "+r.name, r.counts("SELECT COUNT(*) + COUNT(NULLIF(scheduled, 0)) + COUNT(NULLIF(started, 0)) + COUNT(NULLIF(ended, 0)) + COUNT(NULLIF(gone, 0)) FROM runs WHERE namespace = '"+namespace+"'"), func() (err error) {
			unseen, err = r.checkRuns(namespace, lives, away)
			return err
		})
		if unseen < 20*len(away) {
			t.Errorf("%s: only %d times are of what nobody saw", r.name, unseen)
		}
		for _, g := range r.gateways {
			r.checkSums(t, g, token, namespace, len(lives))
		}
		t.Logf("%s: %d runs; nobody saw %d of their steps", r.name, len(lives), unseen)
	}
}

// runJobs makes jobs, one after the other, of which some fail and some are deleted while they run,
// until the returned function is called.
func (s *stage) runJobs(t *testing.T, namespace string, random *rand.Rand) (finish func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	jobs := s.kube.BatchV1().Jobs(namespace)
	random = rand.New(rand.NewPCG(random.Uint64(), random.Uint64())) // the test goes on with its own
	var making sync.WaitGroup
	making.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			job := shortJob(fmt.Sprintf("job-%d", n))
			pods, retries := int32(5+random.IntN(10)), int32(100)
			job.Spec.Parallelism, job.Spec.Completions, job.Spec.BackoffLimit = &pods, &pods, &retries
			template := &job.Spec.Template
			template.Annotations = map[string]string{"devcluster.kubecast.io/run-seconds": strconv.Itoa(random.IntN(3)), "devcluster.kubecast.io/fail-percent": "10"}
			template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
			if _, err := jobs.Create(context.Background(), job, metav1.CreateOptions{}); err != nil {
				t.Error(err)
				return
			}
			if n >= 4 && random.IntN(3) == 0 {
				background := metav1.DeletePropagationBackground
				err := jobs.Delete(context.Background(), fmt.Sprintf("job-%d", n-random.IntN(4)), metav1.DeleteOptions{PropagationPolicy: &background})
				if err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
			}
			time.Sleep(time.Duration(300+random.IntN(500)) * time.Millisecond)
		}
	})
	return func() {
		stop()
		making.Wait()
	}
}

// steps are those of a pod's life; of each there is when it happened.
const (
	scheduled = iota
	started
	ended
	steps
)

// podLife is what the API server says of a pod.
type podLife struct {
	name, job string
	created   time.Time
	claims    [steps]time.Time // zero: nothing says so
	at        [steps]uint64    // the pod's version that said so first; 0: none did
	first     uint64           // the first version of the pod
	gone      bool
}

// between is what was written after a version, up to another. When the observer saw it says less:
// its watch may lag behind that of a gateway, which then recorded what the observer saw only after
// the gateway was killed.
type between struct{ after, upTo uint64 }

// podObserver sees what becomes of the pods of a namespace by a watch of its own, without any code of the gateway's.
type podObserver struct {
	pods typed.PodInterface
	jobs batchtyped.JobInterface

	mu    sync.Mutex
	lives map[string]*podLife // by uid
}

// observePods observes an empty namespace until the test ends.
func (s *stage) observePods(t *testing.T, namespace string) *podObserver {
	t.Helper()
	o := &podObserver{pods: s.kube.CoreV1().Pods(namespace), jobs: s.kube.BatchV1().Jobs(namespace), lives: map[string]*podLife{}}
	list, err := o.pods.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Fatalf("%d pods, %v", len(list.Items), err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var observing sync.WaitGroup
	observing.Go(func() {
		for version := list.ResourceVersion; ctx.Err() == nil; {
			opened, err := o.pods.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
			if err != nil {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			for event := range opened.ResultChan() {
				if pod, ok := event.Object.(*corev1.Pod); ok {
					version = pod.ResourceVersion
					if err := o.saw(pod, event.Type == watch.Deleted); err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		observing.Wait()
	})
	return o
}

// saw takes a version of a pod.
func (o *podObserver) saw(pod *corev1.Pod, deleted bool) error {
	version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	life := o.lives[string(pod.UID)]
	if life == nil {
		life = &podLife{name: pod.Name, created: pod.CreationTimestamp.Time, first: version}
		for _, owner := range pod.OwnerReferences {
			life.job = string(owner.UID)
		}
		o.lives[string(pod.UID)] = life
	}
	life.gone = life.gone || deleted
	step := func(n int, claim metav1.Time) {
		if life.at[n] == 0 {
			life.at[n], life.claims[n] = version, claim.Time
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			step(scheduled, c.LastTransitionTime)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Running != nil:
			step(started, c.State.Running.StartedAt)
		case c.State.Terminated != nil:
			step(started, c.State.Terminated.StartedAt)
			step(ended, c.State.Terminated.FinishedAt)
		}
	}
	if deleted {
		step(ended, metav1.Time{})
	}
	return nil
}

// since is how many of the pods were made after a version, and how many ended after it.
func (o *podObserver) since(version uint64) (made, over int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, life := range o.lives {
		if life.first > version {
			made++
		}
		if life.at[ended] > version {
			over++
		}
	}
	return made, over
}

// now is a version that is no older than what was written before the call, and no newer than what is written after it.
func (o *podObserver) now(t *testing.T) uint64 {
	t.Helper()
	list, err := o.pods.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	return mustVersion(t, list.ResourceVersion)
}

// steps is how many steps of pods were seen.
func (o *podObserver) steps() (n int, _ error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, life := range o.lives {
		n++
		for _, at := range life.at {
			if at != 0 {
				n++
			}
		}
		if life.gone {
			n++
		}
	}
	return n, nil
}

// whileNobodyRecords kills the gateways of all databases, and starts them again when pods enough have begun and ended.
func (o *podObserver) whileNobodyRecords(t *testing.T, records []*record) between {
	t.Helper()
	for _, r := range records {
		for _, g := range r.gateways {
			g.kill()
		}
	}
	away := between{after: o.now(t)}
	advancing(t, "pods begin and end while nobody records them", o.steps, func() error {
		if made, over := o.since(away.after); made < 20 || over < 20 {
			return fmt.Errorf("%d and %d", made, over)
		}
		return nil
	})
	away.upTo = o.now(t)
	for _, r := range records {
		for _, g := range r.gateways {
			g.restart(t)
		}
	}
	return away
}

// ended waits until all pods have ended, and tells what became of each.
func (o *podObserver) ended(t *testing.T) map[string]podLife {
	t.Helper()
	advancing(t, "all jobs and pods have ended", o.steps, func() error {
		jobs, err := o.jobs.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, job := range jobs.Items { // one that has not may make more pods
			if job.Status.CompletionTime == nil {
				return errors.New(job.Name + " has not")
			}
		}
		list, err := o.pods.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		there := map[string]bool{}
		for _, pod := range list.Items {
			if there[string(pod.UID)] = true; pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				return errors.New(pod.Name + " has not")
			}
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		for uid := range there {
			if o.lives[uid] == nil {
				return errors.New("one is not seen yet")
			}
		}
		for uid, life := range o.lives {
			if life.at[ended] == 0 || !life.gone && !there[uid] {
				return errors.New(life.name + " is not seen to have ended")
			}
		}
		return nil
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make(map[string]podLife, len(o.lives))
	for uid, life := range o.lives {
		all[uid] = *life
	}
	return all
}

// checkRuns compares the runs of a namespace with what there was, and counts the times that are exact.
func (r *record) checkRuns(namespace string, lives map[string]podLife, away []between) (unseen int, err error) {
	rows, err := r.db.Query("SELECT runs.pod, runs.uid, logs.resource, runs.created, runs.scheduled, runs.started, runs.ended, runs.gone, runs.late FROM runs JOIN logs ON logs.id = runs.log WHERE runs.namespace = '" + namespace + "'")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var pod, job, resource string
		var created, gone, late int64
		var at [steps]int64
		if err := rows.Scan(&pod, &job, &resource, &created, &at[scheduled], &at[started], &at[ended], &gone, &late); err != nil {
			return 0, err
		}
		life, there := lives[pod]
		switch {
		case !there || found[pod]:
			return 0, fmt.Errorf("there is a run of %s, in %s: %t, another: %t", pod, resource, there, found[pod])
		case resource != "jobs.batch" || job != life.job || created != life.created.UnixMilli() || late != 0 || (gone != 0) != life.gone:
			return 0, fmt.Errorf("the run of %s is of %s %s, created at %d, late: %d, gone at %d; there was %+v", life.name, resource, job, created, late, gone, life)
		}
		found[pod] = true
		last := created
		for n := range steps {
			if (at[n] == 0) != (life.at[n] == 0) {
				return 0, fmt.Errorf("%s: step %d was at %d; there was %+v", life.name, n, at[n], life)
			}
			if at[n] == 0 {
				continue
			}
			least := last
			if claim := life.claims[n]; !claim.IsZero() {
				least = max(least, claim.UnixMilli())
			}
			// The clock of the API server is known to half a second.
			if at[n] < last || at[n] < least-1000 || at[n] > time.Now().Add(time.Second).UnixMilli() {
				return 0, fmt.Errorf("%s: step %d was at %d, behind %d; there was %+v", life.name, n, at[n], last, life)
			}
			if last = at[n]; life.claims[n].IsZero() || !isIn(away, life.at[n]) {
				continue
			}
			if unseen++; at[n] != least {
				return 0, fmt.Errorf("%s: nobody saw step %d, which was at %d, and is dated %d; nobody recorded in %+v; there was %+v", life.name, n, least, at[n], away, life)
			}
		}
	}
	if len(found) != len(lives) {
		return 0, fmt.Errorf("%d of %d pods have runs", len(found), len(lives))
	}
	return unseen, rows.Err()
}

// isIn reports whether a version lies in one of the spans.
func isIn(spans []between, version uint64) bool {
	return slices.ContainsFunc(spans, func(b between) bool { return version > b.after && version <= b.upTo })
}

// checkSums compares what a gateway says that was used with what the database's runs come to.
func (r *record) checkSums(t *testing.T, g *gateway, token, namespace string, pods int) {
	t.Helper()
	var milliseconds float64
	if err := r.db.QueryRow("SELECT SUM(ended - scheduled) FROM runs WHERE scheduled > 0 AND namespace = '" + namespace + "'").Scan(&milliseconds); err != nil {
		t.Fatal(err)
	}
	want := milliseconds / 1000 * 0.1
	type item struct {
		Hours                struct{ CPU float64 }
		CPUHours             float64
		PodCount             int
		ScheduledAt, EndedAt *time.Time
		Requests             map[string]string
	}
	sum := func(view, limit string, each func(item) float64) {
		t.Helper()
		total, items, from := 0.0, 0, ""
		for more := true; more; more = from != "" {
			var page struct {
				Items    []item
				Continue string
			}
			a := g.get(t, token, "/history/apis/batch/v1/namespaces/"+namespace+"/jobs"+query("limit", limit, "view", view, "continue", from))
			if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.code != 200 {
				t.Fatalf("%s: %d %s %v", view, a.code, a.body, err)
			}
			for _, i := range page.Items {
				total += each(i)
			}
			items, from = items+len(page.Items), page.Continue
		}
		if math.Abs(total-want) >= 1 {
			t.Errorf("%s: %s of %d items come to %.1f CPU seconds, and the runs to %.1f", r.name, view, items, total, want)
		}
	}
	counted := 0
	sum("jobs", "100", func(i item) float64 {
		counted += i.PodCount
		return i.Hours.CPU * 3600
	})
	if counted != pods {
		t.Errorf("%s: jobs have %d pods, and there were %d", r.name, counted, pods)
	}
	sum("usage", "", func(i item) float64 { return i.CPUHours * 3600 })
	sum("runs", "100", func(i item) float64 {
		if i.ScheduledAt == nil {
			return 0
		}
		if i.EndedAt == nil || i.Requests["cpu"] != "100m" {
			t.Errorf("%s: a run is %+v", r.name, i)
			return 0
		}
		return i.EndedAt.Sub(*i.ScheduledAt).Seconds() * 0.1
	})
}
