package pods

import (
	"testing"

	"github.com/kubecast/kubecast/internal/jobs"
)

// A version of a pod is read, and its run goes on.
func BenchmarkRead(b *testing.B) {
	o := podOf(b, `"labels":{"batch.kubernetes.io/job-completion-index":"3"},"ownerReferences":[{"kind":"Job","uid":"u","name":"j","controller":true}]`,
		`"nodeName":"n","containers":[{"name":"main","image":"i","resources":{"requests":{"cpu":"1","memory":"1Gi","nvidia.com/gpu":"2"}}}],"initContainers":[{"name":"i"}]`,
		`"phase":"Failed","containerStatuses":[`+ended("main", "OOMKilled", 137, "09")+`],"conditions":[`+condition("PodScheduled", "True", "", "")+"]")
	was := jobs.NextRun(nil, jobs.SeenPod{PodSaid: Read(o, nil), Version: 1, Created: 1, Observed: 2})
	b.ReportAllocs()
	for b.Loop() {
		if jobs.NextRun(was, jobs.SeenPod{PodSaid: Read(o, nil), Version: 2, Created: 1, Observed: 3}) != nil {
			b.Fatal("it changed")
		}
	}
}
