package recorder

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/pods"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// podWorld knows what became of each pod, from who did it.
type podWorld struct {
	api  *apitest.API
	runs map[string]*jobs.Run // by uid, of pods that belong to jobs
	none map[string]bool      // uids of those that do not
	uids map[string]string    // by name, of those that are there
}

func newPodWorld() (*podWorld, *memory) {
	api := apitest.New(apitest.Jobs, apitest.Pods, apitest.Deployments)
	api.Skip(1)
	return &podWorld{api: api, runs: map[string]*jobs.Run{}, none: map[string]bool{}, uids: map[string]string{}},
		&memory{jobs: map[string]*jobs.Job{}, runs: map[string]store.Run{}, parked: map[string]bool{}, of: map[jobs.Ref]int64{}, kept: map[string]store.Kept{}}
}

// job makes a job, and records it at once or later.
func (w *podWorld) job(db *memory, name string, recorded bool) jobs.Ref {
	if w.api.Objects("jobs")["n/"+name] == "" {
		w.api.Put("jobs", "n/"+name)
	}
	ref := jobs.Ref{Resource: "jobs.batch", Name: name, UID: w.api.UID("jobs", "n/"+name)}
	if recorded {
		db.set(func() { db.of[ref] = 7 })
	}
	return ref
}

func controlledBy(apiVersion, kind, name, uid string) string {
	return apitest.Set("metadata.ownerReferences", []map[string]any{{"apiVersion": apiVersion, "kind": kind, "name": name, "uid": uid, "controller": true}})
}

// stages are what a pod may look like.
var stages = map[string][]string{
	"made":    {`status.phase:="Pending"`},
	"bound":   {`spec.nodeName:="node-1"`, `status.phase:="Pending"`, `status.conditions:=[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]`},
	"runs":    {`spec.nodeName:="node-1"`, `status.phase:="Running"`, `status.containerStatuses:=[{"name":"main","restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]`},
	"again":   {`spec.nodeName:="node-1"`, `status.phase:="Running"`, `status.containerStatuses:=[{"name":"main","restartCount":2,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]`},
	"beats":   {`spec.nodeName:="node-1"`, `status.phase:="Running"`, `status.podIP:="10.0.0.1"`, `status.containerStatuses:=[{"name":"main","restartCount":0,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]`},
	"fails":   {`spec.nodeName:="node-1"`, `status.phase:="Failed"`, `status.containerStatuses:=[{"name":"main","state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]`},
	"is done": {`spec.nodeName:="node-1"`, `status.phase:="Succeeded"`, `status.containerStatuses:=[{"name":"main","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]`},
}

func (w *podWorld) put(name, stage, owner string) {
	w.api.Put("pods", "n/"+name, append(slices.Clone(stages[stage]), owner)...)
	o, err := cluster.NewObject(w.api.Objects("pods")["n/"+name])
	if err != nil {
		panic(err)
	}
	w.uids[name] = o.UID()
	if o.Path("metadata.ownerReferences.0.kind").Str != "Job" {
		w.none[o.UID()] = true
		return
	}
	w.see(jobs.SeenPod{ObjectID: jobs.ObjectID{UID: o.UID(), Namespace: "n", Name: name}, PodSaid: pods.Read(o, nil), Version: o.Version(), Observed: jobs.Time(o.Version())})
}

func (w *podWorld) remove(name string) {
	uid := w.uids[name]
	if uid == "" {
		return
	}
	o, err := cluster.NewObject(w.api.Objects("pods")["n/"+name])
	if err != nil {
		panic(err)
	}
	version := w.api.Delete("pods", "n/"+name)
	delete(w.uids, name)
	w.see(jobs.SeenPod{ObjectID: jobs.ObjectID{UID: uid}, PodSaid: pods.Read(o, nil), Version: version, Observed: jobs.Time(version), Deleted: true})
}

func (w *podWorld) see(seen jobs.SeenPod) {
	if w.none[seen.UID] {
		return
	}
	if next := jobs.NextRun(w.runs[seen.UID], seen); next != nil {
		w.runs[seen.UID] = next
	}
}

