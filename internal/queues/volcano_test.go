package queues

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/cluster"
)

// Whoever may make PodGroups and Workloads may name any resource: what is told of them is bounded.
func TestResourcesThatNobodyHasAreBounded(t *testing.T) {
	most, longer := "a/"+strings.Repeat("x", longestResource-2), "a/"+strings.Repeat("x", longestResource-1)
	for _, test := range []struct {
		list string
		want int
	}{
		{fmt.Sprintf(`%q:"1",%q:"2","count/pods":"3","cpu":"4"`, most, longer), 2},
		{`"r0":"1"` + many(40), mostResources},
	} {
		if got := PodGroupRequests(object(t, `},"spec":{"minResources":{`+test.list+`}}`)); len(got) != test.want || got[longer] != "" {
			t.Errorf("of a PodGroup %d: %.100v", len(got), got)
		}
		workload := object(t, `},"spec":{"podSets":[{"count":1,"template":{"spec":{"containers":[{"resources":{"requests":{`+strings.ReplaceAll(test.list, `"count/pods":"3",`, "")+`}}}]}}}]}}`)
		if got := Requests(workload); len(got) != test.want || got[longer] != "" {
			t.Errorf("of a Workload %d: %.100v", len(got), got)
		}
	}
}

func many(n int) (list string) {
	for i := range n {
		list += fmt.Sprintf(`,"r%d":"1"`, i+1)
	}
	return list
}

// Jobs that were made in one second are in the order of namespaces and names, which is Volcano's own, whatever their uids are.
func TestPodGroupsOfOneSecondAreInTheOrderOfTheirNames(t *testing.T) {
	var ranks []Rank
	for _, name := range []string{"a/x", "a-b/a", "b/a", "b/b"} { // as texts: "a-b/" is before "a/"
		namespace, name, _ := strings.Cut(name, "/")
		o, err := cluster.NewObject(fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":"1","creationTimestamp":"2026-01-02T03:04:05Z"}}`, namespace, name, fmt.Sprint(9-len(ranks))))
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, PodGroupRank(o, 0))
	}
	for i, order := range []int{1, 0, 2, 3} {
		for _, later := range []int{1, 0, 2, 3}[i+1:] {
			if ranks[order].Compare(ranks[later]) >= 0 {
				t.Errorf("%+v is not before %+v", ranks[order], ranks[later])
			}
		}
	}
}

// Volcano finds nodes for PodGroups only that were let into their queue.
func TestPodGroupsThatWereLetInGoFirst(t *testing.T) {
	rank := func(phase string, priority int64) Rank {
		return PodGroupRank(object(t, `},"status":{"phase":"`+phase+`"}`), priority)
	}
	if rank("Inqueue", 1).Compare(rank("Pending", 9)) >= 0 || rank("", 9).Compare(rank("Inqueue", 1)) <= 0 || rank("Pending", 9).Compare(rank("", 1)) >= 0 {
		t.Error("they do not")
	}
}
