package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

// These annotations of a pod say what happens to it; the stages obey them.
const (
	startSeconds = "devcluster.kubecast.io/start-seconds"
	runSeconds   = "devcluster.kubecast.io/run-seconds"
	failPercent  = "devcluster.kubecast.io/fail-percent"
	failReason   = "devcluster.kubecast.io/fail-reason"
)

// trainingJob is a job with what its owner is going to do with it.
type trainingJob struct {
	*batchv1.Job
	resumeAfter time.Duration // it is submitted suspended, and resumed so much later; 0: not suspended
	deleteAfter time.Duration // its owner deletes it so much later; 0: never
	resizes     []resize      // its owner gives it other numbers of workers
}

// resize is done so long after the one before.
type resize struct {
	after   time.Duration
	workers int32
}

// pace fits the jobs to the cluster, so that it is neither idle nor full.
type pace struct {
	longest time.Duration // the longest run
	keep    time.Duration // how long a finished job is kept
}

// paceFor allows runs of minutes at the usual half a job per second on ten nodes. With more jobs on as many nodes,
// the jobs must be shorter.
func paceFor(jobsPerSecond float64, nodes int) pace {
	seconds := func(s, least, most float64) time.Duration {
		return time.Duration(min(max(s, least), most)) * time.Second
	}
	return pace{
		longest: seconds(9*float64(nodes)/jobsPerSecond, 6, 240),
		keep:    seconds(60/jobsPerSecond, 15, 180),
	}
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// newTrainingJob invents a job.
func newTrainingJob(random *rand.Rand, p pace) trainingJob {
	t := pick(random, teams)
	job, run := plainJob(random, p, t, pick(random, t.workloads), pick(random, t.owners))
	job.fate(random, run, job.Spec.Template.Annotations)
	return job
}

// plainJob invents a job that succeeds after a time.
func plainJob(random *rand.Rand, p pace, t team, w workload, owner string) (trainingJob, time.Duration) {
	// Most jobs are small and short, as on real platforms.
	workers := int32(min(w.maxWorkers, pick(random, []int{1, 1, 1, 2, 2, 3, 4, 8})))
	shortest := 4 * time.Second
	run := time.Duration(float64(shortest) * math.Pow(float64(p.longest)/float64(shortest), random.Float64()))

	annotations := map[string]string{
		startSeconds: strconv.Itoa(1 + random.IntN(4)),
		runSeconds:   strconv.Itoa(int(run.Seconds())),
	}
	labels := map[string]string{
		"app.kubernetes.io/name":     w.name,
		"kubecast.io/owner":          owner,
		"kubecast.io/team":           t.namespace,
		"kubecast.io/framework":      w.framework,
		"kueue.x-k8s.io/queue-name":  t.queue,
		"app.kubernetes.io/part-of":  strings.TrimPrefix(t.namespace, "team-") + "-platform",
		"app.kubernetes.io/instance": "",
	}
	name := fmt.Sprintf("%s-%06x", w.name, random.IntN(1<<24))
	labels["app.kubernetes.io/instance"] = name
	seed, rate := random.IntN(1000), pick(random, []string{"1e-4", "3e-4", "1e-3", "3e-3"})

	spec := batchv1.JobSpec{
		Parallelism:             &workers,
		Completions:             &workers,
		BackoffLimit:            new(int32(3)),
		TTLSecondsAfterFinished: new(int32(p.keep.Seconds())),
		// A job that finds no place in a full cluster gives up.
		ActiveDeadlineSeconds: new(int64((run + 2*time.Minute).Seconds())),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
			Spec:       podSpec(w, int(workers), seed, rate),
		},
	}
	if w.sweep {
		spec.Parallelism = new((workers + 1) / 2)
	} else if workers > 1 {
		spec.CompletionMode = new(batchv1.IndexedCompletion)
	}
	job := trainingJob{Job: &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: t.namespace,
			Labels:    labels,
			Annotations: map[string]string{
				"kubecast.io/description": fmt.Sprintf("%s, seed %d, learning rate %s", w.purpose, seed, rate),
				"kubecast.io/experiment":  fmt.Sprintf("https://experiments.example.org/%s/%s", t.namespace, name),
			},
		},
		Spec: spec,
	}}
	return job, run
}

// fate decides how the job ends: most succeed, some do not.
func (j *trainingJob) fate(random *rand.Rand, run time.Duration, annotations map[string]string) {
	someSeconds := func(least, most int) time.Duration {
		return time.Duration(least+random.IntN(most-least)) * time.Second
	}
	switch n := random.IntN(100); {
	case n < 10: // a bug: every attempt fails, soon
		annotations[failPercent] = "100"
		annotations[runSeconds] = strconv.Itoa(2 + random.IntN(8))
		j.Spec.BackoffLimit = new(int32(random.IntN(3)))
	case n < 22: // bad luck: some attempts fail and are tried again
		annotations[failPercent] = "30"
		annotations[failReason] = pick(random, []string{"Error", "OOMKilled"})
		j.Spec.BackoffLimit = new(int32(6))
	case n < 30:
		j.deleteAfter = 3*time.Second + time.Duration(random.Float64()*float64(run))
	case n < 40:
		j.Spec.Suspend = new(true)
		j.resumeAfter = someSeconds(4, 20)
	}
}

func podSpec(w workload, workers, seed int, rate string) corev1.PodSpec {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(w.cpus), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(w.gibibytes)<<30, resource.BinarySI),
	}
	if w.gpus > 0 {
		resources[gpu] = *resource.NewQuantity(int64(w.gpus), resource.DecimalSI)
	}
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name:  "trainer",
			Image: "registry.example.org/" + w.image,
			Args: []string{
				"--config=/configs/" + w.name + ".yaml",
				fmt.Sprintf("--seed=%d", seed),
				"--learning-rate=" + rate,
				"--checkpoints=s3://checkpoints/" + w.name,
			},
			Env: []corev1.EnvVar{
				{Name: "WORLD_SIZE", Value: strconv.Itoa(workers)},
				{Name: "TRACKING_URL", Value: "https://experiments.example.org"},
				{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			},
			Resources:    corev1.ResourceRequirements{Requests: resources, Limits: resources},
			VolumeMounts: []corev1.VolumeMount{{Name: "shared-memory", MountPath: "/dev/shm"}},
		}},
		Volumes: []corev1.Volume{{
			Name:         "shared-memory",
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
		}},
	}
}
