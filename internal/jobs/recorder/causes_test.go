package recorder

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// ends has the database know how a pod of a job ended, and when, as if somebody had recorded that.
func (m *memory) ends(job, pod, reason string, now jobs.Time) {
	code := int64(137)
	m.set(func() {
		m.runs[pod] = store.Run{Of: 7, Run: &jobs.Run{
			ObjectID: jobs.ObjectID{UID: pod, Namespace: "n", Name: pod}, Job: jobs.Ref{Resource: "jobs.batch", UID: job}, Node: "gpu-07",
			Created: now - 9000, Scheduled: now - 8000, Started: now - 7000, Ended: now, Reason: reason, Container: "trainer", ExitCode: &code,
		}}
	})
}

// endedAt has the database know of a run of that kind at which version its end was certain.
func (m *memory) endedAt(pod string, version uint64) {
	m.set(func() {
		run := *m.runs[pod].Run
		run.EndVersion = version
		of := m.runs[pod]
		of.Run = &run
		m.runs[pod] = of
	})
}

// recordsOneThatRuns is a recorder of a cluster in which the job a runs.
func recordsOneThatRuns(t *testing.T) (*observer, *memory, *replica) {
	t.Helper()
	world, db := newWaitingWorld()
	r := start(t, world.api, db, "first", ring)
	settle()
	world.put("a", jobs.Running)
	settle()
	return world, db, r
}

// why is the cause of a job, and that of its last transition.
func (m *memory) why(uid string) (job, transition string) {
	text := func(c *jobs.Cause) string {
		if c == nil {
			return ""
		}
		return c.Text
	}
	m.set(func() {
		job = text(m.jobs[uid].Cause)
		for _, t := range m.transitions {
			if t.UID == uid {
				transition = text(t.Cause)
			}
		}
	})
	return job, transition
}

const oom = "trainer was OOM-killed (exit 137) on gpu-07"

// soon is long enough for a recorder to write what it sees, and shorter than a look.
const soon = look / 4

// A pod's end is recorded in another log than its job's, perhaps by another replica that is behind.
// Whichever comes first, both rows say why in the end, no number is taken twice, and what the job
// came to afterwards has nothing of it.
func TestAPodThatEndsBeforeOrAfterItsJobSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		state jobs.State
		after time.Duration // from the job's transition to the row of its pod's run
	}{
		"before": {jobs.Failed, -time.Second}, "after": {jobs.Failed, 3 * time.Second}, "long after": {jobs.Failed, 40 * time.Second},
		"tried again": {jobs.Retrying, -time.Second}, "tried again, after": {jobs.Retrying, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db, r := recordsOneThatRuns(t)
				defer r.stop()
				uid := world.names["a"]
				is := func(when, want string) {
					t.Helper()
					if job, transition := db.why(uid); job != want || transition != want {
						t.Errorf("%s: the job says %q and its transition %q, not %q", when, job, transition, want)
					}
				}
				is("it runs", "")
				ended := jobs.At(time.Now())
				if test.after < 0 {
					db.ends(uid, "pod", jobs.OOMKilled, ended)
					time.Sleep(-test.after)
				}
				world.put("a", test.state)
				time.Sleep(soon)
				if test.after < 0 {
					is("at once", oom)
				} else {
					is("at once", "")
					time.Sleep(test.after)
					db.ends(uid, "pod", jobs.OOMKilled, ended)
				}
				settle()
				is("in the end", oom)
				world.put("a", jobs.Running)
				settle()
				is("it runs again", "")
				world.isWhatThereWas(t, db)
			})
		})
	}
}

