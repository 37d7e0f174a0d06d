package rest

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/livequery"
	"github.com/kubecast/kubecast/internal/visibility"
)

// sortedLists remembers lists that were sorted recently, so that they are not sorted again for the next page, or for
// another user who looks at the same list. Only pointers are sorted; the objects are the snapshot's.
type sortedLists struct {
	memory  *budget.Memory
	queries *livequery.Registry // has some lists in order already
	sorts   *budget.Queue       // turns for sorting, whose memory is charged only when it is done

	mu   sync.Mutex
	kept map[sortedKey]*sortedList
}

type sortedKey struct {
	snapshot *cache.Snapshot
	of       visibility.VisibleTargetKey
	selector string
	order    string
}

type sortedList struct {
	done   chan struct{} // closed once the list is sorted, or was given up
	list   *cache.Sorted // nil if it was given up
	charge *budget.Entry
}

const keepSortedFor = time.Minute

func newSortedLists(memory *budget.Memory, queries *livequery.Registry) sortedLists {
	return sortedLists{memory: memory, queries: queries, sorts: budget.NewQueue(runtime.GOMAXPROCS(0), 1, 0), kept: map[sortedKey]*sortedList{}}
}

// get returns a page's list in order. Concurrent requests for the same list wait for the one that sorts it.
func (l *sortedLists) get(ctx context.Context, page page, req listRequest, by reader) (*cache.Sorted, error) {
	key := sortedKey{page.snapshot, page.part.Key(), req.selector.Key(), req.order.String()}
	for {
		found, own := l.find(key, page, by)
		if own {
			if err := l.sort(ctx, key, found, page, req, by); err != nil {
				return nil, err
			}
			return found.list, nil
		}
		by.task.Rest()
		select {
		case <-found.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if found.list != nil {
			found.charge.Use()
			return found.list, nil
		}
	}
}

// find returns the entry of a list, and whether the caller has to sort it.
func (l *sortedLists) find(key sortedKey, page page, by reader) (found *sortedList, own bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.kept[key]; found != nil {
		return found, false
	}
	made := &sortedList{done: make(chan struct{})}
	made.charge = l.memory.Enter(by.user, keepSortedFor, func() { l.drop(key, made) }).Measure(func() int64 {
		return int64(made.list.Size()) + page.store.HeldBeyond(page.snapshot, nil)
	})
	l.kept[key] = made
	return made, true
}

func (l *sortedLists) drop(key sortedKey, gone *sortedList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept[key] == gone {
		delete(l.kept, key)
	}
}

func (l *sortedLists) sort(ctx context.Context, key sortedKey, into *sortedList, page page, req listRequest, by reader) error {
	defer func() {
		if into.list == nil {
			l.drop(key, into)
		}
		close(into.done)
	}()
	asked := livequery.Query{Target: page.part, Selector: req.selector, Order: req.order}
	if kept := l.queries.Find(page.store, asked, page.changed, page.snapshot.Revision()); kept != nil && kept.Ranking.HoldsAll() {
		into.list = kept.Ranking.Sorted()
		into.charge.Set(int64(into.list.Size()))
		return nil
	}
	by.task.Rest()
	release, err := l.sorts.Take(ctx, by.user)
	if err != nil {
		return err
	}
	defer release()
	list := req.order.Sort(page.part.List(page.snapshot, req.selector, "", ""), by.task.Step)
	if err := by.task.Err(); err != nil {
		return err
	}
	into.list = list
	into.charge.Set(int64(list.Size()))
	return nil
}
