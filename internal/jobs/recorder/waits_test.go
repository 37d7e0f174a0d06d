package recorder

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecast/kubecast/internal/apitest"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
)

// newWaitingWorld has pods and Workloads, too.
func newWaitingWorld() (*observer, *memory) {
	world, db := newWorld()
	world.api = apitest.New(apitest.Jobs, apitest.Pods, apitest.Workloads)
	world.api.Skip(1)
	return world, db
}

// waits puts an object that says why the owners of some uids wait; "" is nothing.
func (o *observer) waits(resource, name, reason, message string, owners ...string) {
	o.api.Put(resource, "n/"+name, ownedBy(owners...), says(resource, reason, message))
}

// says is the status of an object that gives a reason; "" is none.
func says(resource, reason, message string) string {
	condition := map[string]string{"pods": "PodScheduled", "workloads": "QuotaReserved"}[resource]
	if condition == "" {
		return "status.active:=1"
	}
	status := "False"
	if reason == "" {
		status = "True"
	}
	return apitest.Set("status.conditions", []any{map[string]any{"type": condition, "status": status, "reason": reason, "message": message}})
}

func ownedBy(uids ...string) string {
	owners := []map[string]string{}
	for _, uid := range uids {
		owners = append(owners, map[string]string{"uid": uid})
	}
	return apitest.Set("metadata.ownerReferences", owners)
}

// reason is what the database has of a job.
func (m *memory) reason(uid string) (found string) {
	m.set(func() {
		if j := m.jobs[uid]; j != nil {
			found = string(j.State) + " " + j.Reason + " " + j.Message
		}
	})
	return found
}

// A job has the reason of who says best why it waits, for as long as that is said and it waits; a
// queue comes before pods, and pods count for the owner of their job, too.
func TestAJobThatWaitsHasAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWaitingWorld()
		r := start(t, world.api, db, "r", ring)
		defer r.stop()
		settle()
		world.put("set", jobs.Submitted)
		set := world.names["set"]
		world.put("a", jobs.Pending)
		a := world.names["a"]
		world.api.Put("jobs", "n/a", append([]string{ownedBy(set)}, lives[jobs.Pending]...)...)
		world.waits("pods", "p", "Unschedulable", "0/3 nodes", a)
		is := func(when, of, job string) {
			t.Helper()
			time.Sleep(longestPause)
			if got := db.reason(of); got != job {
				t.Errorf("%s: %q, not %q", when, got, job)
			}
		}
		is("no node fits", a, "Pending Unschedulable 0/3 nodes")
		is("no node fits a job of its", set, "Submitted Unschedulable 0/3 nodes")
		world.waits("workloads", "w", "Pending", "no quota", a)
		is("no quota", a, "Pending Pending no quota")
		world.waits("workloads", "w", "", "", a)
		is("there is quota", a, "Pending Unschedulable 0/3 nodes")
		world.api.Delete("pods", "n/p")
		is("nobody says anything", a, "Pending  ")
		world.put("b", jobs.Running)
		b := world.names["b"]
		world.waits("pods", "q", "Unschedulable", "0/3 nodes", b)
		world.waits("pods", "of-another", "Unschedulable", "0/3 nodes", a)
		for _, pod := range []string{"r", "s"} {
			world.api.Put("pods", "n/"+pod, ownedBy(b), `status.phase:="Running"`)
		}
		world.api.Put("pods", "n/t", ownedBy(b), `status.phase:="Succeeded"`)
		is("one of its pods waits while it runs", b, "Running Unschedulable 1 of 3 pods: 0/3 nodes")
		world.waits("pods", "q", "", "", b)
		is("all run", b, "Running  ")
		world.waits("workloads", "v", "Pending", "no quota", b)
		is("a queue says something of what runs", b, "Running  ")
		world.isWhatThereWas(t, db)
	})
}

// A scheduler that repeats itself with other numbers, and reasons that alternate, cost a job few
// writes; what is said twice, none.
func TestWhoRepeatsThemselvesIsWrittenSeldom(t *testing.T) {
	for name, test := range map[string]struct {
		says func(i int) (reason, message string)
		most int
	}{
		"the same": {func(int) (string, string) { return "Unschedulable", "0/12 nodes" }, 1},
		"numbers": {func(i int) (string, string) {
			return "Unschedulable", fmt.Sprintf("0/%d nodes are available: %d full", i, i*i)
		}, 7},
		"alternating":  {func(i int) (string, string) { return []string{"ErrImagePull", "ImagePullBackOff"}[i%2], "m" }, 9},
		"other words":  {func(i int) (string, string) { return "Unschedulable", string(rune('a' + i%26)) }, 9},
		"what is gone": {func(i int) (string, string) { return []string{"Unschedulable", ""}[i%2], "m" }, 9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db := newWaitingWorld()
				r := start(t, world.api, db, "r", ring)
				defer r.stop()
				settle()
				world.put("a", jobs.Pending)
				settle()
				before, writes := db.reason(world.names["a"]), 0
				const each = 5 * look / 2 // what is said for less than stands and a look need not be written at all
				for i := range int(20 * time.Minute / each) {
					reason, message := test.says(i)
					world.waits("pods", "p", reason, message, world.names["a"])
					time.Sleep(each)
					if now := db.reason(world.names["a"]); now != before {
						before, writes = now, writes+1
					}
				}
				if writes == 0 || writes > test.most {
					t.Errorf("%d writes in twenty minutes, %d at most", writes, test.most)
				}
			})
		})
	}
}