// The ends of pods may be read long after a job has left the state to which they brought it, or is
// gone. The transition says why all the same, and so does a job that is gone of its end.
func TestACauseIsFoundThoughTheJobHasLeftItsState(t *testing.T) {
	for of, deleted := range map[string]bool{"Retrying": false, "Failed": true, "Retrying while another pod waits": false, "Failed while another pod waits": true, "Failed since another pod was deleted": true} {
		t.Run(of, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db, r := recordsOneThatRuns(t)
				defer r.stop()
				uid, ended := world.names["a"], jobs.At(time.Now())
				if strings.HasSuffix(of, "was deleted") {
					db.ends(uid, "other", jobs.Removed, ended-5000)
				}
				if strings.HasSuffix(of, "waits") {
					db.set(func() {
						db.runs["waits"] = store.Run{Of: 7, Run: &jobs.Run{ObjectID: jobs.ObjectID{UID: "waits", Namespace: "n", Name: "waits"}, Job: jobs.Ref{Resource: "jobs.batch", UID: uid}, Created: ended - 9000, Reason: "Unschedulable"}}
					})
				}
				if deleted {
					world.put("a", jobs.Failed)
					world.remove("a")
				} else {
					world.put("a", jobs.Retrying)
					world.put("a", jobs.Running)
				}
				time.Sleep(10 * time.Second)
				db.ends(uid, "pod", jobs.OOMKilled, ended)
				settle()
				told, want := "", ""
				db.set(func() {
					for _, t := range db.transitions {
						if t.Cause != nil {
							told += string(t.To) + ": " + t.Cause.Text
						}
					}
					if cause := db.jobs[uid].Cause; cause != nil {
						told += ", now: " + cause.Text
					}
				})
				if want = "Retrying: " + oom; deleted {
					want = "Failed: " + oom + ", now: " + oom
				}
				if told != want {
					t.Errorf("%q is told, not %q", told, want)
				}
			})
		})
	}
}

// Nobody records while a job fails, is tried again, and fails again. All is read later, and the end
// of the last pod is known by then: each failure has the pod that had ended at its version. So it
// has if its recorder is killed before it has found that out, and if what it found was another pod,
// since pods are read behind their job; whether the job is in that state, has left it, or is gone.
func TestACauseIsThatOfItsVersionWheneverItIsFound(t *testing.T) {
	for name, test := range map[string]struct{ away, killed, gone, misled bool }{
		"read later": {away: true}, "read later, of a job that is gone": {away: true, gone: true}, "killed": {killed: true}, "killed, of a job that is gone": {killed: true, gone: true},
		"misled": {misled: true}, "misled, of a job that is gone": {misled: true, gone: true}, "misled and killed": {misled: true, killed: true}, "misled and killed, of a job that is gone": {misled: true, killed: true, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db, r := recordsOneThatRuns(t)
				uid, began := world.names["a"], jobs.At(time.Now())
				var at [3]uint64 // at which version each pod ended
				ends := func(n int) {
					pod := fmt.Sprint("pod-", n)
					db.ends(uid, pod, []string{jobs.Errored, jobs.OOMKilled, jobs.Evicted}[n], began+jobs.Time(9000*n))
					db.endedAt(pod, at[n])
				}
				lives := func() {
					at[0] = world.api.Version()
					world.put("a", jobs.Running)
					at[1] = world.api.Version()
					world.put("a", jobs.Retrying)
					world.put("a", jobs.Running)
					at[2] = world.api.Version()
					world.put("a", jobs.Failed)
					if test.gone {
						world.remove("a")
					}
				}
				if test.away {
					r.stop()
					lives()
					time.Sleep(time.Minute)
				} else {
					lives()
					if test.misled { // it knows the end of an earlier pod
						ends(0)
					}
					time.Sleep(soon)
				}
				if test.killed {
					db.set(func() { db.forgetful = true })
					r.stop()
				}
				for n := range at {
					ends(n)
				}
				if test.away || test.killed {
					r = start(t, world.api, db, "second", ring)
				}
				settle()
				r.stop()
				var told []string
				db.set(func() {
					for _, t := range db.transitions {
						if t.Cause != nil {
							told = append(told, string(t.To)+" "+t.Cause.Pod)
						}
					}
					if cause := db.jobs[uid].Cause; cause != nil {
						told = append(told, "now "+cause.Pod)
					}
				})
				if want := []string{"Retrying pod-1", "Failed pod-2", "now pod-2"}; !slices.Equal(told, want) {
					t.Errorf("%q is told, not %q", told, want)
				}
			})
		})
	}
}

