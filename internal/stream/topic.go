package stream

import (
	"context"
	"sync"
	"time"
)

// Options bound a topic.
type Options struct {
	Events int           // how many events are kept at most
	Bytes  int64         // how much the objects of the events may occupy together, in bytes
	Age    time.Duration // how long an event is kept at most; 0: without limit
	Gather time.Duration // readers are woken at most this often; the first event after a pause wakes them at once
}

// Topic is the history of one kind. The writer's methods (Begin, Append, AppendBurst, Progress, Restart) are for one
// goroutine at a time. All other methods may be called concurrently with them and with each other.
type Topic[O Object[O]] struct {
	opts  Options
	dirty chan struct{} // tells Run that readers are to be woken

	mu           sync.Mutex
	ring         ring[O]
	watermark    uint64 // everything up to this version has been appended, unless it is open
	open         bool   // there may be more of the watermark's revision; see Append
	part         int    // of the watermark's revision, that was seen last
	generation   int    // how often versions went back
	gaps         []gap
	forgottenGap uint64            // the end of the last gap that was forgotten
	chains       map[string]*chain // by namespace
	chainLimit   int               // how many there may be before some are forgotten
	forgotten    eviction          // what was evicted from any dropped chain; where a new chain begins
	everyone     waitList          // readers of all namespaces
	wake         []*waitList       // the lists whose readers are to be woken
	evicted      uint64            // how many events were evicted since the start
}

// A gap is a stretch of history that was never seen: a relist found only the difference between both ends. A client
// whose position is the beginning can be told that difference. A client whose position lies within was told by
// another replica, which did see that history. It cannot go on: it may know of objects that came and went here
// unseen.
type gap struct {
	from, to uint64
	burst    Known // claimed by a client that was cut off in the burst of the difference
}

// maxGaps bounds the gaps that are remembered. A position before the end of a forgotten gap has expired.
const maxGaps = 64

// eviction says what a ring no longer holds.
type eviction struct {
	seq uint64 // sequence number of the first event that was not evicted
	pos uint64
}

// NewTopic returns an empty topic, which must not be read before Begin.
func NewTopic[O Object[O]](opts Options) *Topic[O] {
	return &Topic[O]{opts: opts, dirty: make(chan struct{}, 1), chains: map[string]*chain{}, chainLimit: maxChains}
}

// Run wakes the readers that wait for what was appended, and evicts events that have become too old, until the
// context ends. It then returns nil.
func (t *Topic[O]) Run(ctx context.Context) error {
	age := time.NewTicker(max(t.opts.Age/8, time.Second))
	defer age.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	var woken []Waiter
	defer func() { t.wakeReaders(woken) }() // those that wait for what was appended last
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

// Begin starts the history at the version of the first list. The list itself is no part of the history.
func (t *Topic[O]) Begin(version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(version)
}

func (t *Topic[O]) begin(version uint64) {
	t.watermark, t.part, t.open = version, 1, false
	t.gaps, t.forgottenGap = nil, 0
	t.ring.evictAll(version)
	t.forgotten = t.ring.evicted
	for _, c := range t.chains {
		c.seqs.clear()
		c.evicted = t.ring.evicted
	}
}

// Restart begins a new history at the version of a list, because that lies before what was seen. All cursors get
// ErrEpoch.
func (t *Topic[O]) Restart(version uint64) {
	t.mu.Lock()
	t.generation++
	t.begin(version)
	t.wakeEveryone()
	t.mu.Unlock()
	t.signal()
}

// Append adds a change that came live. Its version must not be lower than any seen before.
//
// It may equal the last one: when a lease ends, etcd deletes all that was bound to it in one revision, and
// Kubernetes' Events end that way. So a client that was told a deletion claims everything before its version, until
// something later shows that there is no more of that revision. What resumes after the version itself (a Kubernetes
// watch does) is told all but the first again.
func (t *Topic[O]) Append(version uint64, change Change[O]) {
	now := time.Now()
	t.mu.Lock()
	e := EventAt(version, change)
	e.At = now
	if version == t.watermark && !t.open {
		e.ID = version // what came before it has shown that already
	}
	t.append(e)
	t.moveOn(version, true)
	t.open = e.ID < version
	t.evict(now)
	t.mu.Unlock()
	t.signal()
}

// AppendBurst adds the difference that a list found, in one piece. The list's version must not be lower than any seen
// before.
func (t *Topic[O]) AppendBurst(version uint64, changes []Change[O]) {
	now := time.Now()
	t.mu.Lock()
	complete := t.complete()
	for _, change := range changes {
		t.append(&Event[O]{Change: change, Pos: version, ID: complete, At: now, relistDiff: true, from: t.watermark})
		t.evict(now)
	}
	if version > t.watermark {
		t.gaps = append(t.gaps, gap{from: t.watermark, to: version, burst: Known{complete, version}})
		if len(t.gaps) > maxGaps {
			t.expireBefore(t.gaps[0].to)
		}
	}
	t.moveOn(version, len(changes) > 0)
	t.open = false
	t.mu.Unlock()
	if len(changes) > 0 {
		t.signal()
	}
}

// Progress records that nothing else happened up to a version, as a bookmark of the API server says.
func (t *Topic[O]) Progress(version uint64) {
	t.mu.Lock()
	if version > t.watermark {
		t.moveOn(version, false)
		t.open = false
	}
	t.mu.Unlock()
}

// complete is the version up to which everything has been appended.
func (t *Topic[O]) complete() uint64 {
	if t.open {
		return t.watermark - 1
	}
	return t.watermark
}

// Notify wakes all readers although nothing was appended, because something else changed that their clients are told.
func (t *Topic[O]) Notify() {
	t.mu.Lock()
	t.wakeEveryone()
	t.mu.Unlock()
	t.signal()
}

// append puts an event at the end of the ring and of its namespace's chain, and notes which readers to wake.
func (t *Topic[O]) append(event *Event[O]) {
	if event.tie, event.part = event.Pos == t.watermark, 1; event.tie {
		event.part = t.part + 1
	}
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

// evict drops the oldest events until the topic is within its bounds. The newest event stays even if it alone exceeds
// the bound on bytes. Otherwise each such event would overtake even the readers that keep up.
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

// expireBefore makes every position before a version too old, and forgets the gaps that end by it.
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

// Stats are a topic's figures, for metrics and for the debug pages.
type Stats struct {
	Events    int       // kept
	Bytes     int64     // that the objects of the events occupy
	Oldest    time.Time // when the oldest event was appended; zero if there is none
	Evicted   uint64    // since the start
	Watermark uint64    // everything up to this version has been appended
	Waiting   int       // registrations of readers that wait; a reader of several namespaces has one in each
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
