package recorder

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/jobs"
)

// queued puts a job that has a queue.
func queued(api *apitest.API, key string, state jobs.State) (uid string) {
	api.Put("jobs", key, append([]string{apitest.Set("metadata.labels", map[string]string{"kueue.x-k8s.io/queue-name": "q"})}, lives[state]...)...)
	return api.UID("jobs", key)
}

// workloadOf puts the Workload of a job.
func workloadOf(api *apitest.API, key, job string, active bool, conditions ...map[string]string) {
	api.Put("workloads", key, apitest.Set("metadata.labels", map[string]string{"kueue.x-k8s.io/job-uid": job}), fmt.Sprintf("spec.active:=%t", active), apitest.Set("status.conditions", conditions))
}

// admitted puts a job that runs, since its queue has let it in.
func admitted(api *apitest.API, key, workload string) (uid string) {
	uid = queued(api, key, jobs.Running)
	workloadOf(api, workload, uid, true, condition("QuotaReserved", "True", "QuotaReserved", ""), condition("Admitted", "True", "Admitted", ""))
	return uid
}

func condition(kind, status, reason, message string) map[string]string {
	return map[string]string{"type": kind, "status": status, "reason": reason, "message": message}
}

// toldOf are the transitions of a job, as states with their reasons and causes.
func (m *memory) toldOf(uid string) (told []string) {
	for _, t := range m.told() {
		if t.UID == uid {
			line := fmt.Sprint(t.From, "→", t.To, " ", t.Reason)
			if t.Cause != nil {
				line += ": " + t.Cause.Text
			}
			told = append(told, line)
		}
	}
	return told
}

// A queue gives up what it never let in: the job's own object says nothing of that. Its owner is
// told once, whoever records when, and again if it is given up again after somebody has activated
// it. What was given up before a first start is told to nobody.
func TestAJobThatItsQueueGivesUpIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWaitingWorld()
		before := queued(world.api, "n/before", jobs.Suspended)
		workloadOf(world.api, "n/w-before", before, false)
		r := start(t, world.api, db, "first", ring)
		settle()
		uid := queued(world.api, "n/a", jobs.Suspended)
		waits := condition("QuotaReserved", "False", "Pending", "no quota")
		workloadOf(world.api, "n/w", uid, true, waits)
		settle()
		given := condition("Evicted", "True", "DeactivatedDueToAdmissionCheck", "budget exceeded")
		workloadOf(world.api, "n/w", uid, false, waits, given)
		want := []string{"→Queued ", "Queued→Queued DeactivatedDueToAdmissionCheck: given up by its queue: budget exceeded"}
		is := func(when string) {
			t.Helper()
			time.Sleep(2 * longestPause)
			synctest.Wait()
			if got := db.toldOf(uid); !slices.Equal(got, want) {
				t.Errorf("%s: %q, not %q", when, got, want)
			}
		}
		is("it is given up")
		for _, waits := range []bool{true, false} {
			db.set(func() { db.forgetful = waits }) // one is killed, one ends
			r.stop()
			r = start(t, world.api, db, fmt.Sprint("next-", waits), ring)
			is("another one records")
		}
		defer func() { r.stop() }()
		workloadOf(world.api, "n/w", uid, false, waits, given, condition("Other", "True", "R", ""))
		is("the Workload says something else, too")
		if cause, _ := db.why(uid); cause != "given up by its queue: budget exceeded" {
			t.Errorf("the job says %q", cause)
		}
		workloadOf(world.api, "n/w", uid, true, waits, given) // Kueue leaves what it was evicted for until it has quota
		is("somebody activates it")
		db.set(func() {
			if job := db.jobs[uid]; job.Cause != nil || job.Reason != "Pending" {
				t.Errorf("the job is still %+v: %s", job.Cause, job.Reason)
			}
		})
		workloadOf(world.api, "n/w", uid, false, waits, given)
		want = append(want, "Queued→Queued DeactivatedDueToAdmissionCheck: given up by its queue: budget exceeded")
		is("it is given up again")
		queued(world.api, "n/a", jobs.Running)
		want = append(want, "Queued→Running ")
		is("it runs after all")
		if got := db.toldOf(before); !slices.Equal(got, []string{"→Queued "}) || db.reason(before) != "Queued Deactivated the workload is deactivated" {
			t.Errorf("what was given up before the first start is told: %q; %q", got, db.reason(before))
		}
		if cause, _ := db.why(uid); cause != "" {
			t.Errorf("it runs, and says %q", cause)
		}
	})
}

// A job that had begun is told with its suspension that it was given up, and not once more. If its
// Workload is read later, nobody was told; so that is told by itself, and the transition to Queued
// says it, too, whatever had become of the job's pods before.
func TestAJobThatIsGivenUpWithItsSuspensionIsToldOnce(t *testing.T) {
	const given = "Queued DeactivatedDueToRequeuingLimitExceeded: given up by its queue: too often"
	for name, test := range map[string]struct {
		workloadFirst, drained bool
		away                   bool // nobody records meanwhile
		want                   []string
	}{
		"nobody records meanwhile":   {true, true, true, []string{"→Running ", "Running→" + given}},
		"the Workload is read first": {true, true, false, []string{"→Running ", "Running→" + given}},
		"the job is read first":      {false, false, false, []string{"→Running ", "Running→" + given, "Queued→" + given}},
		"a node was drained before":  {false, true, false, []string{"→Running ", "Running→" + given, "Queued→" + given}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db := newWaitingWorld()
				r := start(t, world.api, db, "r", ring)
				defer func() { r.stop() }()
				settle()
				uid := admitted(world.api, "n/a", "n/w")
				settle()
				if test.drained {
					db.ends(uid, "pod", jobs.Evicted, jobs.At(time.Now()))
				}
				given := condition("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", "too often")
				given["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)
				giveUp := func() {
					workloadOf(world.api, "n/w", uid, false, condition("QuotaReserved", "False", "Pending", "x"), given)
					time.Sleep(soon)
				}
				if test.away {
					r.stop()
				}
				if test.workloadFirst {
					giveUp()
				}
				queued(world.api, "n/a", jobs.Suspended)
				time.Sleep(soon)
				if !test.workloadFirst {
					giveUp()
				}
				if test.away {
					time.Sleep(time.Minute) // so that it is told much later than it was
					r = start(t, world.api, db, "next", ring)
				}
				is := func(when string) {
					t.Helper()
					time.Sleep(2 * longestPause)
					synctest.Wait()
					if told := db.toldOf(uid); !slices.Equal(told, test.want) {
						t.Errorf("%s: %q", when, told)
					}
				}
				is("it is given up")
				r.stop()
				r = start(t, world.api, db, "another", ring)
				is("another one records")
				workloadOf(world.api, "n/w", uid, true, condition("QuotaReserved", "False", "Pending", "x"), given)
				is("somebody activates it")
			})
		})
	}
}

