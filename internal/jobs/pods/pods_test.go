package pods

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
)

func podOf(t testing.TB, metadata, spec, status string) *cluster.Object {
	t.Helper()
	if metadata != "" {
		metadata = "," + metadata
	}
	o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"name":"p","namespace":"n","resourceVersion":"1"%s},"spec":{%s},"status":{%s}}`, metadata, spec, status))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// ended is the status of a container that ended at a second of a minute.
func ended(name, reason string, code int, at string) string {
	return fmt.Sprintf(`{"name":%q,"restartCount":1,"state":{"terminated":{"exitCode":%d,"reason":%q,"startedAt":"2026-01-02T03:04:01Z","finishedAt":"2026-01-02T03:04:%sZ"}}}`, name, code, reason, at)
}

func running(name string) string {
	return fmt.Sprintf(`{"name":%q,"restartCount":2,"state":{"running":{"startedAt":"2026-01-02T03:04:02Z"}}}`, name)
}

func condition(kind, status, reason, message string) string {
	return fmt.Sprintf(`{"type":%q,"status":%q,"reason":%q,"message":%q,"lastTransitionTime":"2026-01-02T03:04:05Z"}`, kind, status, reason, message)
}

const istio = `"annotations":{"sidecar.istio.io/status":"{\"containers\":[\"proxy\"]}"}`

func TestTheContainerThatDecidedThePodsEndIsTold(t *testing.T) {
	failed, init := `"phase":"Failed","containerStatuses":[`, `],"initContainerStatuses":[`
	deleted := func(at string, grace int) string {
		return fmt.Sprintf(`"deletionTimestamp":"2026-01-02T03:04:%sZ","deletionGracePeriodSeconds":%d`, at, grace)
	}
	disrupted := `],"conditions":[` + condition("DisruptionTarget", "True", "%s", "m") + "]"
	for name, test := range map[string]struct{ metadata, spec, status, want string }{
		"it ran out of memory":               {"", "", failed + ended("main", "OOMKilled", 137, "09") + "]", "OOMKilled main 137"},
		"the first of two":                   {"", "", failed + ended("a", "Error", 2, "09") + "," + ended("b", "Error", 3, "08") + "]", "Error b 3"},
		"out of memory, after another":       {"", "", failed + ended("a", "Error", 2, "08") + "," + ended("b", "OOMKilled", 137, "09") + "]", "OOMKilled b 137"},
		"a restarted sidecar":                {"", `"initContainers":[{"name":"log","restartPolicy":"Always"}]`, failed + ended("main", "Error", 1, "09") + init + ended("log", "OOMKilled", 137, "05") + "]", "Error main 1"},
		"a mesh's sidecar, by its name":      {"", "", failed + ended("istio-proxy", "Error", 143, "05") + "," + ended("main", "Error", 1, "09") + "]", "Error main 1"},
		"a mesh's sidecar, by annotation":    {istio, "", failed + ended("proxy", "Error", 143, "05") + "," + ended("main", "Error", 1, "09") + "]", "Error main 1"},
		"only a sidecar failed":              {istio, "", failed + ended("proxy", "Error", 7, "05") + "," + ended("main", "Completed", 0, "09") + "]", "Error proxy 7"},
		"a pod of nothing but a proxy":       {"", "", failed + ended("istio-proxy", "OOMKilled", 137, "05") + "]", "OOMKilled istio-proxy 137"},
		"Argo's executor":                    {`"labels":{"workflows.argoproj.io/workflow":"w"}`, "", failed + ended("wait", "Error", 1, "05") + "," + ended("main", "Error", 4, "09") + "]", "Error main 4"},
		"a container called wait, elsewhere": {"", "", failed + ended("wait", "Error", 1, "05") + "," + ended("main", "Error", 4, "09") + "]", "Error wait 1"},
		"Tekton's sidecar": {`"labels":{"tekton.dev/taskRun":"t"}`, `"containers":[{"name":"sidecar-db"},{"name":"step-a"}]`,
			failed + ended("sidecar-db", "Error", 1, "05") + "," + ended("step-a", "Error", 4, "09") + "]", "Error step-a 4"},
		"an init container":                           {"", `"initContainers":[{"name":"first"}]`, failed + init + ended("first", "Error", 2, "05") + "]", "Error first 2"},
		"one that was lost does not count":            {"", "", failed + ended("a", "ContainerStatusUnknown", 137, "05") + "," + ended("b", "Error", 3, "09") + "]", "Error b 3"},
		"all were lost":                               {"", "", failed + ended("a", "ContainerStatusUnknown", 137, "05") + "]", "NodeLost a 137"},
		"it succeeded":                                {"", "", `"phase":"Succeeded","containerStatuses":[` + ended("a", "Completed", 0, "05") + "," + ended("b", "Completed", 0, "04") + "]", "Completed a 0"},
		"it succeeded while it was disrupted":         {"", "", `"phase":"Succeeded","containerStatuses":[` + ended("a", "Completed", 0, "05") + fmt.Sprintf(disrupted, "EvictionByEvictionAPI"), "Completed a 0"},
		"its node had pressure":                       {"", "", `"reason":"Evicted","message":"disk",` + failed + ended("a", "Error", 137, "05") + fmt.Sprintf(disrupted, "TerminationByKubelet"), "Evicted a 137 disk"},
		"its node had pressure, of old":               {"", "", `"reason":"Evicted","message":"disk","phase":"Failed"`, "Evicted  - disk"},
		"its node made room for a static pod":         {"", "", `"reason":"Preempting","message":"m","phase":"Failed"`, "Preempted  - m"},
		"its node shut down":                          {"", "", `"reason":"Terminated","message":"shutdown",` + failed + ended("a", "Error", 143, "05") + fmt.Sprintf(disrupted, "TerminationByKubelet"), "NodeLost a 143 shutdown"},
		"it was preempted":                            {deleted("36", 30), "", failed + ended("a", "Error", 143, "09") + fmt.Sprintf(disrupted, "PreemptionByScheduler"), "Preempted a 143 m"},
		"it was drained":                              {deleted("36", 30), "", failed + ended("a", "Error", 143, "09") + fmt.Sprintf(disrupted, "EvictionByEvictionAPI"), "Evicted a 143 m"},
		"it was drained, out of memory":               {"", "", failed + ended("a", "OOMKilled", 137, "09") + fmt.Sprintf(disrupted, "EvictionByEvictionAPI"), "OOMKilled a 137"},
		"its node is gone":                            {"", "", failed + running("a") + fmt.Sprintf(disrupted, "DeletionByPodGC"), "NodeLost  - m"},
		"its node was unreachable":                    {deleted("36", 30), "", failed + ended("a", "Error", 143, "09") + fmt.Sprintf(disrupted, "DeletionByTaintManager"), "NodeLost a 143 m"},
		"a disruption that was not":                   {"", "", failed + ended("a", "Error", 1, "09") + "]," + `"conditions":[` + condition("DisruptionTarget", "False", "EvictionByEvictionAPI", "m") + "]", "Error a 1"},
		"it was deleted":                              {deleted("36", 30), "", failed + ended("a", "Error", 143, "09") + "]", "Deleted a 143"},
		"it was deleted within the second of its end": {deleted("39", 30), "", failed + ended("a", "Error", 143, "09") + "]", "Deleted a 143"},
		"it was deleted, having failed":               {deleted("40", 30), "", failed + ended("a", "Error", 143, "09") + "]", "Error a 143"},
		"it is being removed by its kubelet":          {deleted("10", 0), "", failed + ended("a", "Error", 143, "09") + "]", "Deleted a 143"},
		"it had failed when it was removed":           {deleted("10", 0), "", failed + ended("a", "Error", 1, "09") + "]", "Error a 1"},
		"its deadline":                                {"", "", `"reason":"DeadlineExceeded","message":"too long",` + failed + ended("a", "Error", 143, "05") + "]", "Deadline a 143 too long"},
		"a kubelet refused it":                        {"", "", `"reason":"UnexpectedAdmissionError","message":"no devices","phase":"Failed"`, "UnexpectedAdmissionError  - no devices"},
		"its last words":                              {"", "", failed + `{"name":"a","state":{"terminated":{"exitCode":1,"message":"words"}}}]`, "Error a 1 words"},
		"it runs":                                     {"", "", `"phase":"Running","containerStatuses":[` + running("a") + "]", "  -"},
		"it runs, and its node is to go":              {"", "", `"phase":"Running","containerStatuses":[` + running("a") + fmt.Sprintf(disrupted, "DeletionByTaintManager"), "NodeLost  - m"},
		"it finds no node":                            {"", "", `"phase":"Pending","conditions":[` + condition("PodScheduled", "False", "Unschedulable", "0/3") + "]", "Unschedulable  - 0/3"},
		"its image cannot be pulled":                  {"", "", `"phase":"Pending","containerStatuses":[{"name":"a","state":{"waiting":{"reason":"ErrImagePull","message":"no such"}}}]`, "ImagePullBackOff a - no such"},
		"its container is created":                    {"", "", `"phase":"Pending","containerStatuses":[{"name":"a","state":{"waiting":{"reason":"ContainerCreating"}}}]`, "  -"},
		"its container crashes again and again":       {"", "", `"phase":"Running","containerStatuses":[{"name":"a","state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":9}}}]`, "CrashLoopBackOff a 9"},
		"nonsense":                                    {`"annotations":{"sidecar.istio.io/status":"{"}`, `"initContainers":7,"containers":{"a":[]}`, `"phase":[],"containerStatuses":"x","conditions":{"a":1}`, "  -"},
	} {
		said := Read(podOf(t, test.metadata, test.spec, test.status), nil)
		code := "-"
		if said.ExitCode != nil {
			code = fmt.Sprint(*said.ExitCode)
		}
		if told := strings.TrimRight(strings.Join([]string{said.Reason, said.Container, code, said.Message}, " "), " "); told != test.want {
			t.Errorf("%s: told as %q, not as %q", name, told, test.want)
		}
	}
}

func TestAPodBeginsWithItsFirstMainContainerAndEndsWithItsLast(t *testing.T) {
	minute := jobs.ParseTime("2026-01-02T03:04:00Z")
	const deleting = `"deletionTimestamp":"2026-01-02T03:04:36Z"`
	for name, test := range map[string]struct {
		metadata, spec, status string
		began, finished        jobs.Time // in seconds of the minute
		restarts               int64
	}{
		"a main container runs":                    {"", "", `"phase":"Running","containerStatuses":[` + running("a") + `,{"name":"b","state":{"waiting":{}}}]`, 2, 0, 2},
		"only its sidecar runs":                    {istio, "", `"phase":"Running","containerStatuses":[` + running("proxy") + `,{"name":"b","state":{"waiting":{}}}]`, 0, 0, 0},
		"only an init container ran":               {"", "", `"phase":"Pending","initContainerStatuses":[` + ended("i", "Completed", 0, "05") + `],"containerStatuses":[{"name":"b","state":{"waiting":{}}}]`, 0, 0, 0},
		"it was restarted":                         {"", "", `"phase":"Running","containerStatuses":[{"name":"a","restartCount":1,"state":{"running":{"startedAt":"2026-01-02T03:04:30Z"}},"lastState":{"terminated":{"startedAt":"2026-01-02T03:04:03Z"}}}]`, 3, 0, 1},
		"it ended":                                 {"", "", `"phase":"Failed","containerStatuses":[` + ended("a", "Error", 1, "07") + "," + ended("b", "Error", 1, "09") + "]", 1, 9, 2},
		"it could not be started":                  {"", "", `"phase":"Failed","containerStatuses":[{"name":"a","state":{"terminated":{"exitCode":128,"startedAt":"1970-01-01T00:00:00Z","finishedAt":"2026-01-02T03:04:08Z"}}}]`, 0, 8, 0},
		"its node was lost":                        {"", "", `"phase":"Failed","containerStatuses":[` + running("a") + `],"conditions":[` + condition("DisruptionTarget", "True", "DeletionByPodGC", "") + "]", 2, 5, 2},
		"its node was lost, after one":             {"", "", `"phase":"Failed","containerStatuses":[` + running("a") + "," + ended("b", "Completed", 0, "03") + `],"conditions":[` + condition("DisruptionTarget", "True", "DeletionByPodGC", "") + "]", 1, 5, 3},
		"its node was lost, and it was to be gone": {deleting, "", `"phase":"Failed","containerStatuses":[` + running("a") + `],"conditions":[` + condition("DisruptionTarget", "True", "DeletionByPodGC", "") + "]", 2, 36, 2},
		"a simulated node says no more":            {"", "", `"phase":"Running","startTime":"2026-01-02T03:04:04Z"`, 4, 0, 0},
		"it is to be gone":                         {deleting, "", `"phase":"Running","containerStatuses":[` + running("a") + "]", 2, 36, 2},
	} {
		said := Read(podOf(t, test.metadata, test.spec, test.status), nil)
		began, finished := test.began, test.finished
		if began != 0 {
			began = minute + 1000*began
		}
		if finished != 0 {
			finished = minute + 1000*finished
		}
		if said.Began != began || said.Begun != (began != 0) || said.Finished != finished || said.Deleting != (test.metadata == deleting && !said.Over) || said.Restarts != test.restarts {
			t.Errorf("%s: %+v", name, said)
		}
	}
}

func TestAPodRequestsWhatItsSchedulerCounts(t *testing.T) {
	asks := func(cpu string, more ...string) string {
		return fmt.Sprintf(`"resources":{"requests":{"cpu":%q%s}}`, cpu, strings.Join(more, ""))
	}
	for name, test := range map[string]struct{ spec, want string }{
		"its containers":        {`"containers":[{` + asks("1", `,"nvidia.com/gpu":"2"`) + `},{` + asks("500m") + `}]`, "cpu=1500m nvidia.com/gpu=2"},
		"an init container":     {`"initContainers":[{` + asks("4") + `}],"containers":[{` + asks("1") + `}]`, "cpu=4"},
		"a sidecar":             {`"initContainers":[{"restartPolicy":"Always",` + asks("2") + `},{` + asks("2500m") + `}],"containers":[{` + asks("1") + `}]`, "cpu=4500m"},
		"its overhead":          {`"overhead":{"cpu":"250m"},"containers":[{` + asks("1") + `}]`, "cpu=1250m"},
		"the pod as a whole":    {asks("8") + `,"containers":[{` + asks("1", `,"nvidia.com/gpu":"2"`) + `}]`, "cpu=8 nvidia.com/gpu=2"},
		"nothing":               {`"containers":[{}]`, ""},
		"what nobody can count": {`"overhead":[1],"containers":[{"resources":{"requests":{"cpu":"many"}}},{"resources":7},8]`, ""},
	} {
		requests := Read(podOf(t, "", test.spec, ""), nil).Requests
		var told []string
		for _, resource := range slices.Sorted(maps.Keys(requests)) {
			told = append(told, resource+"="+requests[resource])
		}
		if strings.Join(told, " ") != test.want {
			t.Errorf("%s: %s, not %s", name, told, test.want)
		}
	}
}

func TestEachControllersNumbersOfPodsAreTold(t *testing.T) {
	for name, test := range map[string]struct{ metadata, want string }{
		"an Indexed Job, by a label":    {`"labels":{"batch.kubernetes.io/job-completion-index":"3"}`, "3"},
		"an Indexed Job, by annotation": {`"annotations":{"batch.kubernetes.io/job-completion-index":"3"}`, "3"},
		"a JobSet": {`"labels":{"jobset.sigs.k8s.io/jobset-name":"t","jobset.sigs.k8s.io/replicatedjob-name":"workers","jobset.sigs.k8s.io/job-index":"1",` +
			`"batch.kubernetes.io/job-name":"t-workers-1","batch.kubernetes.io/job-completion-index":"2"}`, "workers-1-2"},
		"a PyTorchJob":    {`"labels":{"training.kubeflow.org/replica-type":"worker","training.kubeflow.org/replica-index":"4"}`, "worker-4"},
		"a Volcano Job":   {`"labels":{"volcano.sh/task-spec":"ps"},"annotations":{"volcano.sh/task-index":"0"}`, "ps-0"},
		"a leader's pod":  {`"labels":{"leaderworkerset.sigs.k8s.io/group-index":"2","leaderworkerset.sigs.k8s.io/worker-index":"0"}`, "2-0"},
		"Spark's":         {`"labels":{"spark-role":"executor","spark-exec-id":"7"}`, "executor-7"},
		"of no numbers":   {`"labels":{"training.kubeflow.org/job-role":"launcher"}`, ""},
		"of no labels":    {"", ""},
		"a StatefulSet's": {`"labels":{"apps.kubernetes.io/pod-index":"5"}`, "5"},
	} {
		if index := Read(podOf(t, test.metadata, "", ""), nil).Index; index != test.want {
			t.Errorf("%s: %q, not %q", name, index, test.want)
		}
	}
}

func TestDevicesOfAPodsClaimsAreItsOwn(t *testing.T) {
	o := podOf(t, "", `"resourceClaims":[{"name":"a","resourceClaimName":"shared"},{"name":"b","resourceClaimTemplateName":"t"},{"name":"c","resourceClaimTemplateName":"t"}]`,
		`"resourceClaimStatuses":[{"name":"b","resourceClaimName":"p-b-x"},{"name":"z","resourceClaimName":"anothers"}]`)
	claim, err := cluster.NewObject(`{"metadata":{"name":"p-b-x","namespace":"n","resourceVersion":"1"},"status":{"allocation":{"devices":{"results":[` +
		`{"request":"r","driver":"gpu.example.org","pool":"n1","device":"gpu-0"},{"request":"s","driver":"gpu.example.org","pool":"n1","device":"gpu-0"},` +
		`{"request":"r","driver":"gpu.example.org","pool":"n1","device":"gpu-1"},{"request":"m","driver":"gpu.example.org","pool":"n1","device":"gpu-2","adminAccess":true}]}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	asked := []string{}
	said := Read(o, func(name string) []jobs.Device {
		asked = append(asked, name)
		if name != "p-b-x" {
			return nil
		}
		return Devices(claim)
	})
	if want := []string{"shared", "p-b-x"}; !slices.Equal(asked, want) {
		t.Errorf("%q was asked for", asked)
	}
	if want := []jobs.Device{{Driver: "gpu.example.org", Pool: "n1", Device: "gpu-0"}, {Driver: "gpu.example.org", Pool: "n1", Device: "gpu-1"}}; !slices.Equal(said.Devices, want) {
		t.Errorf("%+v", said.Devices)
	}
}

// Whoever makes a pod can name a node that is not there, or not theirs to choose. The pod is
// nowhere until the scheduler has bound it, or a kubelet has taken it.
func TestAPodIsOnANodeOnceNotOnlyItsMakerSaysSo(t *testing.T) {
	gone := `"conditions":[` + condition("DisruptionTarget", "True", "DeletionByPodGC", "m") + "]"
	for name, test := range map[string]struct {
		status string
		on     bool
	}{
		"its maker says so":                       {`"phase":"Pending"`, false},
		"it is removed, as there is no such node": {`"phase":"Failed",` + gone, false},
		"no node takes it":                        {`"phase":"Pending","conditions":[` + condition("PodScheduled", "False", "Unschedulable", "0/3") + "]", false},
		"the scheduler bound it":                  {`"phase":"Pending","conditions":[` + condition("PodScheduled", "True", "", "") + "]", true},
		"a kubelet knows it":                      {`"phase":"Pending","startTime":"2026-01-02T03:04:05Z"`, true},
		"a container waits":                       {`"phase":"Pending","containerStatuses":[{"name":"a","state":{"waiting":{"reason":"ContainerCreating"}}}]`, true},
		"a simulated node says that it runs":      {`"phase":"Running"`, true},
		"it has succeeded":                        {`"phase":"Succeeded"`, true},
	} {
		said := Read(podOf(t, "", `"nodeName":"gpu-07"`, test.status), nil)
		run := jobs.NextRun(nil, jobs.SeenPod{PodSaid: said, Version: 1, Created: 5, Observed: 9})
		if on := said.Node == "gpu-07"; on != test.on || (run.Scheduled != 0) != test.on {
			t.Errorf("%s: on %q since %d", name, said.Node, run.Scheduled)
		}
	}
}

// When a node took a pod is known where nobody says when it was bound: whoever evicts or preempts it may write conditions of their own.
func TestAPodIsBoundAtTheLatestWhenItsNodeTookIt(t *testing.T) {
	const startTime = `,"startTime":"2026-01-02T03:04:05Z"`
	at := jobs.ParseTime("2026-01-02T03:04:05Z")
	taken := `"conditions":[` + condition("DisruptionTarget", "True", "PreemptionByScheduler", "m") + "]"
	for status, want := range map[string]jobs.Time{
		`"phase":"Failed",` + taken + startTime: at, `"phase":"Failed",` + taken: 0,
		`"phase":"Running","conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-02T03:04:03Z"}]` + startTime: at - 2000,
	} {
		if said := Read(podOf(t, "", `"nodeName":"gpu-07"`, status), nil); said.Bound != want {
			t.Errorf("%s: bound at %d, not %d", status, said.Bound, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`"deletionTimestamp":"2026-01-02T03:04:05Z"`, `"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]`, `"phase":"Failed","containerStatuses":[{"name":"a","state":{"terminated":{"exitCode":1}}}]`)
	f.Add(istio, `"resources":{"limits":{"cpu":"-1"}}`, `"conditions":[{"type":"DisruptionTarget","status":"True"}]`)
	f.Fuzz(func(t *testing.T, metadata, spec, status string) {
		text := fmt.Sprintf(`{"metadata":{"name":"p","resourceVersion":"1",%s},"spec":{%s},"status":{%s}}`, metadata, spec, status)
		if !gjson.Valid(text) {
			return
		}
		o, err := cluster.NewObject(text)
		if err != nil {
			return
		}
		said := Read(o, func(string) []jobs.Device { return nil })
		if run := jobs.NextRun(nil, jobs.SeenPod{PodSaid: said, Version: 1, Created: 5, Observed: 9}); run.Scheduled > max(9, run.Created) || run.Ended > 9 || run.Started > 9 {
			t.Errorf("%+v", run)
		}
	})
}