// whatBecame is a run without its times, which are when somebody saw it.
func whatBecame(r *jobs.Run) string {
	code := "none"
	if r.ExitCode != nil {
		code = fmt.Sprint(*r.ExitCode)
	}
	return fmt.Sprintf("%s/%s on %q, %d restarts, exit %s of %q, %q; scheduled %t, started %t, ended %t", r.Namespace, r.Name, r.Node, r.Restarts, code, r.Container, r.Reason, r.Scheduled != 0, r.Started != 0, r.Ended != 0)
}

// isWhatThereWas checks that each pod of a job has one run, at its job, as it ended or is; and that
// each number says something new.
func (w *podWorld) isWhatThereWas(t *testing.T, db *memory) {
	t.Helper()
	before := map[string]store.Run{}
	for i, run := range db.written {
		was, again := before[run.UID]
		if run.Seq != uint64(i+1) {
			t.Errorf("place %d has the number %d", i, run.Seq)
		}
		if again && whatBecame(was.Run) == whatBecame(run.Run) && was.Of == run.Of && was.Job == run.Job {
			t.Errorf("number %d says nothing new: %s", run.Seq, whatBecame(run.Run))
		}
		before[run.UID] = run
	}
	for uid, want := range w.runs {
		got, there := db.runs[uid]
		if !there {
			t.Errorf("%s is not recorded", whatBecame(want))
			continue
		}
		gone := !slices.Contains(slices.Collect(maps.Values(w.uids)), uid)
		if whatBecame(got.Run) != whatBecame(want) || got.Of != 7 || got.Owner != "owner of "+got.Job.Name || got.NamespaceUID == "" || got.Late || (got.Gone != 0) != gone {
			t.Errorf("%s of %+v (log %d, late %t, gone %d) is recorded, and there was %s (gone %t)", whatBecame(got.Run), got.Job, got.Of, got.Late, got.Gone, whatBecame(want), gone)
		}
	}
	for uid := range db.runs {
		if db.parked[uid] && db.runs[uid].Of != 0 {
			t.Errorf("there are two rows of %s", uid)
		}
		if w.runs[uid] == nil {
			t.Errorf("a run of a pod that belongs to no job: %+v", db.runs[uid])
		}
	}
}

// While pods live at random, recorders are killed and started, two at once, the database fails
// before and after it has written, watches break off, and jobs are recorded before or long after
// their pods are seen: each pod of a job has one run, as it was, and pods of others have none.
func TestRecordersThatAreKilledWriteEachRunOnce(t *testing.T) {
	for seed := range uint64(8) {
		t.Logf("seed %d", seed)
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 5))
			world, db := newPodWorld()
			begin := func(name string) *replica {
				return startOf(t, world.api.Connect(t), db, name, ring, apitest.Pods, nil)
			}
			replicas := []*replica{begin("r0"), begin("r1")}
			settle()
			db.trouble(seed, 6)
			names := slices.Sorted(maps.Keys(stages))
			owners := map[string]string{} // by the pod's name: as long as it is there, it has the same
			step := 0
			live := func() {
				name, stage := fmt.Sprintf("pod-%d", random.IntN(12)), names[random.IntN(len(names))]
				if world.uids[name] == "" {
					job := world.job(db, fmt.Sprintf("job-%d", random.IntN(4)), random.IntN(3) > 0)
					if owners[name] = controlledBy("batch/v1", "Job", job.Name, job.UID); random.IntN(5) == 0 {
						owners[name] = controlledBy("apps/v1", "ReplicaSet", "r", "r")
					}
				}
				world.put(name, stage, owners[name])
			}
			for step = range 400 {
				switch n := random.IntN(100); {
				case n < 70:
					live()
				case n < 82:
					world.remove(fmt.Sprintf("pod-%d", random.IntN(12)))
				case n < 84:
					[]func(){func() { world.api.CutWatches() }, world.api.EndWatches, world.api.EndWatchesWithin}[random.IntN(3)]()
				case n < 87:
					i := random.IntN(2)
					db.set(func() { db.forgetful = random.IntN(2) == 0 })
					replicas[i].stop()
					for range random.IntN(40) {
						live()
					}
					replicas[i] = begin(fmt.Sprintf("r%d-%d", i, step))
				case n < 89:
					db.set(func() { db.away = !db.away })
				case n < 91: // the recorder with the lease is taken for dead, and goes on
					db.set(func() { db.until = time.Time{} })
				default:
					time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
				}
			}
			for i := range 4 {
				if _, there := world.api.Objects("jobs")[fmt.Sprintf("n/job-%d", i)]; there {
					world.job(db, fmt.Sprintf("job-%d", i), true)
				}
			}
			db.calm(replicas)
			world.isWhatThereWas(t, db)
		})
	}
}

