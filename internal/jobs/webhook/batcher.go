package webhook

import (
	"context"
	"log/slog"
	"time"

	"github.com/kubecast/kubecast/internal/jobs/outbox"
)

// sentResult is what is to be recorded of an attempt.
type sentResult struct {
	of      *target
	term    context.Context       // once it has ended, there is only one more try
	outcome *outbox.AttemptResult // nil: nothing of the message
	changes bool                  // whether the target's state is to be recorded, too
	done    chan bool             // told whether it was recorded
}

// batcher records what became of attempts, of all targets together: what comes while a transaction runs is in the
// next one. Many small transactions would keep a recorder waiting, whose database may be a file on a slow disk.
type batcher struct {
	store *outbox.Store
	queue chan *sentResult
	times times
	log   *slog.Logger
}

// batchMost is about how many outcomes are recorded in one transaction.
const batchMost = 200

// restMost bounds how long the batcher rests after a transaction: for as long as that took.
const restMost = 100 * time.Millisecond

// add returns once an outcome is recorded, or given up. Then the message is sent again by whoever comes next.
func (b *batcher) add(one *sentResult) bool {
	b.queue <- one
	return <-one.done
}

// run records until the queue is closed. While the database is away it tries again.
func (b *batcher) run() {
	var batch []*sentResult
	for failed := 0; ; {
		if len(batch) == 0 {
			one, ok := <-b.queue
			if !ok {
				return
			}
			batch = append(batch, one)
		}
		for more := true; more && len(batch) < batchMost; {
			select {
			case one := <-b.queue:
				batch = append(batch, one)
			default:
				more = false
			}
		}
		ending := make([]bool, len(batch))
		for i, one := range batch {
			ending[i] = one.term.Err() != nil
		}
		began := time.Now()
		err := b.record(batch)
		if failed++; err == nil {
			failed = 0
		} else if failed == 1 {
			b.log.Warn("recording the results of messages to webhooks failed", "messages", len(batch), "error", err)
		}
		var left []*sentResult
		for i, one := range batch {
			if err == nil || ending[i] {
				one.done <- err == nil
			} else {
				left = append(left, one)
			}
		}
		batch = left
		// Without rests a recorder whose database is a file would find it locked again and again.
		rest := min(time.Since(began), restMost)
		if err != nil {
			rest = min(time.Duration(failed)*100*time.Millisecond, time.Second)
		}
		time.Sleep(rest)
	}
}

func (b *batcher) record(batch []*sentResult) error {
	var outcomes []outbox.AttemptResult
	changes, versions := map[string]outbox.Switch{}, map[*target]int{}
	for _, one := range batch {
		if one.outcome != nil {
			outcomes = append(outcomes, *one.outcome)
		}
		if one.changes {
			one.of.mu.Lock()
			changes[one.of.Name], versions[one.of] = one.of.change, one.of.changed
			one.of.mu.Unlock()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.times.grace)
	defer cancel()
	if err := b.store.Record(ctx, outcomes, changes); err != nil {
		return err
	}
	for t, version := range versions {
		t.mu.Lock()
		if t.changed == version {
			t.unsaved = false
		}
		t.mu.Unlock()
	}
	return nil
}
