package queues

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
)

func object(t testing.TB, text string) *cluster.Object {
	t.Helper()
	o, err := cluster.NewObject(`{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"1","creationTimestamp":"2026-01-02T03:04:05Z"` + text + `}`)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What an older Kueue has written is read as what a newer one writes.
func TestOlderFormsOfQueuesAreRead(t *testing.T) {
	whole := object(t, `},"spec":{"cohort":"old","stopPolicy":"Hold","resourceGroups":[{"flavors":[{"name":"f","resources":[{"name":"cpu","nominalQuota":"1500m"},{"name":"memory","nominalQuota":"wrong"}]}]}]}`)
	if q := ClusterQueue(whole); q.Cohort != "old" || !q.Stopped || len(q.Resources) != 2 || *q.Resources[0].Quota != "1500m" || q.Resources[1].Quota != nil || *q.Resources[0].Borrowed != "0" {
		t.Errorf("%+v", q)
	}
	local := object(t, `},"spec":{"clusterQueue":"c","stopPolicy":"None"},"status":{"flavorUsage":[{"name":"f","resources":[{"name":"cpu","total":1}]}]}`)
	if q := LocalQueue(local, whole); q.Stopped || *q.Resources[0].Used != "1" || *q.Resources[0].Quota != "1500m" || q.Resources[0].Borrowed != nil {
		t.Errorf("%+v", q)
	}
}

// A Workload stands for what controls it, and waits from when it came or was taken back.
func TestWorkloadsStandForTheirJobs(t *testing.T) {
	condition := func(name, status string) string {
		return fmt.Sprintf(`{"type":%q,"status":%q,"lastTransitionTime":"2026-01-02T04:00:00Z"}`, name, status)
	}
	for _, test := range []struct {
		text  string
		job   Job
		waits bool
		since int // hours
	}{
		{`}`, Job{"kueue.x-k8s.io", "Workload", "x", "u"}, true, 3},
		{`,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"},{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"2","controller":true}]}`, Job{"batch", "Job", "j", "2"}, true, 3},
		{`,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1"},{"apiVersion":"v1","kind":"Pod","name":"q","uid":"2"}]}`, Job{"", "Pod", "p", "1"}, true, 3},
		{`},"status":{"conditions":[` + condition("Evicted", "True") + `]}`, Job{"kueue.x-k8s.io", "Workload", "x", "u"}, true, 4},
		{`},"status":{"conditions":[` + condition("QuotaReserved", "True") + `]}`, Job{"kueue.x-k8s.io", "Workload", "x", "u"}, false, 3},
		{`},"status":{"conditions":[` + condition("QuotaReserved", "False") + `]}`, Job{"kueue.x-k8s.io", "Workload", "x", "u"}, true, 3},
		{`},"status":{"conditions":[` + condition("Finished", "True") + `]}`, Job{"kueue.x-k8s.io", "Workload", "x", "u"}, false, 3},
		{`},"spec":{"active":false}`, Job{"kueue.x-k8s.io", "Workload", "x", "u"}, false, 3},
	} {
		o := object(t, test.text)
		if job, waits, since := JobOf(o), Waits(o), Since(o); job != test.job || waits != test.waits || since.UTC().Hour() != test.since {
			t.Errorf("%s: %+v %t %v", test.text, job, waits, since)
		}
	}
	first, second, urgent := object(t, `}`), object(t, `},"status":{"conditions":[`+condition("Evicted", "True")+`]}`), object(t, `},"spec":{"priority":1},"status":{"conditions":[`+condition("Evicted", "True")+`]}`)
	all := []*cluster.Object{second, first, urgent}
	if slices.SortFunc(all, func(a, b *cluster.Object) int { return RankOf(a).Compare(RankOf(b)) }); all[0] != urgent || all[1] != first {
		t.Error("the order is another")
	}
}

// Whatever strangers write into objects, they can be read, and at once.
func FuzzObjects(f *testing.F) {
	f.Add(`{"podSets":[{"count":9223372036854775807,"template":{"spec":{"containers":[{"resources":{"requests":{"cpu":"9e18"}}}]}}}]}`, `{"conditions":[{"type":"Evicted","status":"True","lastTransitionTime":7}]}`)
	f.Add(`{"resourceGroups":[{"flavors":[{"resources":[{"nominalQuota":"1e999999999"}]}]}],"podSets":{"count":-1}}`, `{"flavorsUsage":{"resources":3}}`)
	f.Add(`{"resourceGroups":[{"flavors":[{"resources":[{"name":"a","nominalQuota":1e400}]}]}]}`, `[]`)
	f.Fuzz(func(t *testing.T, spec, status string) {
		o, err := cluster.NewObject(`{"metadata":{"name":"x","resourceVersion":"1"},"spec":` + spec + `,"status":` + status + `}`)
		if err != nil {
			return
		}
		began := time.Now()
		whole := ClusterQueue(o)
		LocalQueue(o, o)
		JobOf(o)
		Waits(o)
		Since(o)
		Requests(o)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%v", took)
		}
		for _, r := range whole.Resources {
			if r.Quota != nil && len(*r.Quota) > 100 {
				t.Errorf("a quota of %d bytes", len(*r.Quota))
			}
		}
	})
}