// An earlier release has seen that a pod was deleted, and has told it. Its rows have no version of
// the end. After an update, that is still why the job failed.
func TestWhatAnEarlierReleaseToldOfADeletedPodStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db, r := recordsOneThatRuns(t)
		uid := world.names["a"]
		db.ends(uid, "pod", jobs.Removed, jobs.At(time.Now()))
		db.endedAt("pod", world.api.Version())
		world.api.Put("jobs", "n/a", `status.conditions:=[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit"}]`)
		settle()
		r.stop()
		before, _ := db.why(uid)
		db.endedAt("pod", 0) // as the earlier release left its row
		r = start(t, world.api, db, "second", ring)
		settle()
		r.stop()
		if job, transition := db.why(uid); job != before || transition != before {
			t.Errorf("the job says %q and its transition %q; before the update it was %q", job, transition, before)
		}
	})
}

// As TestACauseIsThatOfItsVersionWheneverItIsFound, misled, of pods that have one name.
func TestACauseIsThatOfItsVersionThoughPodsHaveOneName(t *testing.T) {
	for _, name := range []string{"pod-1", "pod-0"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db, r := recordsOneThatRuns(t)
				uid, began := world.names["a"], jobs.At(time.Now())
				db.ends(uid, "pod-0", jobs.Errored, began)
				db.endedAt("pod-0", world.api.Version())
				world.put("a", jobs.Retrying)
				world.put("a", jobs.Running)
				settle()
				ended, version := jobs.At(time.Now()), world.api.Version()
				world.put("a", jobs.Retrying)
				world.put("a", jobs.Running)
				time.Sleep(soon)
				db.ends(uid, "pod-1", jobs.OOMKilled, ended) // it is read behind its job
				db.endedAt("pod-1", version)
				db.set(func() { db.runs["pod-1"].Name = name })
				settle()
				r.stop()
				var last *jobs.Cause
				db.set(func() {
					for _, t := range db.transitions {
						if t.To == jobs.Retrying {
							last = t.Cause
						}
					}
				})
				if last == nil || last.Reason != jobs.OOMKilled {
					t.Errorf("%+v", last)
				}
			})
		})
	}
}

// One tenant has very many jobs that have failed, or that fail and are tried again all the time.
// That costs nobody else's jobs the cause of what they have left.
func TestManyFailuresOfOneNamespaceDoNotCostAnotherItsCauses(t *testing.T) {
	for name, test := range map[string]struct{ standing, flapping int }{"that stand": {mostLeft + 100, 0}, "that come and go": {10, mostLeft}} {
		t.Run(name, func(t *testing.T) {
			r := Recorder{reviews: newReviews()}
			job := func(uid, namespace string, state jobs.State, version int) *jobs.Job {
				return &jobs.Job{ObjectID: jobs.ObjectID{UID: uid, Namespace: namespace, Name: uid}, State: state, Version: uint64(version)}
			}
			for i := range test.standing {
				r.reviewed(nil, job(fmt.Sprint("m", i), "mallory", jobs.Failed, 1))
			}
			failed := job("good", "alice", jobs.Retrying, 1)
			r.reviewed(nil, failed)
			r.reviewed(failed, job("good", "alice", jobs.Running, 2))
			for i := range test.flapping {
				failed := job("flaps", "mallory", jobs.Retrying, 2*i+1)
				r.reviewed(job("flaps", "mallory", jobs.Running, 2*i), failed)
				r.reviewed(failed, job("flaps", "mallory", jobs.Running, 2*i+2))
			}
			again := job("again", "alice", jobs.Retrying, 5)
			r.reviewed(nil, again)
			r.reviewed(again, job("again", "alice", jobs.Running, 6))
			for _, job := range []*jobs.Job{failed, again} {
				if _, going := r.reviews.of[transitionOf(job)]; !going {
					t.Errorf("nobody finds out any more why %s failed", job.Name)
				}
			}
			if len(r.reviews.of) > max(mostLeft, test.standing)+1 {
				t.Errorf("there are %d", len(r.reviews.of))
			}
			for i := range r.reviews.of {
				r.reviews.drop(i)
			}
			if len(r.reviews.counts) > 0 {
				t.Errorf("%v are left of nothing", r.reviews.counts)
			}
		})
	}
}

