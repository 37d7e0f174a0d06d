package recorder

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs/pods"
)

// Whatever of a pod is another, what it says of its life is read again if that may be another, too;
// and what often changes costs nothing.
func TestWhatSaysSomethingElseOfALifeIsReadAgain(t *testing.T) {
	base := strings.Replace(benchPod, "%s", "batch/v1", 1)
	object := func(text string) *cluster.Object {
		o, err := cluster.NewObject(text)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	before := object(base)
	changed := 0
	for _, change := range [][2]string{
		{`"resourceVersion":"5"`, `"resourceVersion":"6"`}, {`"podIP":"10.1.0.7"`, `"podIP":"10.1.0.8"`}, {`"type":"Ready","status":"True"`, `"type":"Ready","status":"False"`},
		{`"hostIP":"10.0.0.1",`, ``}, {`"type":"ContainersReady","status":"True","lastTransitionTime":"2026-01-01`, `"type":"ContainersReady","status":"True","lastTransitionTime":"2027-01-01`},
		{`"phase":"Running"`, `"phase":"Failed"`}, {`"phase":"Running"`, `"phase":"Running","reason":"Evicted"`}, {`"phase":"Running"`, `"phase":"Failed","message":"m"`},
		{`"type":"PodScheduled","status":"True"`, `"type":"PodScheduled","status":"False"`}, {`"conditions":[`, `"conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"},`},
		{`"name":"p"`, `"name":"p","deletionTimestamp":"2026-01-01T00:00:09Z"`}, {`"name":"p"`, `"name":"p","annotations":{"batch.kubernetes.io/job-completion-index":"3"}`},
		{`"labels":{`, `"labels":{"batch.kubernetes.io/job-completion-index":"3",`}, {`"nodeName":"n1"`, `"nodeName":"n2"`}, {`"requests":{"cpu":"4"`, `"requests":{"cpu":"8"`},
		{`"restartCount":0`, `"restartCount":2`}, {`"state":{"running":{`, `"state":{"terminated":{"exitCode":1,`}, {`"spec":{`, `"spec":{"overhead":{"cpu":"1"},`},
	} {
		text := strings.Replace(base, change[0], change[1], 1)
		if text == base {
			t.Fatalf("%s is not there", change[0])
		}
		after := object(text)
		switch same := fingerprint(after) == fingerprint(before); {
		case !same:
			changed++
		case !reflect.DeepEqual(pods.Read(after, nil), pods.Read(before, nil)):
			t.Errorf("%s is not read again", change[1])
		}
	}
	if changed != 13 {
		t.Errorf("%d changes are read again", changed)
	}
}
