package recordings_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history/archive"
	"github.com/kubecast/kubecast/internal/history/recordings"
	"github.com/kubecast/kubecast/internal/history/rules"
	"github.com/kubecast/kubecast/internal/history/store"
	"github.com/kubecast/kubecast/internal/stream"
)

// recordedOtherwise are causes of lives that recorders tell otherwise, and why.
var recordedOtherwise = map[string]struct {
	causes []string
	why    string
}{
	"kq-rayjob-preempted": {[]string{"Queued: preempted: prioritization in the ClusterQueue [Preempted, 0]"}, "a job of another kind is not named"},
}

// What recorders of jobs and pods tell of a life, as it happens, is why it ended as it did, with
// each state that has a cause.
func TestRecordedLivesSayWhyWhenTheyAreRecorded(t *testing.T) {
	lives, err := recordings.All()
	if err != nil {
		t.Fatal(err)
	}
	set := ruleSet(t)
	for _, life := range lives {
		if life.Resource == "" {
			continue
		}
		t.Run(life.Scenario, func(t *testing.T) {
			want := why[life.Scenario]
			if other, ok := recordedOtherwise[life.Scenario]; ok {
				want = other.causes
			}
			synctest.Test(t, func(t *testing.T) {
				if got := recorded(t, set, life); !slices.Equal(got, want) {
					t.Errorf("%q, not %q", got, want)
				}
			})
		})
	}
}

// recorded are the causes in a history of a cluster in which a life happens.
func recorded(t *testing.T, set *rules.Set, life *recordings.Life) (causes []string) {
	t.Helper()
	api, happens := stage(t, life)
	time.Sleep(time.Until(happens[0].At.Add(-time.Minute)))
	quiet := slog.New(slog.DiscardHandler)
	past, err := archive.New(archive.Options{
		Database: store.Options{Address: "sqlite", StateDir: t.TempDir()}, Rules: set, Serves: func(string, string) bool { return true }, Migrate: true, Keep: 1000 * time.Hour,
		Runs: true, Registerer: prometheus.NewRegistry(), Log: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := cache.NewKinds(api.Connect(t), cache.Options{Topic: stream.Options{Events: 1000, Bytes: 1 << 24, Gather: time.Millisecond}, CatchUp: cache.CatchUpBound{Events: 10_000, Bytes: 1 << 24, Timeout: 20 * time.Second}}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = kinds.Run(ctx) })
	if err := past.Run(ctx); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { _ = past.Record(ctx, kinds) })
	defer func() {
		cancel()
		running.Wait()
		if err := past.Close(); err != nil {
			t.Error(err)
		}
		api.Close()
	}()
	for _, e := range happens {
		time.Sleep(time.Until(e.At))
		e.do()
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	identity, err := kinds.Cluster().Identity(ctx)
	if err != nil {
		t.Fatal(err)
	}
	log, err := past.Database().Find(ctx, store.LogName{Cluster: identity, Resource: life.Resource})
	if err != nil {
		t.Fatal(err)
	}
	transitions, err := past.Database().TransitionsAfter(ctx, log, store.Filter{Name: life.Scenario}, 0, log.Seq, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range transitions {
		if tr.Cause != nil {
			causes = append(causes, fmt.Sprintf("%s: %s [%s, %d]", tr.To, tr.Cause.Text, tr.Cause.Reason, tr.Cause.Pods))
		}
	}
	return causes
}

// happening is something that happens in a cluster.
type happening struct {
	recordings.Event
	do func()
}

// stage is a cluster in which nothing of a life has happened, and what is to happen. What stands
// between a job and its pods was not recorded: they are the job's.
func stage(t *testing.T, life *recordings.Life) (*apitest.API, []happening) {
	t.Helper()
	group := func(apiVersion string) (group, version string) {
		if before, after, ok := strings.Cut(apiVersion, "/"); ok {
			return before, after
		}
		return "", apiVersion
	}
	api := apitest.New()
	served := map[cluster.Kind]string{}
	serve := func(resource string, o *cluster.Object) string {
		g, v := group(o.Path("apiVersion").Str)
		kind := cluster.Kind{Group: g, Version: v, Resource: resource, Kind: o.Path("kind").Str, Namespaced: true, Watchable: true}
		if served[kind] == "" {
			api.Serve(kind, true)
			served[kind] = resource
		}
		return served[kind]
	}
	var all []happening
	add := func(events []recordings.Event, resource string, counts func(*cluster.Object) bool, also func(*cluster.Object) []string) {
		for _, e := range events {
			o, err := cluster.NewObject(string(e.Object))
			if err != nil {
				t.Fatal(err)
			}
			if !counts(o) {
				continue
			}
			name, key := serve(resource, o), o.GetNamespace()+"/"+o.GetName()
			do := func() { api.Put(name, key, append(fieldsOf(t, e.Object), also(o)...)...) }
			if e.Type == "DELETED" {
				do = func() { api.Delete(name, key) }
			}
			all = append(all, happening{e, do})
		}
	}
	none := func(*cluster.Object) []string { return nil }
	resource, _, _ := strings.Cut(life.Resource, ".")
	var main *cluster.Object
	isMain := func(o *cluster.Object) bool {
		if o.GetName() != life.Scenario {
			return false
		}
		main = cmp.Or(main, o)
		return true
	}
	add(life.Jobs, resource, isMain, none)
	owner := apitest.Set("metadata.ownerReferences", []any{map[string]any{
		"apiVersion": main.Path("apiVersion").Str, "kind": main.Path("kind").Str, "name": main.GetName(), "uid": main.UID(), "controller": true,
	}})
	add(life.Pods, "pods", func(o *cluster.Object) bool {
		return strings.HasPrefix(o.Path("metadata.ownerReferences.0.name").Str, life.Scenario)
	}, func(*cluster.Object) []string { return []string{owner} })
	add(life.Workloads, "workloads", func(*cluster.Object) bool { return true }, none)
	slices.SortStableFunc(all, func(a, b happening) int { return a.At.Compare(b.At) })
	return api, all
}

// fieldsOf is an object as fields of one that is put.
func fieldsOf(t *testing.T, text json.RawMessage) (fields []string) {
	t.Helper()
	var object map[string]json.RawMessage
	var metadata map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(object["metadata"], &metadata); err != nil {
		t.Fatal(err)
	}
	for name, value := range object {
		if name != "metadata" {
			fields = append(fields, name+":="+string(value))
		}
	}
	for name, value := range metadata {
		if name != "resourceVersion" && name != "managedFields" {
			fields = append(fields, "metadata."+name+":="+string(value))
		}
	}
	return fields
}
