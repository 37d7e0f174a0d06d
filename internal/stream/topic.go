package stream

import (
	"context"
	"sync"
	"time"
)

// Options bound a topic.
type Options struct {
	Events int           // how many events it keeps at most
	Bytes  int64         // how much their objects may occupy together, in bytes
	Age    time.Duration // how old an event it keeps may be; 0: any age
	Gather time.Duration // readers are woken at most this often; the first event after a pause wakes them at once
}

// Topic is the history of one kind. The writer's methods (Begin, Append, AppendBurst, Progress, Restart) are for
// one goroutine at a time; all others may be called concurrently.
type Topic[O Object[O]] struct {
	opts  Options
	dirty chan struct{} // tells Run that readers are to be woken

	mu           sync.Mutex
	ring         ring[O]
	watermark    uint64 // everything up to here has been appended
	generation   int    // how often versions went back
	gaps         []gap
	forgottenGap uint64            // the end of the last gap that was forgotten
	chains       map[string]*chain // by namespace
	chainLimit   int               // how many of them there are before some are forgotten
	forgotten    eviction          // of chains that were dropped; where a new chain begins
	everyone     waitList          // who reads all namespaces
	wake         []*waitList       // lists with readers to be woken
	evicted      uint64            // how many events were ever evicted
}

// A gap is a stretch of history that was never seen: a relist found the difference between both ends. Who stands at
// its beginning can be told that difference. Who stands within (told by another replica, which did see it) cannot:
// he may know of objects that came and went here unseen.
type gap struct{ from, to uint64 }

// maxGaps bounds the gaps remembered; whoever is older than the oldest has expired.
const maxGaps = 64

// eviction remembers what a ring no longer holds: the newest evicted event's place and position.
type eviction struct {
	seq uint64 // sequence number of the first event not evicted
	pos uint64
}

// NewTopic makes an empty topic, of which nobody can read before Begin.
func NewTopic[O Object[O]](opts Options) *Topic[O] {
	return &Topic[O]{opts: opts, dirty: make(chan struct{}, 1), chains: map[string]*chain{}, chainLimit: maxChains}
}

// Run wakes the readers of what is appended, and lets events grow old, until the context ends.
func (t *Topic[O]) Run(ctx context.Context) error {
	age := time.NewTicker(max(t.opts.Age/8, time.Second))
	defer age.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	var woken []Waiter
	defer func() { t.wakeReaders(woken) }() // those of what was appended last
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-age.C:
			t.mu.Lock()
			t.evict(time.Now())
			t.mu.Unlock()
			continue
		case <-t.dirty:
		}
		woken = t.wakeReaders(woken)
		if t.opts.Gather > 0 {
			pause.Reset(t.opts.Gather)
			select {
			case <-ctx.Done():
				return nil
			case <-pause.C:
			}
		}
	}
}

// Begin starts the history at the version of the first list, which is no part of it.
func (t *Topic[O]) Begin(version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(version)
}

func (t *Topic[O]) begin(version uint64) {
	t.watermark = version
	t.gaps, t.forgottenGap = nil, 0
	t.ring.evictAll(version)
	t.forgotten = t.ring.evicted
	for _, c := range t.chains {
		c.seqs.clear()
		c.evicted = t.ring.evicted
	}
}

// Restart begins a new history, at the version of a list that lies before what was seen: all cursors get ErrEpoch.
func (t *Topic[O]) Restart(version uint64) {
	t.mu.Lock()
	t.generation++
	t.begin(version)
	t.wakeEveryone()
	t.mu.Unlock()
	t.signal()
}

// Append adds a change that came live, whose version is not before any seen.
//
// It may be the same as the last: when a lease ends, etcd deletes everything that was bound to it in one revision
// (so go Kubernetes' Events). A client that was told the first of them claims the version, though the others were
// still to come; so who resumes after it is told all but the first again.
func (t *Topic[O]) Append(version uint64, change Change[O]) {
	now := time.Now()
	t.mu.Lock()
	t.append(&Event[O]{Change: change, Pos: version, ID: version, At: now})
	t.watermark = version
	t.evict(now)
	t.mu.Unlock()
	t.signal()
}