// While jobs wait at random, for reasons that change at random, recorders are killed, and the
// database fails: no transition is lost or made, and in the end each job that waits has the reason
// that its objects give, and no other.
func TestReasonsOfRecordersThatAreKilled(t *testing.T) {
	for seed := range uint64(6) {
		t.Logf("seed %d", seed)
		synctest.Test(t, func(t *testing.T) {
			random, faults := rand.New(rand.NewPCG(seed, 3)), rand.New(rand.NewPCG(seed, 4))
			world, db := newWaitingWorld()
			replicas := []*replica{start(t, world.api, db, "r0", ring), start(t, world.api, db, "r1", ring)}
			settle()
			db.set(func() {
				db.fault = func() error {
					if faults.IntN(6) == 0 {
						return errAway
					}
					return nil
				}
			})
			states := []jobs.State{jobs.Pending, jobs.Suspended, jobs.Retrying, jobs.Running, jobs.Succeeded}
			for step := range 300 {
				job := fmt.Sprintf("job-%d", random.IntN(8))
				switch n := random.IntN(100); {
				case n < 30:
					world.put(job, states[random.IntN(len(states))])
				case n < 34:
					world.remove(job)
				case n < 75 && world.names[job] != "":
					kind := []string{"pods", "workloads"}[random.IntN(2)]
					reason := []string{"", "Unschedulable", "NoQuota", "Gated"}[random.IntN(4)]
					world.waits(kind, job, reason, fmt.Sprint(random.IntN(3)), world.names[job])
				case n < 80:
					kind := []string{"pods", "workloads"}[random.IntN(2)]
					if _, there := world.api.Objects(kind)["n/"+job]; there {
						world.api.Delete(kind, "n/"+job)
					}
				case n < 82:
					[]func(){func() { world.api.CutWatches() }, world.api.EndWatches, world.api.EndWatchesWithin}[random.IntN(3)]()
				case n < 84:
					i := random.IntN(2)
					replicas[i].stop()
					replicas[i] = start(t, world.api, db, fmt.Sprintf("r%d-%d", i, step), ring)
				case n < 86:
					db.set(func() { db.away = !db.away })
				default:
					time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
				}
			}
			db.set(func() { db.away, db.fault = false, nil })
			time.Sleep(2 * longestPause)
			synctest.Wait()
			for _, r := range replicas {
				r.stop()
			}
			world.isWhatThereWas(t, db)
			for name, uid := range world.names {
				want := ""
				for _, kind := range []string{"workloads", "pods"} {
					if reason := reasonOf(t, world.api, kind, "n/"+name, uid); reason != "" && want == "" {
						want = reason
					}
				}
				switch state := world.jobs[uid].State; {
				case state == jobs.Running && want != "" && want == reasonOf(t, world.api, "pods", "n/"+name, uid) && reasonOf(t, world.api, "workloads", "n/"+name, uid) == "":
					reason, message, _ := strings.Cut(want, " ")
					want = reason + " 1 of 1 pods: " + message
				case !state.Waits():
					want = ""
				}
				var got jobs.Job
				db.set(func() { got = *db.jobs[uid] })
				if text := got.Reason + " " + got.Message; got.Reason != "" && text != want || want != "" && got.Reason == "" {
					t.Errorf("%s is %s for %q, not %q", name, got.State, text, want)
				}
				if !slices.IsSortedFunc(got.Reasons, func(a, b jobs.Reason) int { return int(a.At - b.At) }) {
					t.Errorf("%+v", got.Reasons)
				}
			}
		})
	}
}

// reasonOf is what an object says that belongs to a job; the reader is another than that of package waiting.
func reasonOf(t *testing.T, api *apitest.API, resource, key, owner string) string {
	t.Helper()
	text := api.Objects(resource)[key]
	if text == "" {
		return ""
	}
	return decodeReason(t, text, owner)
}

