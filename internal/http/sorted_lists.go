package http

import (
	"slices"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
)

// sortedLists remembers the lists that were sorted last: the pages of one walk, and all who look at the same table, need
// not sort it again. What is sorted is pointers; the objects are the snapshot's.
type sortedLists struct {
	mu       sync.Mutex
	kept     []*sortedList // the least recently used first
	sweeping bool
}

type sortedList struct {
	snapshot *cache.Snapshot
	of       partKey
	selector string
	order    string
	used     time.Time

	once sync.Once
	list *cache.Sorted
}

const (
	maxSorted     = 16
	keepSortedFor = time.Minute
)

func (l *sortedLists) get(snapshot *cache.Snapshot, visible part, req listRequest) *cache.Sorted {
	found := l.find(&sortedList{snapshot: snapshot, of: visible.key(), selector: req.selection, order: req.order.String()})
	found.once.Do(func() { // outside of the lock; those who want the same wait
		found.list = req.order.Sort(visible.list(snapshot, req.selector, "", ""))
	})
	return found.list
}

// find returns the list that is kept, or keeps the one given.
func (l *sortedLists) find(wanted *sortedList) *sortedList {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.kept, func(k *sortedList) bool {
		return k.snapshot == wanted.snapshot && k.of == wanted.of && k.selector == wanted.selector && k.order == wanted.order
	})
	if i >= 0 {
		wanted = l.kept[i]
		l.kept = slices.Delete(l.kept, i, i+1)
	}
	wanted.used = time.Now()
	l.kept = append(l.kept, wanted)
	l.forget()
	return wanted
}

// forget drops what is too much or was not used for long, and sees to it that what is left will be.
func (l *sortedLists) forget() {
	drop := 0
	for drop < len(l.kept) && (len(l.kept)-drop > maxSorted || time.Since(l.kept[drop].used) >= keepSortedFor) {
		drop++
	}
	l.kept = slices.Delete(l.kept, 0, drop)
	if len(l.kept) == 0 || l.sweeping {
		return
	}
	l.sweeping = true
	time.AfterFunc(time.Until(l.kept[0].used.Add(keepSortedFor)), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sweeping = false
		l.forget()
	})
}
