package historyapi

import (
	"strconv"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/history/store"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// A search that took too long goes on behind what it found, and is no list of all. Where it found nothing, nothing says from where to go on.
func TestAPageOfAnUnfinishedSearchSaysThatThereMayBeMore(t *testing.T) {
	for _, test := range []struct {
		chunks []int // how many rows each reading finds, the last of them unfinished
		body   string
		failed string
	}{
		{chunks: []int{2}, body: `{"items":[0,1],"continue":"behind1"}` + "\n"},
		{chunks: []int{101, 0}, body: `99],"continue":"behind99"}` + "\n"}, // the 101st says only that there is more
		{chunks: []int{0}, failed: "search: nothing was found within 5s"},
	} {
		p, told, reads := page{task: budget.NewTask(t.Context(), budget.NewQueue(1, 1, 1), "")}, -1, 0
		err := fill(&p, 200, func(int) (rows []int, err error) {
			for i := range test.chunks[reads] {
				rows = append(rows, told+1+i)
			}
			if reads++; reads == len(test.chunks) {
				err = store.ErrUnfinished
			}
			return rows, err
		}, func(row int) any { told = row; return row }, func() string { return "behind" + strconv.Itoa(told) })
		switch {
		case test.failed != "":
			if failed := reply.To(err); failed == nil || failed.Code != 400 || !strings.Contains(failed.Message, test.failed) {
				t.Errorf("%v: %v", test.chunks, err)
			}
		case err != nil || !strings.HasSuffix(p.body.String(), test.body):
			t.Errorf("%v: %v, %s", test.chunks, err, p.body.String())
		}
		p.task.Rest()
	}
}
