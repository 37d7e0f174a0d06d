package jobs

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func code(n int64) *int64 { return &n }

// lifeOfAPod are versions of one that a node took 1 s after its creation, that ran from 3 s to 9 s
// by its kubelet's clock, of whole seconds, and was seen to do so some 400 ms later each time.
func lifeOfAPod() []SeenPod {
	bound := PodSaid{Node: "gpu-07", Bound: 2000, Requests: map[string]string{"cpu": "4"}}
	runs := bound
	runs.Begun, runs.Began = true, 4000
	ended := runs
	ended.Over, ended.Finished, ended.Reason, ended.Container, ended.ExitCode = true, 10_000, OOMKilled, "trainer", code(137)
	var all []SeenPod
	for i, said := range []PodSaid{{Requests: bound.Requests}, bound, runs, ended, ended} {
		all = append(all, SeenPod{
			ObjectID: ObjectID{UID: "u", Namespace: "n", Name: "p"}, PodSaid: said, Version: uint64(10 + i), Created: 1000,
			Observed: []Time{1400, 2400, 4400, 10_400, 20_000}[i], Deleted: i == 4,
		})
	}
	return all
}

func runOf(versions []SeenPod) (run *Run) {
	for _, v := range versions {
		if next := NextRun(run, v); next != nil {
			run = next
		}
	}
	return run
}

func TestARunIsDatedByWhenItWasSeenAndByClaimsOfWhatWasMissed(t *testing.T) {
	all := lifeOfAPod()
	late := func(versions ...SeenPod) []SeenPod {
		for i := range versions {
			versions[i].Late = true
		}
		return versions
	}
	fast := lifeOfAPod()[3]
	fast.Began, fast.Finished = 90_000, 90_000 // a kubelet whose clock is fast
	slow := lifeOfAPod()[3]
	slow.Bound, slow.Began, slow.Finished = 1, 2, 3
	unbound, unbegun, claimless := lifeOfAPod()[3], lifeOfAPod()[3], lifeOfAPod()[3] // nobody claims when they were bound
	unbound.Bound, unbegun.Bound, unbegun.Begun, unbegun.Began = 0, 0, false, 0
	claimless.Bound, claimless.Began, claimless.Finished = 0, 0, 0
	again := lifeOfAPod()[2]
	again.Restarts, again.Observed = 1, 9400
	for name, test := range map[string]struct {
		versions []SeenPod
		want     [3]Time
	}{
		"seen as it went":         {all, [3]Time{2400, 4400, 10_400}},
		"only its end":            {all[3:4], [3]Time{2000, 4000, 10_400}},
		"its end later":           {late(lifeOfAPod()[3:4]...), [3]Time{2000, 4000, 10_000}},
		"gone while it ran":       {append(lifeOfAPod()[:3], SeenPod{ObjectID: all[0].ObjectID, Version: 13, Observed: 12_000, Deleted: true}), [3]Time{2400, 4400, 12_000}},
		"restarted by now":        {append(lifeOfAPod()[:2], again), [3]Time{2400, 4000, 0}},
		"a clock that is fast":    {late(fast), [3]Time{2000, 10_400, 10_400}},
		"a clock that is slow":    {late(slow), [3]Time{1000, 1000, 1000}},
		"bound nobody knows when": {late(unbound), [3]Time{4000, 4000, 10_000}},
		"nor begun":               {late(unbegun), [3]Time{10_000, 0, 10_000}},
		"nobody knows anything":   {late(claimless), [3]Time{10_400, 10_400, 10_400}},
		"a clock, after a wait":   {append(lifeOfAPod()[:2], slow), [3]Time{2400, 2400, 10_400}},
	} {
		if run := runOf(test.versions); [3]Time{run.Scheduled, run.Started, run.Ended} != test.want || run.Created != 1000 {
			t.Errorf("%s: %d %d %d %d", name, run.Created, run.Scheduled, run.Started, run.Ended)
		}
	}
}

