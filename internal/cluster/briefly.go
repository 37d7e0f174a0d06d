package cluster

import (
	"sync"
	"time"
)

// briefly keeps answers that are shared by all who ask within a moment, and no longer than that,
// since they may be large. The zero value is ready.
type briefly[K comparable, A any] struct {
	mu   sync.Mutex
	kept map[K]*kept[A]
}

type kept[A any] struct {
	answer A
	until  time.Time
}

func (b *briefly[K, A]) get(key K) (answer A, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.kept[key]; k != nil && time.Now().Before(k.until) {
		return k.answer, true
	}
	return answer, false
}

func (b *briefly[K, A]) keep(key K, answer A, lasting time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil {
		b.kept = map[K]*kept[A]{}
	}
	k := &kept[A]{answer, time.Now().Add(lasting)}
	b.kept[key] = k
	time.AfterFunc(lasting, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.kept[key] == k {
			delete(b.kept, key)
		}
	})
}
