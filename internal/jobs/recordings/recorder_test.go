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
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/recordings"
	"github.com/kubecast/kubecast/internal/jobs/rules"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/store"
	"github.com/kubecast/kubecast/internal/stream"
)

// eachRecorded does something with each life of a kind that has a rule.
func eachRecorded(t *testing.T, do func(*testing.T, *rules.Set, *recordings.Life)) {
	t.Helper()
	lives, err := recordings.All()
	if err != nil {
		t.Fatal(err)
	}
	set := ruleSet(t)
	for _, life := range lives {
		if life.Resource != "" {
			t.Run(life.Scenario, func(t *testing.T) {
				t.Parallel()
				do(t, set, life)
			})
		}
	}
}

// recorded is a history of a cluster in which a life happened.
type recorded struct {
	transitions []*jobs.Transition // the oldest first
	job         *jobs.Job
	runs        []*store.Run
	until       jobs.Time // the last that happened
}

func (r recorded) causes() (causes []string) {
	for _, tr := range r.transitions {
		if tr.Cause != nil {
			causes = append(causes, fmt.Sprintf("%s: %s [%s, %d]", tr.To, tr.Cause.Text, tr.Cause.Reason, tr.Cause.Pods))
		}
	}
	return causes
}

// gateway records what happens in a cluster. It may be stopped, and started again with its database.
type gateway struct {
	api   *apitest.API
	set   *rules.Set
	dir   string
	past  *service.Service
	kinds *cache.Kinds
	stop  func()
}

func (g *gateway) start(t *testing.T) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	var err error
	g.past, err = service.New(service.Options{
		Database: store.Options{Address: "sqlite", StateDir: g.dir}, Rules: g.set, Serves: func(string, string) bool { return true }, Migrate: true, Keep: 1000 * time.Hour,
		Runs: true, Registerer: prometheus.NewRegistry(), Log: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	g.kinds, err = cache.NewKinds(g.api.Connect(t), cache.Options{Topic: stream.Options{Events: 1000, Bytes: 1 << 24, Gather: time.Millisecond}, CatchUp: cache.CatchUpBound{Events: 10_000, Bytes: 1 << 24, Timeout: 20 * time.Second}}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = g.kinds.Run(ctx) })
	if err := g.past.Run(ctx); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { _ = g.past.Record(ctx, g.kinds) })
	g.stop = func() {
		cancel()
		running.Wait()
		if err := g.past.Close(); err != nil {
			t.Error(err)
		}
	}
}

// read is what it has recorded of a life.
func (g *gateway) read(t *testing.T, life *recordings.Life) (r recorded) {
	t.Helper()
	identity, err := g.kinds.Cluster().Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db := g.past.Database()
	log, err := db.Find(t.Context(), store.LogName{Cluster: identity, Resource: life.Resource})
	if err != nil {
		t.Fatal(err)
	}
	filter := store.Filter{Name: life.Scenario}
	if r.transitions, err = db.TransitionsAfter(t.Context(), log, filter, 0, log.Seq, 10_000); err != nil {
		t.Fatal(err)
	}
	jobs, err := db.Jobs(t.Context(), log, filter, store.JobAfter{}, 2)
	if err != nil || len(jobs) != 1 {
		t.Fatal(len(jobs), "jobs", err)
	}
	r.job = jobs[0]
	if r.runs, err = db.Runs(t.Context(), log, store.Filter{}, store.RunAfter{}, 10_000); err != nil {
		t.Fatal(err)
	}
	return r
}

// disturbance is what befalls a gateway, or its connection, at some time of a life.
type disturbance struct {
	at time.Time
	do func(*testing.T, *gateway)
}

// disturbing is what befalls a gateway in a life between two times; nil: nothing.
type disturbing func(api *apitest.API, from, until time.Time) []disturbance

// record records a life as it happens, in its own time, and what befalls the gateway meanwhile.
func record(t *testing.T, set *rules.Set, life *recordings.Life, disturbances disturbing) (r recorded) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { r = recordNow(t, set, life, disturbances) })
	return r
}

func recordNow(t *testing.T, set *rules.Set, life *recordings.Life, disturbances disturbing) recorded {
	t.Helper()
	api, happens := stage(t, life)
	defer api.Close()
	from, until := happens[0].At, happens[len(happens)-1].At
	time.Sleep(time.Until(from.Add(-time.Minute)))
	g := &gateway{api: api, set: set, dir: t.TempDir()}
	g.start(t)
	defer func() { g.stop() }() // the last one
	var disturbed []disturbance
	if disturbances != nil {
		disturbed = disturbances(api, from, until)
	}
	for len(happens)+len(disturbed) > 0 {
		if len(disturbed) > 0 && (len(happens) == 0 || disturbed[0].at.Before(happens[0].At)) {
			time.Sleep(time.Until(disturbed[0].at))
			disturbed[0].do(t, g)
			disturbed = disturbed[1:]
			continue
		}
		time.Sleep(time.Until(happens[0].At))
		happens[0].do()
		happens = happens[1:]
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	r := g.read(t, life)
	r.until = jobs.At(until)
	return r
}

// tellings are of the lives that nothing befell, by name.
var tellings sync.Map

// undisturbed is what is told of a life that nothing befalls.
func undisturbed(t *testing.T, set *rules.Set, life *recordings.Life) recorded {
	t.Helper()
	if told, known := tellings.Load(life.Name()); known {
		return told.(recorded)
	}
	told := record(t, set, life, nil)
	tellings.Store(life.Name(), told)
	return told
}

func ruleSet(t *testing.T) *rules.Set {
	t.Helper()
	var kinds []rules.KindRules
	for _, kind := range rules.Ready() {
		kinds = append(kinds, rules.KindRules{Resource: kind})
	}
	set, err := rules.New(rules.Options{Kinds: kinds})
	if err != nil {
		t.Fatal(err)
	}
	return set
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