func decodeReason(t *testing.T, text, owner string) string {
	t.Helper()
	var o struct {
		Metadata struct{ OwnerReferences []struct{ UID string } }
		Status   struct {
			Conditions []struct{ Status, Reason, Message string }
		}
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	if o.Metadata.OwnerReferences[0].UID != owner || o.Status.Conditions[0].Status != "False" {
		return ""
	}
	return o.Status.Conditions[0].Reason + " " + o.Status.Conditions[0].Message
}

// reference is a field of an object that names another one as its owner.
func reference(kind cluster.Kind, name, uid string) string {
	return apitest.Set("metadata.ownerReferences", []map[string]any{{"apiVersion": kind.APIVersion(), "kind": kind.Kind, "name": name, "uid": uid, "controller": true}})
}

// Whoever may make objects in one namespace, and knows the uid of a job in another one, must not
// write what that job's users read as its reason: Kubernetes accepts any uid in ownerReferences,
// and any label. Nor does a reference count by its uid alone.
func TestOnlyWhatBelongsToAJobSaysWhyItWaits(t *testing.T) {
	const forged = "call +1-900 to release your job"
	for name, forge := range map[string]func(job string) (resource, key string, fields []string){
		"a pod of another namespace": func(job string) (string, string, []string) {
			return "pods", "mallory/forged", []string{reference(apitest.Jobs, "a", job)}
		},
		"a pod of another namespace, that only gives the uid": func(job string) (string, string, []string) {
			return "pods", "mallory/forged", []string{ownedBy(job)}
		},
		"a Workload of another namespace": func(job string) (string, string, []string) {
			return "workloads", "mallory/forged", []string{reference(apitest.Jobs, "a", job)}
		},
		"the label of a Workload of another namespace": func(job string) (string, string, []string) {
			return "workloads", "mallory/forged", []string{apitest.Set("metadata.labels", map[string]string{"kueue.x-k8s.io/job-uid": job})}
		},
		"a job between, in another namespace": func(job string) (string, string, []string) {
			return "jobs", "mallory/between", append([]string{reference(apitest.Jobs, "a", job)}, lives[jobs.Pending]...)
		},
		"a pod that knows the uid and no more": func(job string) (string, string, []string) {
			return "pods", "n/forged", []string{reference(apitest.Widgets, "none", job)}
		},
		"a pod of a job of another name": func(job string) (string, string, []string) {
			return "pods", "n/forged", []string{reference(apitest.Jobs, "b", job)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				world, db := newWaitingWorld()
				r := start(t, world.api, db, "r", ring)
				defer r.stop()
				settle()
				world.put("a", jobs.Pending)
				job := world.names["a"]
				world.api.Put("pods", "n/p", reference(apitest.Jobs, "a", job), says("pods", "Unschedulable", "0/3 nodes"))
				time.Sleep(longestPause)
				resource, key, fields := forge(job)
				world.api.Put(resource, key, append(fields, says(resource, "QuotaFraud", forged), "metadata.creationTimestamp=2036-01-01T00:00:00Z")...)
				if resource == "jobs" { // and its own pod
					world.api.Put("pods", "mallory/forged", reference(apitest.Jobs, "between", world.api.UID("jobs", key)), says("pods", "QuotaFraud", forged))
				}
				time.Sleep(2 * longestPause)
				if got := db.reason(job); got != "Pending Unschedulable 0/3 nodes" {
					t.Errorf("the job is told to wait for: %q", got)
				}
			})
		})
	}
}

// Many jobs of one namespace that wait, for reasons that change all the time, must not delay
// another namespace's: as many as are written at a time, and as many objects as are looked at, are
// shared in turns.
func TestJobsOfOneNamespaceDoNotDelayReasonsOfAnother(t *testing.T) {
	r := Recorder{living: map[string]*jobs.Job{}, waits: &waits{due: map[string]time.Time{}, paces: map[string]pace{}}}
	now := time.Now()
	wait := func(uid, namespace string, due time.Time) {
		r.living[uid] = &jobs.Job{ObjectID: jobs.ObjectID{UID: uid, Namespace: namespace}, State: jobs.Pending}
		r.waits.due[uid] = due
	}
	for n := range 20 * batchSize {
		wait(fmt.Sprint("many-", n), "many", now.Add(-time.Hour))
	}
	wait("good", "good", now)
	wait("later", "good", now.Add(time.Minute))
	uids := r.inTurns(r.waits.due, now)
	if at := slices.Index(uids, "good"); at < 0 || at > 1 || slices.Contains(uids, "later") {
		t.Errorf("the good user's job is number %d of %d", at, len(uids))
	}
	if len(uids) > batchSize+1 {
		t.Errorf("%d are looked at of a namespace", len(uids))
	}
}