// Whoever makes pods in a namespace names whatever they like as their owners: jobs of other
// namespaces, which are not theirs, and what no database keeps. Others' runs are recorded all the
// same.
func TestPodsWithForgedOwnersHinderNobodyAndJoinNoJobOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newPodWorld()
		job := world.job(db, "job", true)
		r := startOf(t, world.api.Connect(t), db, "r", ring, apitest.Pods, nil)
		settle()
		forged := map[string]string{
			"m/elsewhere": job.UID, "m/zero": "a\x00b", "m/long": strings.Repeat("u", 300), "n/zero": job.UID + "\x00", "n/invented": "invented",
		}
		for pod, uid := range forged {
			world.api.Put("pods", pod, append(slices.Clone(stages["runs"]), controlledBy("batch/v1", "Job", job.Name, uid))...)
		}
		settle()
		world.put("pod", "runs", controlledBy("batch/v1", "Job", job.Name, job.UID))
		settle()
		r.stop()
		db.set(func() {
			if db.refused > 0 {
				t.Errorf("%d questions that a database does not take", db.refused)
			}
			for pod := range forged {
				if run, ok := db.runs[world.api.UID("pods", pod)]; ok && run.Of != 0 {
					t.Errorf("%s belongs to %+v of log %d", pod, run.Job, run.Of)
				}
			}
		})
		for pod := range forged {
			world.none[world.api.UID("pods", pod)] = true
			db.set(func() { delete(db.runs, world.api.UID("pods", pod)) })
		}
		if run := db.runs[world.uids["pod"]]; run.Of != 7 || run.Late {
			t.Errorf("another's run is %+v", run)
		}
	})
}

// A namespace is deleted, and made anew by somebody who knows the uid of a job that was there: none
// of their pods is that job's. A pod that was made before its job was deleted is, whenever it is
// seen.
func TestPodsJoinNoJobOfAFormerNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newPodWorld()
		job := world.job(db, "job", true)
		world.api.Delete("jobs", "n/job")
		deleted := jobs.At(time.Now())
		db.set(func() { db.deleted = map[jobs.Ref]jobs.Time{job: deleted} })
		r := startOf(t, world.api.Connect(t), db, "r", ring, apitest.Pods, nil)
		settle()
		made := map[string]jobs.Time{"orphan": deleted - 60_000, "last": deleted, "at-its-deletion": deleted + 3000, "forged": deleted + 20_000}
		for name, at := range made {
			world.api.Put("pods", "n/"+name, append(slices.Clone(stages["runs"]), controlledBy("batch/v1", "Job", job.Name, job.UID), "metadata.creationTimestamp="+at.Std().Format(time.RFC3339))...)
		}
		settle()
		r.stop()
		for name, at := range made {
			run, there := db.runs[world.api.UID("pods", "n/"+name)]
			if want := at <= deleted+3000; !there || (run.Of == 7) != want {
				t.Errorf("%s is recorded: %t, in log %d; it is the job's: %t", name, there, run.Of, want)
			}
		}
	})
}

// A pod may outlive its job for as long as that is kept. The job is removed between two changes of
// the pod: a run that is written behind that would stay for ever.
func TestNoRunIsWrittenBehindTheRemovalOfItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newPodWorld()
		job := world.job(db, "job", true)
		r := startOf(t, world.api.Connect(t), db, "r", ring, apitest.Pods, nil)
		defer r.stop()
		settle()
		pod := func(stage string) {
			world.api.Put("pods", "n/pod", append(slices.Clone(stages[stage]), controlledBy("batch/v1", "Job", job.Name, job.UID))...)
			time.Sleep(foundFor / 10)
			synctest.Wait()
		}
		pod("made")
		world.api.Delete("jobs", "n/job")
		db.set(func() { db.deleted = map[jobs.Ref]jobs.Time{job: jobs.At(time.Now())} })
		settle()
		pod("runs")
		written := 0
		db.set(func() {
			written = len(db.written)
			delete(db.of, job)
		})
		pod("is done")
		db.set(func() {
			if written != 2 || len(db.written) != written {
				t.Errorf("%d changes of the run are written, and %d behind the removal of its job", written, len(db.written)-written)
			}
		})
	})
}