// AppendBurst adds the difference that a list at a version found, in one piece. The version is not before any seen.
func (t *Topic[O]) AppendBurst(version uint64, changes []Change[O]) {
	now := time.Now()
	t.mu.Lock()
	for _, change := range changes {
		t.append(&Event[O]{Change: change, Pos: version, ID: t.watermark, At: now})
		t.evict(now)
	}
	if version > t.watermark {
		t.gaps = append(t.gaps, gap{from: t.watermark, to: version})
		if len(t.gaps) > maxGaps {
			t.expireBefore(t.gaps[0].to)
		}
	}
	t.watermark = version
	t.mu.Unlock()
	if len(changes) > 0 {
		t.signal()
	}
}

// Progress says that nothing else happened up to a version.
func (t *Topic[O]) Progress(version uint64) {
	t.mu.Lock()
	t.watermark = max(t.watermark, version)
	t.mu.Unlock()
}

// Notify wakes all readers, though nothing was appended: something else that they tell their clients has changed.
func (t *Topic[O]) Notify() {
	t.mu.Lock()
	t.wakeEveryone()
	t.mu.Unlock()
	t.signal()
}

// append puts an event at the end of the ring and of its namespace's chain, and notes whom to wake.
func (t *Topic[O]) append(event *Event[O]) {
	event.tie = event.Pos == t.watermark
	namespace := event.Object.GetNamespace()
	seq := t.ring.push(event, t.opts.Events)
	event.seq = seq
	t.note(&t.everyone)
	if namespace != "" {
		c := t.chain(namespace)
		c.seqs.push(seq)
		t.note(&c.waiting)
	}
}

// evict drops the oldest events until the topic is within its bounds. The newest stays even if it is larger than all
// may be together, or readers that keep up would be overtaken by each such event.
func (t *Topic[O]) evict(now time.Time) {
	var tooOld time.Time
	if t.opts.Age > 0 {
		tooOld = now.Add(-t.opts.Age)
	}
	for t.ring.len() > 1 && (t.ring.len() > t.opts.Events || t.ring.bytes > t.opts.Bytes) ||
		t.ring.len() > 0 && t.ring.oldest().At.Before(tooOld) {
		t.evictOldest()
	}
}

func (t *Topic[O]) evictOldest() {
	event := t.ring.pop()
	t.evicted++
	if c := t.chains[event.Object.GetNamespace()]; c != nil {
		c.seqs.pop()
		c.evicted = t.ring.evicted
	}
}

// expireBefore makes every position before a version too old, and forgets the gaps there.
func (t *Topic[O]) expireBefore(version uint64) {
	for t.ring.len() > 0 && t.ring.oldest().Pos <= version {
		t.evictOldest()
	}
	t.ring.evicted.pos = max(t.ring.evicted.pos, version)
	t.forgotten.pos = max(t.forgotten.pos, version)
	for _, c := range t.chains {
		c.evicted.pos = max(c.evicted.pos, version)
	}
	for len(t.gaps) > 0 && t.gaps[0].to <= version {
		t.forgottenGap, t.gaps = t.gaps[0].to, t.gaps[1:]
	}
}

// Stats are figures for metrics and for people.
type Stats struct {
	Events    int       // kept
	Bytes     int64     // that their objects occupy
	Oldest    time.Time // when the oldest was appended; zero without any
	Evicted   uint64    // ever
	Watermark uint64    // everything up to this version has been appended
	Waiting   int       // readers that wait for an event
}

// Stats are the topic's figures at this moment.
func (t *Topic[O]) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Stats{
		Events:    t.ring.len(),
		Bytes:     t.ring.bytes,
		Evicted:   t.evicted,
		Watermark: t.watermark,
		Waiting:   len(t.everyone.waiting),
	}
	for _, c := range t.chains {
		s.Waiting += len(c.waiting.waiting)
	}
	if s.Events > 0 {
		s.Oldest = t.ring.oldest().At
	}
	return s
}
