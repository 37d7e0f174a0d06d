package pods

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/recordings"
)

// versions are what was seen of each of a life's pods, in the order in which they came.
func versions(t *testing.T, life *recordings.Life) (all [][]jobs.SeenPod) {
	t.Helper()
	places := map[string]int{}
	for _, e := range life.Pods {
		o, err := cluster.NewObject(string(e.Object))
		if err != nil {
			t.Fatal(err)
		}
		place, known := places[o.UID()]
		if !known {
			place = len(all)
			places[o.UID()], all = place, append(all, nil)
		}
		all[place] = append(all[place], jobs.SeenPod{
			ObjectID: jobs.ObjectID{UID: o.UID(), Namespace: o.GetNamespace(), Name: o.GetName()}, PodSaid: Read(o, nil),
			Version: o.Version(), Created: jobs.Time(o.Created() * 1000), Observed: jobs.At(e.At), Deleted: e.Type == "DELETED",
		})
	}
	return all
}

func runOf(versions []jobs.SeenPod) (run *jobs.Run) {
	for _, v := range versions {
		if next := jobs.NextRun(run, v); next != nil {
			run = next
		}
	}
	return run
}

// endOf is the reason of an end that a person describes.
func endOf(pod recordings.Pod) string {
	for _, end := range [][2]string{
		{"OOMKilled", jobs.OOMKilled}, {"EvictionByEvictionAPI", jobs.Evicted}, {"Evicted", jobs.Evicted}, {"PreemptionByScheduler", jobs.Preempted},
		{"DeletionByTaintManager", jobs.NodeLost}, {"Succeeded", jobs.Completed}, {"Failed", jobs.Errored},
	} {
		if strings.Contains(pod.End, end[0]) {
			return end[1]
		}
	}
	return ""
}

// TestRecordedPodsAreToldAsTheyWere replays what real controllers, and simulated kubelets, wrote of each pod.
func TestRecordedPodsAreToldAsTheyWere(t *testing.T) {
	lives, err := recordings.All()
	if err != nil {
		t.Fatal(err)
	}
	told, deleted := 0, 0
	for _, life := range lives {
		t.Run(life.Name(), func(t *testing.T) {
			runs := map[string][]*jobs.Run{} // by name, which some controllers give again
			for _, all := range versions(t, life) {
				run := runOf(all)
				runs[run.Name] = append(runs[run.Name], run)
			}
			first := life.Jobs
			if len(first) == 0 {
				first = life.Pods
			}
			begin := jobs.At(first[0].At)
			for _, pod := range life.Truth.Pods {
				told++
				if len(runs[pod.Name]) == 0 {
					t.Errorf("%s: no run", pod.Name)
					continue
				}
				run := runs[pod.Name][0]
				runs[pod.Name] = runs[pod.Name][1:]
				for _, at := range []struct {
					what string
					told jobs.Time
					true float64
				}{{"runs", run.Started, pod.Runs}, {"ends", run.Ended, pod.Ends}} {
					if (at.told != 0) != (at.true >= 0) || at.told != 0 && math.Abs(float64(at.told-begin)/1000-at.true) > 0.06 {
						t.Errorf("%s %s at %.3f, not %.1f", pod.Name, at.what, float64(at.told-begin)/1000, at.true)
					}
				}
				reason := endOf(pod)
				switch {
				case reason == jobs.Errored && run.Reason == jobs.Removed && strings.HasSuffix(pod.End, " 143"):
					deleted++ // a person would not call it a failure either
					reason = jobs.Removed
				case reason == "" && run.Terminal():
					reason = jobs.Removed
					if run.Node == "" {
						reason = "Unschedulable"
					}
				}
				code := int64(-1)
				if run.ExitCode != nil {
					code = *run.ExitCode
				}
				if run.Reason != reason || run.Restarts != pod.Restarts || code >= 0 && !strings.Contains(pod.End, fmt.Sprint(" ", code)) || code < 0 && strings.Contains(pod.End, "Error") {
					t.Errorf("%s: told as %s %d, %d restarts, not as %s, %d restarts", pod.Name, run.Reason, code, run.Restarts, pod.End, pod.Restarts)
				}
				if run.Terminal() && run.Node == "" && run.Started != 0 {
					t.Errorf("%s ran nowhere", pod.Name)
				}
			}
		})
	}
	if told < 250 || deleted < 80 {
		t.Errorf("%d pods were told, %d as deleted", told, deleted)
	}
}

// What is lost between the first and the last version of a pod is missed in nothing but its times.
// Of these, none is before it was true, by the clock of who claims it, nor after it was seen.
func TestRecordedPodsAreToldAlikeWhateverVersionsAreLost(t *testing.T) {
	lives, err := recordings.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, life := range lives {
		for n, all := range versions(t, life) {
			want := runOf(all)
			name := want.Name
			ended := 0
			for i, v := range all {
				if ended == 0 && (v.Over || v.Deleted) {
					ended = i
				}
			}
			random := rand.New(rand.NewPCG(1, uint64(n)))
			for range 10 {
				var some []jobs.SeenPod
				for i, v := range all {
					if i == 0 || i == len(all)-1 || i == ended || random.IntN(2) == 0 {
						some = append(some, v)
					}
				}
				run := runOf(some)
				untimed := *run
				untimed.Scheduled, untimed.Started, untimed.Version = want.Scheduled, want.Started, want.Version
				untimed.EndVersion = want.EndVersion
				if want.ExitCode == nil { // what it waited for
					untimed.Message = want.Message
				}
				if !reflect.DeepEqual(&untimed, want) {
					t.Fatalf("%s of %s, %d of %d versions:\n%+v\n%+v", name, life.Name(), len(some), len(all), untimed, want)
				}
				if run.EndVersion < want.EndVersion || ended > 0 && run.EndVersion > all[ended].Version {
					t.Fatalf("%s of %s: its end was certain at %d, and %d is told", name, life.Name(), want.EndVersion, run.EndVersion)
				}
				for _, at := range [][2]jobs.Time{{run.Scheduled, want.Scheduled}, {run.Started, want.Started}} {
					// Claims are of whole seconds, and what they claim was seen later on a machine that was busy.
					if (at[0] != 0) != (at[1] != 0) || at[0]+3000 < at[1] || at[0] > at[1]+1000 && !tells(some, at[0]) {
						t.Fatalf("%s of %s: at %d instead of %d", name, life.Name(), at[0], at[1])
					}
				}
			}
		}
	}
}

// tells reports whether a time is when something was seen, such as a wait that was seen only when
// it was nearly over; or is what is claimed of a container that ran before: of one that was
// restarted twice no more is known, and the simulated kubelet says of one that it ended that it
// started then.
func tells(some []jobs.SeenPod, at jobs.Time) bool {
	for _, v := range some {
		if v.Observed == at || v.Began == at && (v.Restarts > 1 || v.Finished == at) {
			return true
		}
	}
	return false
}