// A pod may be seen before the job that controls it was read, and so before it is known of what
// that job is a part. A recorder that takes over at that moment finds that out, or the topmost job
// would have used nothing, for good.
func TestARunThatIsFoundAgainBelongsToTheTopmostJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newPodWorld()
		world.api.Serve(apitest.Widgets, true)
		begin := func(name string) *replica {
			return startOf(t, world.api.Connect(t), db, name, ring, apitest.Pods, nil, "widgets.example.org")
		}
		r := begin("a")
		settle()
		pods := map[string]string{"part": "pod", "gone": "other"} // by job
		for job, pod := range pods {
			world.api.Put("pods", "n/"+pod, append(slices.Clone(stages["runs"]), controlledBy("batch/v1", "Job", job, "uid of "+job))...)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		r.stop()
		world.api.Put("widgets", "n/top")
		top := jobs.Ref{Resource: "widgets.example.org", Name: "top", UID: world.api.UID("widgets", "n/top")}
		world.api.Put("jobs", "n/part", "metadata.uid=uid of part", controlledBy("example.org/v1", "Widget", top.Name, top.UID))
		part, gone := jobs.Ref{Resource: "jobs.batch", Name: "part", UID: "uid of part"}, jobs.Ref{Resource: "jobs.batch", Name: "gone", UID: "uid of gone"}
		db.set(func() { db.of[top], db.of[part], db.of[gone] = 7, 8, 9 })
		r = begin("b")
		settle()
		r.stop()
		for job, want := range map[string]jobs.Ref{"part": top, "gone": gone} {
			if run := db.runs[world.api.UID("pods", "n/"+pods[job])]; run.Run == nil || run.Job != want || run.Of != db.of[want] {
				t.Errorf("%s is of %+v, in log %d", pods[job], run.Job, run.Of)
			}
		}
	})
}

// A JobSet deletes its Jobs when it begins anew. A recorder that was away until then reads of pods
// whose Job is gone, whose row says of what it was a part: without that, what these pods took would
// be nobody's whom its user knows.
func TestAPodOfAPartThatIsGoneIsOfTheTopmostJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newPodWorld()
		world.api.Serve(apitest.Widgets, true)
		begin := func(name string) *replica {
			return startOf(t, world.api.Connect(t), db, name, ring, apitest.Pods, nil, "widgets.example.org")
		}
		world.api.Put("widgets", "n/top")
		r := begin("a")
		settle()
		r.stop()
		top := jobs.Ref{Resource: "widgets.example.org", Name: "top", UID: world.api.UID("widgets", "n/top")}
		part := jobs.Ref{Resource: "jobs.batch", Name: "part", UID: "uid of part"}
		world.api.Put("jobs", "n/part", "metadata.uid=uid of part", controlledBy("example.org/v1", "Widget", top.Name, top.UID))
		world.api.Put("pods", "n/pod", append(slices.Clone(stages["runs"]), controlledBy("batch/v1", "Job", part.Name, part.UID))...)
		uid := world.api.UID("pods", "n/pod")
		world.api.Delete("jobs", "n/part")
		world.api.Delete("pods", "n/pod")
		db.set(func() {
			db.of[top], db.of[part] = 7, 8
			db.parents = map[jobs.Ref]jobs.Ref{part: top}
		})
		r = begin("b")
		time.Sleep(time.Minute)
		settle()
		r.stop()
		if run := db.runs[uid]; run.Run == nil || run.Job != top || run.Of != 7 {
			t.Errorf("it is recorded as %+v", run)
		}
	})
}

// While the database is slow, a run that moves to its job waits to be written, and then changes
// again: it must leave where it was all the same.
func TestARunThatMovesAndChangesInOneBatchLeavesWhereItWas(t *testing.T) {
	of := func(version uint64, log int64, parked bool) *store.Run {
		return &store.Run{Run: &jobs.Run{ObjectID: jobs.ObjectID{UID: "p"}, Version: version}, Of: log, Parked: parked}
	}
	b := &batch{runs: []*store.Run{of(1, 7, true)}}
	b.add(&batch{runs: []*store.Run{of(2, 7, false)}})
	if len(b.runs) != 1 || b.runs[0].Version != 2 || !b.runs[0].Parked {
		t.Errorf("%+v is written", b.runs[0])
	}
}

