package historyapi

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// A search that took too long goes on where it ended, also where it found nothing, and is no list of all. A page that was full before
// that goes on behind its last row.
func TestAPageOfAnUnfinishedSearchSaysThatThereMayBeMore(t *testing.T) {
	for _, test := range []struct {
		chunks []int  // how many rows each reading finds
		failed error  // of the last one
		body   string // how it ends; "": the page fails
	}{
		{chunks: []int{2}, failed: &store.Unfinished{Before: 7}, body: `{"items":[0,1],"continue":"from7"}`},
		{chunks: []int{101, 0}, failed: &store.Unfinished{Before: 7}, body: `99],"continue":"from7"}`}, // the 101st says only that there is more
		{chunks: []int{0}, failed: &store.Unfinished{Before: 7}, body: `{"items":[],"continue":"from7"}`},
		{chunks: []int{101, 0}, failed: store.ErrBusy, body: `99],"continue":"behind99"}`},
		{chunks: []int{101, 0}, failed: service.ErrAway, body: `99],"continue":"behind99"}`},
		{chunks: []int{0}, failed: store.ErrBusy},
		{chunks: []int{101, 0}, failed: context.Canceled},
	} {
		p, told, reads := page{task: budget.NewTask(t.Context(), budget.NewQueue(1, 1, 1), ""), seeks: true}, -1, 0
		err := fill(&p, 200, func(int) (rows []int, err error) {
			for i := range test.chunks[reads] {
				rows = append(rows, told+1+i)
			}
			if reads++; reads == len(test.chunks) {
				err = test.failed
			}
			return rows, err
		}, func(row int) any { told = row; return row }, func(at *store.Unfinished) string {
			if at != nil {
				return "from" + strconv.FormatUint(at.Before, 10)
			}
			return "behind" + strconv.Itoa(told)
		})
		switch {
		case test.body == "":
			if !errors.Is(err, test.failed) {
				t.Errorf("%v, %v: %v", test.chunks, test.failed, err)
			}
		case err != nil || !strings.HasSuffix(p.body.String(), test.body+"\n"):
			t.Errorf("%v, %v: %v, %s", test.chunks, test.failed, err, p.body.String())
		}
		p.task.Rest()
	}
}