// A recorder may be killed after it has written a transition, and before what its cause is made of
// was there. Whoever records next finds the cause, however long it took until somebody did.
func TestACauseIsFoundByWhoeverRecordsNext(t *testing.T) {
	for _, later := range []time.Duration{0, time.Minute, oldAfter + time.Hour} {
		t.Run(later.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db, first := recordsOneThatRuns(t)
				world.put("a", jobs.Failed)
				time.Sleep(soon)
				db.set(func() { db.forgetful = true })
				first.stop()
				uid := world.names["a"]
				if job, _ := db.why(uid); job != "" {
					t.Fatalf("it knew %q", job)
				}
				db.ends(uid, "pod", jobs.OOMKilled, jobs.At(time.Now()))
				time.Sleep(later)
				second := start(t, world.api, db, "second", ring)
				settle()
				second.stop()
				if job, transition := db.why(uid); job != oom || transition != oom {
					t.Errorf("the job says %q and its transition %q", job, transition)
				}
				world.isWhatThereWas(t, db)
			})
		})
	}
}

// kueue puts a job's Workload, with conditions as type=reason for those that are True, and -type=reason for others.
func kueue(api *apitest.API, job, message string, conditions ...string) {
	all := []any{}
	for _, c := range conditions {
		name, reason, _ := strings.Cut(c, "=")
		status := "True"
		if strings.HasPrefix(name, "-") {
			name, status = name[1:], "False"
		}
		all = append(all, map[string]any{"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)})
	}
	api.Put("workloads", "n/w", apitest.Set("metadata.labels", map[string]string{"kueue.x-k8s.io/job-uid": job}), apitest.Set("status.conditions", all))
}

// Who preempted a job is named only to those who may see that one, too: it is of the same kind and
// namespace. It stays said when the queue says something else, and when that one is gone.
func TestWhoPreemptedAJobIsNamedOnlyWithinTheNamespace(t *testing.T) {
	const unnamed = "preempted: prioritization in the ClusterQueue"
	for preemptor, want := range map[string]string{"n/urgent": "preempted by n/urgent", "other/urgent": unnamed, "": unnamed} {
		t.Run(preemptor, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db := newWaitingWorld()
				r := start(t, world.api, db, "r", ring)
				defer r.stop()
				settle()
				queued := `metadata.labels:={"kueue.x-k8s.io/queue-name":"q"}`
				put := func(state jobs.State) { world.api.Put("jobs", "n/a", append([]string{queued}, lives[state]...)...) }
				put(jobs.Running)
				uid, by := world.api.UID("jobs", "n/a"), "nobody's"
				kueue(world.api, uid, "", "QuotaReserved=QuotaReserved", "Admitted=Admitted")
				if preemptor != "" {
					world.api.Put("jobs", preemptor, append([]string{queued}, lives[jobs.Suspended]...)...)
					by = world.api.UID("jobs", preemptor)
				}
				settle()
				message := "Preempted to accommodate a workload (UID: x, JobUID: " + by + ") due to prioritization in the ClusterQueue; preemptor path: /q; preemptee path: /q"
				kueue(world.api, uid, message, "QuotaReserved=QuotaReserved", "Admitted=Admitted", "Evicted=Preempted")
				time.Sleep(soon)
				put(jobs.Suspended)
				time.Sleep(soon)
				is := func(when string) {
					t.Helper()
					if job, transition := db.why(uid); job != want || transition != want {
						t.Errorf("%s: the job says %q and its transition %q, not %q", when, job, transition, want)
					}
				}
				is("at once")
				kueue(world.api, uid, "no quota", "-QuotaReserved=Inadmissible", "-Evicted=QuotaReserved")
				if preemptor != "" {
					world.api.Delete("jobs", preemptor)
				}
				db.ends(uid, "pod", jobs.Evicted, jobs.At(time.Now()))
				settle()
				is("in the end")
				put(jobs.Running)
				settle()
				want = ""
				is("it runs")
			})
		})
	}
}