func TestVersionsThatNobodySawOrThatComeAgainChangeNothingOfARun(t *testing.T) {
	all := lifeOfAPod()
	want := runOf(all)
	untimed := func(r *Run) Run {
		u := *r
		u.Scheduled, u.Started, u.Ended, u.Version = 0, 0, 0, 0
		return u
	}
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		var versions []SeenPod
		for i, v := range all {
			if i == 3 || random.IntN(2) == 0 { // the end is what only one version says
				versions = append(versions, v)
			}
			if len(versions) > 0 && random.IntN(3) == 0 {
				again := versions[random.IntN(len(versions))]
				versions = append(versions, again)
			}
		}
		run := runOf(versions)
		if got := untimed(run); !reflect.DeepEqual(got, untimed(want)) {
			t.Fatalf("seed %d:\n%+v\n%+v", seed, got, untimed(want))
		}
		if run.Created > run.Scheduled || run.Scheduled > run.Started || run.Started > run.Ended || run.Scheduled < 2000 || run.Started < 4000 ||
			run.Scheduled > want.Scheduled || run.Started > want.Started || run.Ended != want.Ended {
			t.Fatalf("seed %d: %+v", seed, run)
		}
		for _, v := range versions {
			if next := NextRun(run, v); next != nil {
				t.Fatalf("seed %d: version %d comes again, and the run is\n%+v, not\n%+v", seed, v.Version, next, run)
			}
		}
	}
}

func TestARunKnowsAtWhichVersionItsEndWasCertain(t *testing.T) {
	all := lifeOfAPod()
	deleting := all[2]
	deleting.Version, deleting.Deleting = 12, true
	late := all[3]
	late.Late = true
	gone := SeenPod{ObjectID: all[0].ObjectID, Version: 15, Observed: 12_000, Deleted: true}
	old := NextRun(nil, all[3])
	old.EndVersion = 0 // nobody kept it
	for name, test := range map[string]struct {
		run  *Run
		want uint64
	}{
		"it runs": {runOf(all[:3]), 0}, "it ended": {runOf(all), 13}, "it was to be gone": {runOf(append(lifeOfAPod()[:2], deleting, all[3], gone)), 12},
		"it is gone": {runOf(append(lifeOfAPod()[:3], gone)), 15}, "nobody saw it end": {runOf(append(lifeOfAPod()[:3], late, gone)), EndUnseen},
		"it had ended before that was kept": {cmp.Or(NextRun(old, gone), old), 0},
	} {
		if test.run.EndVersion != test.want {
			t.Errorf("%s: %d, not %d", name, test.run.EndVersion, test.want)
		}
	}
}

func TestAPodThatVanishesHasEnded(t *testing.T) {
	all := lifeOfAPod()
	gone := SeenPod{ObjectID: all[0].ObjectID, Version: 13, Observed: 12_000, Deleted: true}
	if run := NextRun(runOf(all[:3]), gone); !run.Terminal() || run.Reason != Removed || run.Node != "gpu-07" || run.Requests["cpu"] != "4" {
		t.Errorf("%+v", run)
	}
	preempted := all[2]
	preempted.Version, preempted.Reason, preempted.Message = 13, Preempted, "for another"
	gone.Version = 14
	if run := NextRun(runOf(append(lifeOfAPod()[:3], preempted)), gone); run.Reason != Preempted || run.Message != "for another" {
		t.Errorf("%+v", run)
	}
	if run := NextRun(nil, gone); run != nil {
		t.Errorf("a pod that was never seen: %+v", run)
	}
	if run := NextRun(runOf(all), gone); run != nil {
		t.Errorf("a pod that had ended: %+v", run)
	}
}

func TestARestoredPodBeginsAnew(t *testing.T) {
	all := lifeOfAPod()
	was := runOf(all)
	old := all[1]
	if run := NextRun(was, old); run != nil {
		t.Errorf("an old version: %+v", run)
	}
	old.Late = true
	if run := NextRun(was, old); run == nil || run.Terminal() || run.Reason != "" || run.ExitCode != nil || run.UID != "u" || run.Version != old.Version {
		t.Errorf("%+v", run)
	}
}

func TestStrangersTextsInARunAreBoundedAndPlain(t *testing.T) {
	v := lifeOfAPod()[3]
	v.Node, v.Message = strings.Repeat("n", maxName+1), "a\x1b[31m\nb\u202e"+strings.Repeat("ä", maxMessage)
	for i := range maxDevices + 1 {
		v.Devices = append(v.Devices, Device{"gpu.example.org", "node", fmt.Sprint(i)})
	}
	run := NextRun(nil, v)
	if run.Node != "" || len(run.Message) > maxMessage || !strings.HasPrefix(run.Message, "a [31m b ") || len(run.Devices) != maxDevices {
		t.Errorf("%q %q %d", run.Node, run.Message, len(run.Devices))
	}
}

