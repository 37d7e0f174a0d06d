package reasons

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/stream"
)

// A pod belongs to the topmost job that controls it. What is not there, or not read yet, may have
// another one above it, and that is said.
func TestAPodBelongsToTheTopmostJobAsFarAsThatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Jobs, apitest.Pods, apitest.Widgets, apitest.Deployments)
		kinds, err := cache.NewKinds(api.Connect(t), cache.Options{Topic: stream.Options{Events: 20, Bytes: 1 << 20}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		w := New(Options{Kinds: kinds, Jobs: []string{"jobs.batch", "widgets.example.org"}, Serves: func(string, string) bool { return true }, Log: slog.New(slog.DiscardHandler)})
		controlled := func(apiVersion, kind, name, uid string) string {
			return apitest.Set("metadata.ownerReferences", []map[string]any{{"apiVersion": apiVersion, "kind": kind, "name": name, "uid": uid, "controller": true}})
		}
		api.Put("widgets", "n/w")
		api.Put("jobs", "n/j", controlled("example.org/v1", "Widget", "w", api.UID("widgets", "n/w")))
		uid := api.UID("jobs", "n/j")
		pod := func(key string, fields ...string) *cluster.Object {
			api.Put("pods", key, fields...)
			o, err := cluster.NewObject(api.Objects("pods")[key])
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		of, bare, other := pod("n/p", controlled("batch/v1", "Job", "j", uid)), pod("n/bare"), pod("n/other", controlled("apps/v1", "ReplicaSet", "r", "r"))
		elsewhere, forged := pod("m/p", controlled("batch/v1", "Job", "j", uid)), pod("n/forged", controlled("batch/v1", "Job", "j", "other"))
		is := func(when string, pod *cluster.Object, want jobs.Ref, wantKnown bool) {
			t.Helper()
			if job, known := w.JobOf(pod); job != want || known != wantKnown {
				t.Errorf("%s %s belongs to %+v (known: %t), not to %+v (%t)", when, pod.Key(), job, known, want, wantKnown)
			}
		}
		is("before anything was read", of, jobs.Ref{}, false)
		is("before anything was read", other, jobs.Ref{}, true)
		running.Go(func() { _ = kinds.Run(ctx) })
		running.Go(func() { _ = w.Run(ctx) })
		settling, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		if w.Settle(settling); settling.Err() != nil {
			t.Fatal("it does not settle")
		}
		top, job := jobs.Ref{Resource: "widgets.example.org", Name: "w", UID: api.UID("widgets", "n/w")}, jobs.Ref{Resource: "jobs.batch", Name: "j", UID: uid}
		is("then", of, top, true)
		is("then", bare, jobs.Ref{}, true)
		is("then", other, jobs.Ref{}, true)
		is("then", elsewhere, job, false)
		is("then", forged, jobs.Ref{Resource: "jobs.batch", Name: "j", UID: "other"}, false)
		api.Delete("jobs", "n/j")
		time.Sleep(time.Second)
		synctest.Wait()
		is("after its job", of, job, false)
		cancel()
		synctest.Wait()
		is("while the gateway ends", of, job, false)
		is("while the gateway ends", other, jobs.Ref{}, true)
	})
}