// A pod is gone whose run nobody is shown yet, and before that is written its run moves to its job:
// it is not looked for where it was.
func TestARunThatMovesAfterItsPodIsGoneIsNotedWhereItIs(t *testing.T) {
	moved := &store.Run{Run: &jobs.Run{ObjectID: jobs.ObjectID{UID: "p"}}, Of: 7, Parked: true, Gone: 5}
	b := &batch{gone: []store.Gone{{Pod: "p", At: 5}, {Pod: "other", At: 5}}}
	b.add(&batch{runs: []*store.Run{moved}, gone: []store.Gone{{Pod: "last", Of: 7, At: 6}}})
	if len(b.runs) != 1 || len(b.gone) != 2 || b.gone[0].Pod != "other" || b.gone[1].Pod != "last" {
		t.Errorf("%+v, %+v", b.runs, b.gone)
	}
}

// Somebody makes more pods of jobs that there never were than are looked for: those of others still
// come to their jobs, recorded late or not.
func TestInventedJobsOfOneNamespaceHideNoOtherJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newPodWorld()
		large := ring
		large.Events, large.Bytes = 2*mostSought, 1<<30
		r := startOf(t, world.api.Connect(t), db, "r", large, apitest.Pods, nil)
		settle()
		for i := range mostSought + 100 {
			world.api.Put("pods", fmt.Sprintf("m/p%d", i), `status.phase:="Pending"`, controlledBy("batch/v1", "Job", "j", fmt.Sprintf("invented-%d", i)))
		}
		time.Sleep(5 * time.Second)
		var owners []string
		for i := range 20 {
			job := world.job(db, fmt.Sprintf("job-%d", i), false)
			owners = append(owners, job.Name)
			world.put(fmt.Sprintf("pod-%d", i), "runs", controlledBy("batch/v1", "Job", job.Name, job.UID))
		}
		time.Sleep(time.Second)
		for _, name := range owners {
			world.job(db, name, true)
		}
		settle()
		r.stop()
		there := 0
		for _, run := range db.runs {
			if run.Of == 7 {
				there++
			}
		}
		if there != len(owners) {
			t.Errorf("%d of %d runs came to their jobs", there, len(owners))
		}
	})
}

// Pods that come and go while the API server forgets what happened were seen by nobody, so of jobs
// from before it is not known whether they had any. A restart after which everything is read again
// is no such time.
func TestPodsThatNobodySawAreNotTakenForNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newPodWorld()
		job := world.job(db, "job", true)
		pod := func(name string) {
			world.put(name, "runs", controlledBy("batch/v1", "Job", job.Name, job.UID))
			world.remove(name)
		}
		began := func(what string, want int) {
			t.Helper()
			settle()
			if n := len(db.began); n != want || n > 0 && db.began[n-1] > jobs.At(time.Now()) {
				t.Errorf("%s: it began anew %d times, not %d: %v", what, n, want, db.began)
			}
		}
		r := startOf(t, world.api.Connect(t), db, "a", ring, apitest.Pods, nil)
		began("the first start", 1)
		world.api.EndWatches()
		pod("watched")
		began("a watch that broke off", 1)
		r.stop()
		pod("read again")
		r = startOf(t, world.api.Connect(t), db, "b", ring, apitest.Pods, nil)
		began("a restart", 1)
		r.stop()
		pod("forgotten")
		world.api.Compact()
		r = startOf(t, world.api.Connect(t), db, "c", ring, apitest.Pods, nil)
		defer r.stop()
		began("a restart after the API server has forgotten", 2)
		if len(db.runs) != 2 {
			t.Errorf("%d pods were seen", len(db.runs))
		}
	})
}

