package service

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/dbtest"
	"github.com/kubecast/kubecast/internal/jobs/rules"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/stream"
)

// recording is a history that records a cluster.
type recording struct {
	*Service
	t    *testing.T
	log  store.Log
	stop func()
}

// record begins to record a cluster in a database.
func record(t *testing.T, api *apitest.API, address string) *recording {
	t.Helper()
	set, err := rules.New(rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	a, err := New(Options{
		Database: store.Options{Address: address}, Rules: set, Serves: func(string, string) bool { return true }, Migrate: true, Keep: time.Hour, Runs: true,
		Registerer: prometheus.NewRegistry(), Log: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := cache.NewKinds(api.Connect(t), cache.Options{Topic: stream.Options{Events: 1000, Bytes: 1 << 20, Gather: time.Millisecond}, CatchUp: cache.CatchUpBound{Events: 10_000, Bytes: 1 << 24, Timeout: 20 * time.Second}}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = kinds.Run(ctx) })
	if err := a.Run(ctx); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { _ = a.Record(ctx, kinds) })
	identity, err := kinds.Cluster().Identity(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &recording{Service: a, t: t, log: store.Log{LogName: store.LogName{Cluster: identity, Resource: rules.Jobs}}, stop: sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})}
}

// until waits until the newest transition of a job is so, and returns it.
func (r *recording) until(what, name string, is func(*jobs.Transition) bool) *jobs.Transition {
	r.t.Helper()
	var last *jobs.Transition
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if log, err := r.database.Find(r.t.Context(), r.log.LogName); err == nil {
			page, err := r.database.Transitions(r.t.Context(), log, store.Filter{Name: name}, 0, 1)
			if err != nil {
				r.t.Fatal(err)
			}
			if len(page) == 1 {
				if last = page[0]; is(last) {
					return last
				}
			}
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: the newest transition is %+v, its cause %+v", what, last, last.Cause)
		}
	}
}

// pod puts a pod of a job.
func pod(api *apitest.API, key string, job map[string]any, fields ...string) {
	api.Put("pods", key, append(fields, apitest.Set("metadata.ownerReferences", []any{job}), `spec.nodeName=gpu-07`)...)
}

const (
	podRuns  = `status:={"phase":"Running","containerStatuses":[{"name":"trainer","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}`
	podFails = `status:={"phase":"Failed","containerStatuses":[{"name":"trainer","state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}`
	oom      = "trainer was OOM-killed (exit 137) on gpu-07"
)

func says(state jobs.State) func(*jobs.Transition) bool {
	return func(t *jobs.Transition) bool { return t.To == state }
}

// Pods that only claim to belong to a job, by its name and uid, say nothing of it: those of other
// namespaces, and those that name it otherwise than it is called. Its own pod does, whether its end
// is recorded before or after its job's; with each sort of database, also by another gateway.
func TestPodsThatOnlyClaimToBeAJobsSayNothingOfIt(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, address string) {
		api := apitest.New(apitest.Jobs, apitest.Pods)
		defer api.Close()
		first := record(t, api, address)
		defer first.stop()
		api.Put("jobs", "team-a/train", "status.active:=1", "status.ready:=1")
		job := map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": api.UID("jobs", "team-a/train"), "controller": true}
		other := map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "another", "uid": job["uid"], "controller": true}
		first.until("it runs", "train", says(jobs.Running))
		for key, owner := range map[string]map[string]any{"mallory/forged": job, "team-a/forged": other} {
			pod(api, key, owner, podRuns)
			pod(api, key, owner, podFails)
		}
		pod(api, "team-a/train-0", job, podRuns)
		time.Sleep(time.Second) // what is forged had time to be taken for true
		api.Put("jobs", "team-a/train", apitest.Set("status.conditions", []any{map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}}))
		if told := first.until("it has failed", "train", says(jobs.Failed)); told.Cause == nil || told.Cause.Text != "BackoffLimitExceeded" {
			t.Errorf("forged pods say %+v", told.Cause)
		}
		seq := first.until("it has failed", "train", says(jobs.Failed)).Seq
		first.stop()
		second := record(t, api, address)
		defer second.stop()
		pod(api, "team-a/train-0", job, podFails)
		told := second.until("its pod has ended", "train", func(tr *jobs.Transition) bool { return tr.Cause != nil && tr.Cause.Text == oom })
		if told.Seq != seq || told.Cause.Pods != 1 || told.Cause.Pod != "train-0" {
			t.Errorf("%+v, %+v", told, told.Cause)
		}
		api.Put("jobs", "team-a/next", "status.active:=1", "status.ready:=1")
		second.until("the next runs", "next", says(jobs.Running))
		next := map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "next", "uid": api.UID("jobs", "team-a/next"), "controller": true}
		pod(api, "team-a/next-0", next, podRuns)
		pod(api, "team-a/next-0", next, podFails)
		second.untilEnded("next-0")
		api.Put("jobs", "team-a/next", apitest.Set("status.conditions", []any{map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}}))
		if told := second.until("it has failed", "next", says(jobs.Failed)); told.Cause == nil || told.Cause.Text != oom {
			t.Errorf("at once it says %+v", told.Cause)
		}
	})
}

// untilEnded waits until the end of a pod of a job is recorded.
func (r *recording) untilEnded(pod string) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		log, err := r.database.Find(r.t.Context(), r.log.LogName)
		if err != nil {
			r.t.Fatal(err)
		}
		runs, err := r.database.Runs(r.t.Context(), log, store.Filter{}, store.RunAfter{}, 100)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, run := range runs {
			if run.Name == pod && run.Ended != 0 {
				return
			}
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the end of %s is not recorded", pod)
		}
	}
}
