package http

import (
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
)

// projections remembers for a moment what fields= made of the objects of snapshots: after a restart thousands of
// clients want the same of the same objects, and to make it costs much more than to send it. Of whole objects there is
// nothing to remember, since they are sent as they are kept.
type projections struct {
	mu      sync.RWMutex
	made    map[projected]string
	bytes   int
	used    time.Time // when a snapshot last asked for some
	waiting bool      // forget will be called
}

type projected struct {
	object  *cluster.Object // immutable, so it stands for its version
	variant string
}

const (
	projectionsKept  = 2 * time.Second // without being asked for
	projectionsBytes = 64 << 20        // made in all; what is more is made each time
)

// of is the wanted part of an object.
func (p *projections) of(fields *projection, o *cluster.Object) string {
	if fields == nil {
		return o.JSON()
	}
	key := projected{o, fields.variant}
	p.mu.RLock()
	text, ok := p.made[key]
	p.mu.RUnlock()
	if ok {
		return text
	}
	text = fields.of(o.JSON())
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, again := p.made[key]; again || p.bytes+len(text) > projectionsBytes {
		return text
	}
	if p.made == nil {
		p.made = map[projected]string{}
	}
	p.made[key] = text
	p.bytes += len(text)
	return text
}

// use says that a snapshot is about to be asked for.
func (p *projections) use() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = time.Now()
	if !p.waiting {
		p.waiting = true
		time.AfterFunc(projectionsKept, p.forget)
	}
}

// forget drops all of them once nobody uses them any more.
func (p *projections) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := time.Until(p.used.Add(projectionsKept)); left > 0 {
		time.AfterFunc(left, p.forget)
		return
	}
	p.made, p.bytes, p.waiting = nil, 0, false
}