// A job's pod has ended before anybody recorded it, is seen for two seconds, and is gone: it held its node for as long as its kubelet
// says, also if whoever preempted it has left nothing that says when it was bound.
func TestAPodThatIsSeenOnlyAfterItsEndHeldItsNodeUntilThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newPodWorld()
		job := world.job(db, "job", true)
		ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
		world.api.Put("pods", "n/pod", controlledBy("batch/v1", "Job", job.Name, job.UID), apitest.Set("metadata.creationTimestamp", ago(2*time.Hour)), `spec.nodeName:="node-1"`,
			apitest.Set("spec.containers", []map[string]any{{"name": "main", "resources": map[string]any{"requests": map[string]string{"nvidia.com/gpu": "2"}}}}),
			`status.phase:="Failed"`, apitest.Set("status.startTime", ago(2*time.Hour)),
			apitest.Set("status.conditions", []map[string]string{{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "lastTransitionTime": ago(time.Hour)}}),
			apitest.Set("status.containerStatuses", []map[string]any{{"name": "main", "state": map[string]any{"terminated": map[string]any{"exitCode": 143, "reason": "Error", "startedAt": ago(2 * time.Hour), "finishedAt": ago(time.Hour)}}}}))
		uid := world.api.UID("pods", "n/pod")
		r := startOf(t, world.api.Connect(t), db, "r", ring, apitest.Pods, nil)
		settle()
		time.Sleep(2 * time.Second)
		world.api.Delete("pods", "n/pod")
		settle()
		r.stop()
		run := db.runs[uid]
		if run.Run == nil || run.Gone == 0 || run.Reason != jobs.Preempted {
			t.Fatalf("%+v", run)
		}
		var total jobs.Total
		total.Add(run.Run)
		if hours := total.Use(jobs.At(time.Now())).Hours.GPUs; hours != 2 {
			t.Errorf("it held GPUs for %v hours, not 2: from %d to %d", hours, run.Scheduled, run.Ended)
		}
	})
}

// A pod's devices are those that the claims of its own namespace were given, and stay when these
// are gone, as claims are that were made for the pod.
func TestARunKeepsTheDevicesOfItsClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New(apitest.Jobs, apitest.Pods, apitest.Claims)
		_, db := newPodWorld()
		api.Put("jobs", "n/job")
		job := jobs.Ref{Resource: "jobs.batch", Name: "job", UID: api.UID("jobs", "n/job")}
		db.of[job] = 7
		given := func(device string) string {
			return apitest.Set("status.allocation.devices.results", []map[string]any{
				{"request": "gpu", "driver": "gpu.example.org", "pool": "node-1", "device": device}, {"request": "watch", "driver": "gpu.example.org", "pool": "node-1", "device": "all", "adminAccess": true},
			})
		}
		api.Put("resourceclaims", "n/made", given("gpu-0"))
		api.Put("resourceclaims", "n/shared", given("gpu-1"))
		api.Put("resourceclaims", "m/unknown", given("gpu-2"))
		r := startOf(t, api.Connect(t), db, "r", ring, apitest.Pods, nil)
		settle()
		put := func(stage string) {
			api.Put("pods", "n/pod", append(slices.Clone(stages[stage]), controlledBy("batch/v1", "Job", job.Name, job.UID),
				apitest.Set("spec.resourceClaims", []map[string]any{{"name": "a", "resourceClaimTemplateName": "t"}, {"name": "b", "resourceClaimName": "shared"}, {"name": "c", "resourceClaimName": "unknown"}}),
				apitest.Set("status.resourceClaimStatuses", []map[string]any{{"name": "a", "resourceClaimName": "made"}}))...)
			settle()
		}
		want := []jobs.Device{{Driver: "gpu.example.org", Pool: "node-1", Device: "gpu-0"}, {Driver: "gpu.example.org", Pool: "node-1", Device: "gpu-1"}}
		put("bound")
		uid := api.UID("pods", "n/pod")
		db.set(func() {
			if got := db.runs[uid].Devices; !slices.Equal(got, want) {
				t.Errorf("it has %+v", got)
			}
		})
		api.Delete("resourceclaims", "n/made")
		settle()
		put("runs")
		api.Delete("resourceclaims", "n/shared")
		settle()
		put("is done")
		r.stop()
		if run := db.runs[uid]; !slices.Equal(run.Devices, want) || run.Ended == 0 {
			t.Errorf("in the end it is %+v", run.Run)
		}
	})
}