// A job is preempted, and given up while it waits. Kueue leaves in the Workload that it was
// preempted. The job says that it was given up, for as long as it is; the transition by which it
// came to wait, why that was.
func TestAPreemptedJobThatIsGivenUpSaysSoWhileItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWaitingWorld()
		r := start(t, world.api, db, "r", ring)
		defer func() { r.stop() }()
		settle()
		uid := admitted(world.api, "n/a", "n/w")
		settle()
		waits := condition("QuotaReserved", "False", "Pending", "no quota")
		preempted := condition("Evicted", "True", "Preempted", "Preempted to accommodate a workload (UID: x, JobUID: y) due to prioritization in the ClusterQueue")
		preempted["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)
		workloadOf(world.api, "n/w", uid, true, waits, preempted)
		time.Sleep(soon)
		queued(world.api, "n/a", jobs.Suspended)
		settle()
		told := []string{"→Running ", "Running→Queued Preempted: preempted: prioritization in the ClusterQueue", "Queued→Queued Deactivated: given up by its queue: the workload is deactivated"}
		is := func(when string, want string, told []string) {
			t.Helper()
			time.Sleep(2 * longestPause)
			synctest.Wait()
			if cause, _ := db.why(uid); cause != want || !slices.Equal(db.toldOf(uid), told) {
				t.Errorf("%s: it says %q, not %q, and is told as %q", when, cause, want, db.toldOf(uid))
			}
		}
		workloadOf(world.api, "n/w", uid, false, waits, preempted)
		is("it is given up", "given up by its queue: the workload is deactivated", told)
		r.stop()
		r = start(t, world.api, db, "another", ring)
		is("another one records", "given up by its queue: the workload is deactivated", told)
		workloadOf(world.api, "n/w", uid, true, waits, preempted)
		is("somebody activates it", "preempted: prioritization in the ClusterQueue", told)
	})
}

// Kueue evicts a job, and its Workload is read after the job's suspension: the transition then has
// the queue's reason, and its cause, as if it had been read before.
func TestAnEvictionThatIsReadAfterTheSuspensionGivesItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWaitingWorld()
		r := start(t, world.api, db, "r", ring)
		defer r.stop()
		settle()
		uid := admitted(world.api, "n/a", "n/w")
		settle()
		queued(world.api, "n/a", jobs.Suspended)
		time.Sleep(soon)
		workloadOf(world.api, "n/w", uid, true, condition("QuotaReserved", "True", "QuotaReserved", ""), condition("Evicted", "True", "PodsReadyTimeout", "not ready in time"))
		settle()
		want := []string{"→Running ", "Running→Queued PodsReadyTimeout: evicted: its pods were not ready in time"}
		if got := db.toldOf(uid); !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
	})
}

// While jobs are given up and activated at random, recorders are killed and the database fails:
// each is told as often as it was given up for long enough, and no more often.
func TestGivingUpIsToldOnceByRecordersThatAreKilled(t *testing.T) {
	for seed := range uint64(5) {
		t.Logf("seed %d", seed)
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 21))
			world, db := newWaitingWorld()
			replicas := []*replica{start(t, world.api, db, "r0", ring), start(t, world.api, db, "r1", ring)}
			settle()
			given, times, uids := map[string]bool{}, map[string]int{}, map[string]string{}
			for step := range 8 {
				db.trouble(seed, 22+uint64(step))
				for n := range 3 {
					job := fmt.Sprint("job-", n)
					if uids[job] == "" {
						uids[job] = queued(world.api, "n/"+job, jobs.Suspended)
					}
					if random.IntN(3) == 0 {
						if given[job] = !given[job]; given[job] {
							times[job]++
						}
						workloadOf(world.api, "n/"+job, uids[job], !given[job], condition("QuotaReserved", "False", "Pending", "x"))
					}
				}
				if random.IntN(3) == 0 {
					i := random.IntN(2)
					replicas[i].stop()
					replicas[i] = start(t, world.api, db, fmt.Sprintf("r%d-%d", i, step), ring)
				}
				time.Sleep(time.Duration(random.IntN(20)) * time.Second)
				db.set(func() { db.away, db.fault, db.takes = false, nil, nil })
				time.Sleep(3 * longestPause)
			}
			for _, r := range replicas {
				r.stop()
			}
			for job, uid := range uids {
				told := 0
				for _, tr := range db.told() {
					if tr.UID == uid && tr.GaveUp() {
						told++
					}
				}
				if told != times[job] {
					t.Errorf("%s was given up %d times, and told %d times", job, times[job], told)
				}
			}
		})
	}
}
