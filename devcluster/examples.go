package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// license is a resource of which there is one in the cluster, on its first node. Jobs that need
	// it come one after the other.
	license corev1.ResourceName = "devcluster.kubecast.io/license"
	// urgent is the PriorityClass of jobs for which others give way.
	urgent = "urgent"
	// examplesEach is how often all examples are submitted.
	examplesEach = 4 * time.Minute
)

// example is a job whose life is worth a look.
type example struct {
	trainingJob
	after time.Duration // when it is submitted, in its round
}

// newExamples invents a round of them, all of one person's.
func newExamples(random *rand.Rand, p pace) []example {
	job := func(kind, purpose string, workers int32, run int) (trainingJob, map[string]string) {
		t := teams[0]
		j, _ := plainJob(random, p, t, t.workloads[len(t.workloads)-1], t.owners[0])
		j.Name = fmt.Sprintf("%s-%06x", kind, random.IntN(1<<24))
		j.Labels["app.kubernetes.io/instance"] = j.Name
		j.Annotations["kubecast.io/description"] = purpose
		j.Spec.Parallelism, j.Spec.Completions, j.Spec.CompletionMode = &workers, &workers, nil
		j.Spec.ActiveDeadlineSeconds = nil
		annotations := j.Spec.Template.Annotations
		annotations[runSeconds] = strconv.Itoa(run)
		return j, annotations
	}
	needsLicense := func(j trainingJob) {
		one := resource.NewQuantity(1, resource.DecimalSI)
		resources := j.Spec.Template.Spec.Containers[0].Resources // requests and limits are one map
		resources.Requests[license] = *one
	}

	oom, annotations := job("out-of-memory", "runs out of memory, and is not tried again", 1, 15)
	annotations[failPercent], annotations[failReason] = "100", "OOMKilled"
	oom.Spec.BackoffLimit = new(int32)

	many, annotations := job("many-completions", "twenty completions, four at a time, of which some fail and are tried again", 4, 6)
	many.Spec.Completions = new(int32(20))
	annotations[failPercent] = "10"
	many.Spec.BackoffLimit = new(int32(20))

	elastic, _ := job("elastic", "begins with two workers, has five, and ends with three", 2, 60)
	elastic.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	elastic.resizes = []resize{{15 * time.Second, 5}, {20 * time.Second, 3}}

	preempted, _ := job("preempted", "gives way to somebody more urgent, and is begun anew", 1, 45)
	needsLicense(preempted)

	pressing, _ := job("urgent", "takes the place of what is less urgent", 1, 15)
	needsLicense(pressing)
	pressing.Spec.Template.Spec.PriorityClassName = urgent
	return []example{{oom, 0}, {many, 0}, {elastic, 0}, {preempted, 0}, {pressing, 20 * time.Second}}
}

// show submits examples until ctx ends.
func (s *submitter) show(ctx context.Context) {
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for {
		for _, e := range newExamples(random, s.pace) {
			s.tasks.Go(func() {
				if sleep(ctx, e.after) {
					s.submit(ctx, e.trainingJob)
				}
			})
		}
		if !sleep(ctx, examplesEach) {
			return
		}
	}
}
