package queues

import (
	"fmt"
	"strings"
	"testing"
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