// Kueue says that it evicts a job before it suspends it, so that who is told that it is queued
// again is told why. What is read later says nothing of that.
func TestAnEvictionIsToldWithTheSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWaitingWorld()
		r := start(t, world.api, db, "r", ring)
		settle()
		queued := apitest.Set("metadata.labels", map[string]string{"kueue.x-k8s.io/queue-name": "q"})
		put := func(state jobs.State) string {
			world.api.Put("jobs", "n/a", append([]string{queued}, lives[state]...)...)
			return world.api.UID("jobs", "n/a")
		}
		job := put(jobs.Running)
		workload := func(active bool, conditions ...map[string]string) {
			world.api.Put("workloads", "n/w", reference(apitest.Jobs, "a", job), fmt.Sprintf("spec.active:=%t", active), apitest.Set("status.conditions", conditions))
			time.Sleep(20 * time.Millisecond)
		}
		condition := func(kind, status, reason, message string) map[string]string {
			return map[string]string{"type": kind, "status": status, "reason": reason, "message": message}
		}
		reserved, admitted := condition("QuotaReserved", "True", "QuotaReserved", ""), condition("Admitted", "True", "Admitted", "")
		last := func() string {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			told := db.told()
			t := told[len(told)-1]
			return fmt.Sprint(t.To, " ", t.Reason, " ", t.Message)
		}
		is := func(want string) {
			t.Helper()
			if got := last(); got != want {
				t.Errorf("%q, not %q", got, want)
			}
		}
		workload(true, reserved, admitted)
		settle()
		is("Running  ")
		workload(true, reserved, admitted, condition("Evicted", "True", "Preempted", "for another"))
		put(jobs.Suspended)
		is("Queued Preempted for another")
		workload(true, condition("QuotaReserved", "False", "Pending", "no quota"), condition("Evicted", "True", "Preempted", "for another"))
		settle()
		workload(true, reserved, admitted, condition("Evicted", "False", "QuotaReserved", "Previously: for another"))
		put(jobs.Pending)
		is("Pending  ")
		workload(false, reserved, admitted, condition("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", "too often"))
		put(jobs.Suspended)
		is("Queued DeactivatedDueToRequeuingLimitExceeded too often")
		workload(false, condition("QuotaReserved", "False", "Pending", "too often"), condition("Evicted", "True", "DeactivatedDueToRequeuingLimitExceeded", "too often"))
		time.Sleep(longestPause)
		if got := db.reason(job); got != "Queued DeactivatedDueToRequeuingLimitExceeded too often" {
			t.Errorf("then it is %q", got)
		}
		put(jobs.Running)
		settle()
		r.stop()
		put(jobs.Suspended)
		r = start(t, world.api, db, "s", ring)
		defer r.stop()
		settle()
		is("Queued DeactivatedDueToRequeuingLimitExceeded too often") // it was read later, and is told then
	})
}

// A tenant may have ever so many jobs that name each other as their owners, and one above them all
// that is held and let go again and again. Who records waits for the answer what its queue says, so
// that costs what it costs for any other job.
func TestAJobThatIsHeldCostsTheSameWhateverIsBelowIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world, db := newWaitingWorld()
		names := []string{"n/alone", "n/above"}
		uids := map[string]string{}
		for _, name := range names {
			uids[name] = queued(world.api, name, jobs.Running)
		}
		ref := func(name, uid string) map[string]any {
			return map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
		}
		const many = 3000
		for i := range many {
			next := (i + 1) % many
			world.api.Put("jobs", fmt.Sprint("n/j", i), fmt.Sprint("metadata.uid=u", i), apitest.Set("metadata.ownerReferences", []any{ref("above", uids["n/above"]), ref(fmt.Sprint("j", next), fmt.Sprint("u", next))}))
		}
		r := start(t, world.api, db, "r", ring)
		defer r.stop()
		settle()
		took := map[string]uint64{}
		for _, name := range names {
			time.Sleep(10 * time.Minute) // nothing is looked at any more
			synctest.Wait()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 10 {
				for _, state := range []jobs.State{jobs.Suspended, jobs.Running} {
					queued(world.api, name, state)
					time.Sleep(10 * time.Millisecond)
					synctest.Wait()
				}
			}
			runtime.ReadMemStats(&after)
			took[name] = after.TotalAlloc - before.TotalAlloc
			if told := len(db.toldOf(uids[name])); told != 21 {
				t.Fatalf("%d transitions of %s are recorded", told, name)
			}
		}
		if took["n/above"] > 3*took["n/alone"] {
			t.Errorf("that it is held and let go took %d bytes of memory, and %d of a job that has none below it", took["n/above"], took["n/alone"])
		}
	})
}
