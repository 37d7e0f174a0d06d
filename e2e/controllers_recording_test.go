package e2e

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// recording is every version of the Jobs, pods and Workloads of a namespace, by plain watches of the test's own.
//
// All versions of one cluster are one sequence, whatever their kinds. So a recording says which
// pods there were when a controller wrote a version of a Job.
type recording struct {
	t    *testing.T
	pods func(*corev1.Pod, bool) // is called for each version of a pod, and whether that is gone

	mu   sync.Mutex
	jobs map[string]*recordedJob // by uid
	last uint64                  // the newest version
}

// recordedJob is what became of a Job and of what belongs to it.
type recordedJob struct {
	name      string
	versions  []version[*batchv1.Job]
	pods      map[string][]version[*corev1.Pod] // by uid
	workloads []version[*unstructured.Unstructured]
}

// version is an object as somebody wrote it, or as it was last.
type version[T any] struct {
	object  T
	number  uint64
	at      time.Time // when the test was told
	deleted bool
}

var workloadsResource = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}

// record records an empty namespace until the test ends.
func (s *stage) record(t *testing.T, namespace string, pods func(*corev1.Pod, bool)) *recording {
	t.Helper()
	r := &recording{t: t, pods: pods, jobs: map[string]*recordedJob{}}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	for _, resource := range []schema.GroupVersionResource{batchv1.SchemeGroupVersion.WithResource("jobs"), corev1.SchemeGroupVersion.WithResource("pods"), workloadsResource} {
		client := s.dynamic.Resource(resource).Namespace(namespace)
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) > 0 {
			t.Fatalf("%s: %d, %v", resource.Resource, len(list.Items), err)
		}
		at := list.GetResourceVersion()
		watching.Go(func() {
			for ctx.Err() == nil {
				opened, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: at, AllowWatchBookmarks: true})
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("the test's own watch of %s: %v", resource.Resource, err)
					}
					return
				}
				for event := range opened.ResultChan() {
					object, ok := event.Object.(*unstructured.Unstructured)
					if (!ok || event.Type == watch.Error) && ctx.Err() == nil {
						t.Errorf("the test's own watch of %s: %+v", resource.Resource, event)
						return
					}
					if !ok || event.Type == watch.Error {
						return
					}
					at = object.GetResourceVersion()
					r.saw(resource.Resource, object, event.Type)
				}
			}
		})
	}
	return r
}

// saw takes a version of an object.
func (r *recording) saw(kind string, object *unstructured.Unstructured, event watch.EventType) {
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	r.last = max(r.last, number)
	r.mu.Unlock()
	if event == watch.Bookmark {
		return
	}
	gone, now := event == watch.Deleted, time.Now()
	switch kind {
	case "jobs":
		job := convert[batchv1.Job](r.t, object)
		r.mu.Lock()
		of := r.of(string(job.UID))
		of.name = job.Name
		of.versions = append(of.versions, version[*batchv1.Job]{job, number, now, gone})
		r.mu.Unlock()
	case "pods":
		pod := convert[corev1.Pod](r.t, object)
		if owner := metav1.GetControllerOf(pod); owner != nil {
			r.mu.Lock()
			of := r.of(string(owner.UID))
			of.pods[string(pod.UID)] = append(of.pods[string(pod.UID)], version[*corev1.Pod]{pod, number, now, gone})
			r.mu.Unlock()
		}
		r.pods(pod, gone)
	case "workloads":
		if owner := metav1.GetControllerOf(object); owner != nil {
			r.mu.Lock()
			of := r.of(string(owner.UID))
			of.workloads = append(of.workloads, version[*unstructured.Unstructured]{object, number, now, gone})
			r.mu.Unlock()
		}
	}
}

func (r *recording) of(uid string) *recordedJob {
	if r.jobs[uid] == nil {
		r.jobs[uid] = &recordedJob{pods: map[string][]version[*corev1.Pod]{}}
	}
	return r.jobs[uid]
}

func convert[T any](t *testing.T, object *unstructured.Unstructured) *T {
	var to T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &to); err != nil {
		t.Error(err)
	}
	return &to
}

func (r *recording) newestVersion() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// newest is the newest version of a Job, and whether it is not gone.
func (r *recording) newest(uid string) (job *batchv1.Job, there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.jobs[uid]
	if of == nil || len(of.versions) == 0 {
		return nil, false
	}
	last := of.versions[len(of.versions)-1]
	return last.object, !last.deleted
}

// workload is the newest Workload of a job; nil if there is none.
func (r *recording) workload(uid string) *unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.jobs[uid]
	if of == nil || len(of.workloads) == 0 || of.workloads[len(of.workloads)-1].deleted {
		return nil
	}
	return of.workloads[len(of.workloads)-1].object
}

// take returns what was recorded, which the recording forgets.
func (r *recording) take() map[string]*recordedJob {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.jobs
	r.jobs = map[string]*recordedJob{}
	return all
}