func TestAWaitThatIsSaidInOtherWordsIsNotWrittenAgain(t *testing.T) {
	v := lifeOfAPod()[0]
	say := func(reason, message string) SeenPod {
		v.Version++
		v.Reason, v.Message = reason, message
		return v
	}
	run := NextRun(nil, say("Unschedulable", "0/12 nodes"))
	if next := NextRun(run, say("Unschedulable", "0/13 nodes")); next != nil {
		t.Errorf("%+v", next)
	}
	if next := NextRun(run, say("SchedulingGated", "gates")); next == nil || next.Message != "gates" {
		t.Errorf("%+v", next)
	}
	over := say("Unschedulable", "deleted")
	over.Over = true
	if next := NextRun(run, over); next == nil || next.Message != "deleted" {
		t.Errorf("an end says what it was: %+v", next)
	}
}

// Kubelets that come back write of containers what was not known when somebody else ended their pod.
func TestWhatIsToldAfterAnEndFillsInWhatWasNotKnown(t *testing.T) {
	lost := lifeOfAPod()[1]
	lost.Over, lost.Reason, lost.Observed = true, NodeLost, 12_000
	run := NextRun(nil, lost)
	later := lifeOfAPod()[3]
	later.Version, later.Began, later.Finished, later.Observed = lost.Version+1, 15_000, 16_000, 17_000
	run = NextRun(run, later)
	if run == nil || *run.ExitCode != 137 || run.Reason != NodeLost || run.Ended != 12_000 || run.Started != 12_000 {
		t.Fatalf("%+v", run)
	}
	later.Version++
	later.ExitCode, later.Container, later.Reason = code(143), "other", Errored
	if next := NextRun(run, later); next != nil {
		t.Errorf("%+v", next)
	}
}

// Of the claims of a pod one is gone before the other, and one that has a name is given to another
// pod once this one has ended: its run has what it was given.
func TestDevicesThatAPodWasGivenStayItsOwn(t *testing.T) {
	device := func(name string) Device { return Device{"gpu.example.org", "p", name} }
	var run *Run
	for i, said := range []PodSaid{
		{}, {Node: "n", Devices: []Device{device("a"), device("b")}}, {Node: "n", Devices: []Device{device("b"), device("b")}}, {Node: "n", Over: true, Reason: Completed}, {Node: "n", Over: true, Reason: Completed, Restarts: 1, Devices: []Device{device("another's")}},
	} {
		before := run
		if next := NextRun(run, SeenPod{ObjectID: ObjectID{UID: "p"}, PodSaid: said, Version: uint64(i + 1), Observed: Time(i + 1)}); next != nil {
			run = next
		}
		if before != nil && i > 1 && !slices.Equal(before.Devices, []Device{device("a"), device("b")}) {
			t.Errorf("%d: %+v", i, before.Devices)
		}
	}
	if run.Restarts != 1 || !slices.Equal(run.Devices, []Device{device("a"), device("b")}) {
		t.Errorf("%+v", run)
	}
}

// The scheduler passes over what a pod requests nothing of, so a pod may name ever so many
// resources that no node has. What it holds counts all the same, and is the same each time that it
// is read.
func TestWhatAPodHoldsIsNotHiddenAmongWhatItRequestsNothingOf(t *testing.T) {
	all := map[string]string{"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2"}
	for i := range 1000 {
		all[fmt.Sprintf("a%d.example.org/gpu", i)], all[fmt.Sprintf("a%d.example.org/x", i)] = "0", "1"
	}
	seen := SeenPod{PodSaid: PodSaid{Node: "n", Bound: 1, Requests: all}}
	run := NextRun(nil, seen)
	if got := AmountsOfPod(run.Requests); got != (Amounts{4, 8, 2}) || len(run.Requests) != maxRequests {
		t.Errorf("it holds %+v, of %d resources", got, len(run.Requests))
	}
	if again := NextRun(run, seen); again != nil && !reflect.DeepEqual(again.Requests, run.Requests) {
		t.Error("it requests something else when it is read again")
	}
}