// A queue may let a job in again, and take it back for something else, before the job's controller
// has looked. That is not why it took the job back the first time.
func TestALaterEvictionIsNotWhyAJobWasTakenBackBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWaitingWorld()
		r := start(t, world.api, db, "r", ring)
		defer r.stop()
		settle()
		put := func(state jobs.State) {
			world.api.Put("jobs", "n/a", append([]string{`metadata.labels:={"kueue.x-k8s.io/queue-name":"q"}`}, lives[state]...)...)
		}
		put(jobs.Running)
		uid := world.api.UID("jobs", "n/a")
		kueue(world.api, uid, "not all pods ready", "QuotaReserved=QuotaReserved", "Admitted=Admitted", "Evicted=PodsReadyTimeout")
		time.Sleep(soon)
		put(jobs.Suspended)
		time.Sleep(soon)
		want, _ := db.why(uid)
		if want == "" {
			t.Fatal("it has no cause")
		}
		kueue(world.api, uid, "let in", "QuotaReserved=QuotaReserved", "Admitted=Admitted")
		time.Sleep(soon)
		kueue(world.api, uid, "Preempted to accommodate a workload (UID: x, JobUID: y) due to prioritization in the ClusterQueue", "QuotaReserved=QuotaReserved", "Admitted=Admitted", "Evicted=Preempted")
		settle()
		if job, transition := db.why(uid); job != want || transition != want {
			t.Errorf("the job says %q and its transition %q, not %q", job, transition, want)
		}
	})
}

// What is said in a cause is bounded, and on one line, whatever it is.
func TestAStrangersWordsInACauseAreFewAndPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db, r := recordsOneThatRuns(t)
		defer r.stop()
		uid := world.names["a"]
		world.api.Put("jobs", "n/a", apitest.Set("status.conditions", []any{map[string]any{
			"type": "Failed", "status": "True", "reason": "R", "message": "\u202e\x1b[2J<b>" + strings.Repeat("é", 100_000) + "\nsecond line",
		}}))
		settle()
		job, transition := db.why(uid)
		if len(job) > 256 || job != transition || !strings.HasPrefix(job, "R:   [2J<b>é") || strings.Contains(job, "second") {
			t.Errorf("%q, %q", job, transition)
		}
	})
}

// While jobs come to states and their pods end in any order, recorders are killed and the database
// fails: in the end each job and its last transition say what follows from what the database has of
// both, and no transition is lost or made.
func TestCausesOfRecordersThatAreKilled(t *testing.T) {
	for seed := range uint64(6) {
		t.Logf("seed %d", seed)
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 11))
			world, db := newWaitingWorld()
			replicas := []*replica{start(t, world.api, db, "r0", ring), start(t, world.api, db, "r1", ring)}
			settle()
			db.trouble(seed, 12)
			states := []jobs.State{jobs.Pending, jobs.Running, jobs.Running, jobs.Retrying, jobs.Failed, jobs.Failed}
			for step := range 200 {
				job := fmt.Sprintf("job-%d", random.IntN(6))
				switch n := random.IntN(100); {
				case n < 35:
					world.put(job, states[random.IntN(len(states))])
				case n < 70 && world.names[job] != "":
					db.ends(world.names[job], fmt.Sprint("pod-", step), []string{jobs.OOMKilled, jobs.Errored, jobs.Removed}[random.IntN(3)], jobs.At(time.Now()))
				case n < 73:
					world.remove(job)
				case n < 77:
					i := random.IntN(2)
					replicas[i].stop()
					replicas[i] = start(t, world.api, db, fmt.Sprintf("r%d-%d", i, step), ring)
				case n < 79:
					db.set(func() { db.away = !db.away })
				default:
					time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
				}
			}
			db.set(func() { db.away, db.fault, db.takes = false, nil, nil })
			settle()
			for _, r := range replicas {
				r.stop()
			}
			world.isWhatThereWas(t, db)
			said := 0
			for _, uid := range world.names {
				job := db.jobs[uid]
				runs, _ := db.RunsOfJobs(t.Context(), store.Log{}, []string{uid})
				want := jobs.CauseOf(job, runs[uid], jobs.Circumstances{})
				var last jobs.Transition
				for _, t := range db.transitions {
					if t.UID == uid {
						last = t
					}
				}
				if want != nil {
					said++
				}
				if !reflect.DeepEqual(job.Cause, want) || !reflect.DeepEqual(last.Cause, want) {
					t.Errorf("%s is %s: the job says %+v and its transition %+v, not %+v", job.Name, job.State, job.Cause, last.Cause, want)
				}
			}
			t.Logf("%d causes", said)
		})
	}
}
