package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// submitter plays the users who submit training jobs, change their minds and delete jobs.
type submitter struct {
	client kubernetes.Interface
	rate   float64 // jobs per second
	pace   pace
	log    io.Writer

	examples bool // some lives that are worth a look are among them

	// inFlight bounds the requests under way. While it is full, jobs are skipped rather than saved up.
	inFlight chan struct{}
	tasks    sync.WaitGroup

	mu      sync.Mutex
	failing bool
}

func newSubmitter(client kubernetes.Interface, jobsPerSecond float64, nodes int, examples bool, log io.Writer) *submitter {
	return &submitter{
		client:   client,
		rate:     jobsPerSecond,
		pace:     paceFor(jobsPerSecond, nodes),
		log:      log,
		examples: examples,
		inFlight: make(chan struct{}, 64),
	}
}

// firstJobs are submitted at once, so that there is something to see.
const firstJobs = 6

// run submits jobs until ctx ends. The jobs are independent of each other, so the time between two is exponentially
// distributed.
func (s *submitter) run(ctx context.Context) {
	defer s.tasks.Wait()
	if s.examples {
		s.tasks.Go(func() { s.show(ctx) })
	}
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for range firstJobs {
		s.submit(ctx, newTrainingJob(random, s.pace))
	}
	next := time.Now()
	for {
		next = next.Add(time.Duration(random.ExpFloat64() / s.rate * float64(time.Second)))
		if !sleep(ctx, time.Until(next)) {
			return
		}
		s.submit(ctx, newTrainingJob(random, s.pace))
	}
}

// submit starts the job's life, and does not wait for its end.
func (s *submitter) submit(ctx context.Context, job trainingJob) {
	select {
	case s.inFlight <- struct{}{}:
	default:
		return
	}
	s.tasks.Go(func() {
		_, err := s.client.BatchV1().Jobs(job.Namespace).Create(ctx, job.Job, metav1.CreateOptions{})
		<-s.inFlight
		s.report(ctx, err)
		if err != nil {
			return
		}
		if job.resumeAfter > 0 && sleep(ctx, job.resumeAfter) {
			s.insist(ctx, func() error {
				resume := []byte(`{"spec":{"suspend":false}}`)
				_, err := s.client.BatchV1().Jobs(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, resume, metav1.PatchOptions{})
				return err
			})
		}
		for _, r := range job.resizes {
			if !sleep(ctx, r.after) {
				return
			}
			s.insist(ctx, func() error {
				size := fmt.Appendf(nil, `{"spec":{"parallelism":%d,"completions":%d}}`, r.workers, r.workers)
				_, err := s.client.BatchV1().Jobs(job.Namespace).Patch(ctx, job.Name, types.MergePatchType, size, metav1.PatchOptions{})
				return err
			})
		}
		if job.deleteAfter > 0 && sleep(ctx, job.deleteAfter) {
			s.insist(ctx, func() error {
				policy := metav1.DeletePropagationBackground
				return s.client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{PropagationPolicy: &policy})
			})
		}
	})
}

// insist repeats a request for a job until it succeeds or the job is gone. Otherwise a job would stay suspended for
// ever because the API server was away at the wrong moment.
func (s *submitter) insist(ctx context.Context, do func() error) {
	for {
		err := do()
		s.report(ctx, err)
		if err == nil || apierrors.IsNotFound(err) || !sleep(ctx, 2*time.Second) {
			return
		}
	}
}

// report logs when submitting begins to fail and when it works again, but not each failure: the API server may be
// away on purpose.
func (s *submitter) report(ctx context.Context, err error) {
	// These are no failures: a job may be gone already when it is to be deleted or resumed, and its name may be
	// taken.
	if ctx.Err() != nil || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return
	}
	s.mu.Lock()
	changed := s.failing != (err != nil)
	s.failing = err != nil
	s.mu.Unlock()
	if !changed {
		return
	}
	if err != nil {
		fmt.Fprintln(s.log, "submitting jobs fails:", err)
	} else {
		fmt.Fprintln(s.log, "submitting jobs works again")
	}
}

// sleep returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
