package pending

import (
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/cache"
)

// Kueue, which may have been behind when it was asked, is asked again also if it took longer than that to
// make a snapshot, or to be refused.
func TestKueueIsAskedAgainHoweverLongASnapshotTakes(t *testing.T) {
	asked := time.Now().Add(-time.Hour)
	for name, l := range map[string]*line{"after a change": {}, "after a refusal": {err: cache.ErrNotWatchable}} {
		l.queue, l.board, l.unlike = Queue{Name: "whole"}, &board{local: &cache.Snapshot{}}, backoff.New(differs, differsMost)
		l.order.Asked, l.order.Until = asked, asked.Add(time.Second)
		if _, again := l.again(asked.Add(-settles/2), true); !again {
			t.Errorf("%s, it is not", name)
		}
		l.board.local = nil
		if _, again := l.again(asked, true); again {
			t.Errorf("%s, it is also without queues", name)
		}
	}
}
