package eventstream

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/coding"
	"github.com/kubecast/kubecast/internal/http/scheduler"
	"github.com/kubecast/kubecast/internal/stream"
)

// group is a broadcast group: sessions that are idle, have the same group key, and stand at the
// same place. What is next is read, framed and encoded once for all of them. What is left for each
// member is a write.
//
// These must hold:
//
//  1. Only batches of the one source of a healthy stream are told by groups. Everything else is told by the session itself: what is
//     due, another visibility, the end of a stream, and a client that does not take a whole batch at once.
//  2. A session joins when it becomes idle, and only at a place that the group has not passed.
//  3. Whatever concerns one session alone wakes it. It then leaves the group, and goes on from the place to which the group has
//     brought it. Only for its heartbeat it may stay, if the group has nothing for it on the way.
//  4. No member is told a batch twice, and none is left out. A batch leads from one place to another, and is sent only to members
//     that stand at the first, or between the two.
//  5. The group owns a member only for the moment of the write. A member that somebody else owns is woken, and so leaves.
//  6. If the source has something to tell that is no batch (a reset, an end), the group disbands. Each member is woken, and finds
//     out itself.
type group struct {
	scheduler.RunState
	scheduler.QueueEntry
	hub     *Hub
	peers   *peers
	source  Shareable
	encoder serverSentEvents
	out     frames
	names   []string             // of the source
	claims  []stream.Claim       // scratch
	id      []byte               // scratch
	alarm   scheduler.AlarmEntry // rings when the source is due
	task    *budget.Task         // in which it is served
	cut     bool                 // the source was stopped, as enough was collected
	since   Place                // the place behind the last batch: nothing was to be told from there on
	batch   *batch               // that is being sent; nil: none

	// Guarded by peers.mu.
	members []*session
	reached *step // where the source stands
	over    bool
	turns   int // of which member the run queue comes first when it is queued next
}

// step is a place, and what was sent until there.
type step struct {
	place Place
	sent  *sent
}

// sent is what a group has sent since it began, up to a moment.
type sent struct {
	events, bytes int64
	body          coding.Body
	at            time.Time
}

// batch is what leads from one place to another.
type batch struct {
	first, last   Place // whoever stands between them, these included, is sent it
	to            *step
	events, bytes int64 // bytes before they were encoded
	piece         []byte
	left          []*session
	told          int
	kept          bool      // a member that has not taken all of the piece keeps it, so it is not reused
	known         time.Time // since when the oldest event of it is known
	more          bool      // there is more behind it
}

const (
	// mostMembers is how many sessions a group has at most, so that several workers can serve those that are many.
	mostMembers = 256
	// membersAtOnce is how many are written to in one turn of a worker, which takes less than a slice.
	membersAtOnce = 64
)

// groupIndex finds the sessions that may share, by their group key.
type groupIndex struct {
	together atomic.Int64 // members of groups

	mu  sync.Mutex
	all map[groupKey]*peers
}

// groupKey is what sessions have in common that are told the same.
type groupKey struct {
	shareKey    any // of their sources
	name, epoch string
	coding      *coding.Coding
	framing     framing
}

// peers are the sessions with one group key.
type peers struct {
	groupKey
	sessions int // guarded by groupIndex.mu

	mu     sync.Mutex
	groups []*group
	many   bool // there has been more than one session
}

func (k *groupIndex) join(of groupKey) *peers {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.all[of]
	if found == nil {
		if k.all == nil {
			k.all = map[groupKey]*peers{}
		}
		found = &peers{groupKey: of}
		k.all[of] = found
	}
	if found.sessions++; found.sessions > 1 {
		found.mu.Lock()
		found.many = true
		found.mu.Unlock()
	}
	return found
}

func (k *groupIndex) leave(left *peers) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if left.sessions--; left.sessions == 0 {
		delete(k.all, left.groupKey)
	}
}

// add makes a session a member of a group, and is false if there is none for it.
func (k *peers) add(ss *session, source Shareable, due time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.many {
		return false
	}
	place := source.Place()
	var with *group
	room := false
	for _, c := range k.groups {
		if len(c.members) == mostMembers {
			continue
		}
		room = true
		// What comes behind this place, the group has not read.
		if order, ok := place.Compare(c.reached.place); ok && order >= 0 {
			with = c
			break
		}
	}
	switch {
	case with == nil && room:
		// The groups are further on, as the session soon is; or their places cannot be compared.
		return false
	case with == nil:
		with = newGroup(ss, k, source)
	}
	sent := with.reached.sent
	ss.member = membership{peers: k, group: with, joined: sent, at: &step{place, sent}, due: due, index: len(with.members)}
	with.members = append(with.members, ss)
	return true
}

// newGroup returns a group without members that is about to be served. The lock of its peers is held.
func newGroup(ss *session, k *peers, source Shareable) *group {
	c := &group{
		hub: ss.hub, peers: k, source: source.Clone(), encoder: serverSentEvents{memory: ss.hub.opts.Memory},
		out: frames{coding: ss.out.coding, body: coding.Begun()}, names: []string{source.Name()}, claims: []stream.Claim{{Epoch: k.epoch}},
		QueueEntry: scheduler.QueueEntry{Queue: ss.Queue},
	}
	c.alarm.Wake = c.Wake
	c.since = c.source.Place()
	c.reached = &step{c.since, &sent{body: c.out.body}}
	k.groups = append(k.groups, c)
	c.hub.workers.Push(c) // so that its source wakes it from then on
	return c
}

// remove takes a member out. A group without any ends.
func (c *group) remove(ss *session) {
	k := c.peers
	k.mu.Lock()
	if c.over {
		k.mu.Unlock()
		return
	}
	last := len(c.members) - 1
	c.members[ss.member.index], c.members[last].member.index = c.members[last], ss.member.index
	c.members[last] = nil
	c.members = c.members[:last]
	if c.over = last == 0; c.over {
		k.groups = slices.DeleteFunc(k.groups, func(other *group) bool { return other == c })
	}
	over := c.over
	k.mu.Unlock()
	if over {
		if c.Take() {
			c.close()
		} else {
			c.Wake() // whoever serves it will see that it is over
		}
	}
}

// disband has each member find out by itself what there is to tell.
func (c *group) disband() {
	k := c.peers
	k.mu.Lock()
	members := c.members
	c.members, c.over = nil, true
	k.groups = slices.DeleteFunc(k.groups, func(other *group) bool { return other == c })
	k.mu.Unlock()
	for _, ss := range members {
		ss.Wake()
	}
}

// close ends a group that is over. Its owner calls it.
func (c *group) close() {
	c.End()
	c.hub.alarm.Remove(&c.alarm)
	c.source.Close()
}

// Wake implements stream.Waiter: there may be something to tell.
func (c *group) Wake() {
	if c.Woken() {
		c.enqueue()
	}
}

// enqueue arranges that the group is served, in the turn of a member's user. If groups had turns of
// their own, a user with streams in many groups would have as many turns. If it were always the
// same member's turn, all members would wait behind that user's other streams.
func (c *group) enqueue() {
	var queues [8]*scheduler.RunQueue
	n := 0
	c.peers.mu.Lock()
	for ; n < min(len(queues), len(c.members)); n++ {
		queues[n] = c.members[(c.turns+n)%len(c.members)].Queue
	}
	c.turns += n
	c.peers.mu.Unlock()
	if n == 0 { // it is over
		c.hub.workers.Push(c)
		return
	}
	c.hub.workers.PushAmong(c, queues[:n])
}

// Work serves the group for a worker: it reads a batch, or goes on sending one.
func (c *group) Work(task *budget.Task) (long bool) {
	defer c.recover()
	*task = budget.Slice()
	c.task = task
	again := false
	if c.batch == nil {
		again = c.read()
	}
	if c.batch != nil {
		again = c.send()
	}
	c.task = nil
	long = task.Err() != nil
	c.peers.mu.Lock()
	over := c.over
	c.peers.mu.Unlock()
	switch {
	case over:
		c.close()
	case again || !c.Idle():
		c.enqueue()
	}
	return long
}

// recover disbands a group whose serving panicked.
func (c *group) recover() {
	cause := recover()
	if cause == nil {
		return
	}
	c.hub.opts.Log.Error("panic", "error", cause, "stack", string(debug.Stack()))
	c.disband()
	c.close()
}

// read makes a batch of what is next. It reports whether there is more to be read now.
func (c *group) read() (more bool) {
	c.peers.mu.Lock()
	members, quotaOwner := len(c.members), ""
	if members > 0 {
		quotaOwner = c.members[0].id.QuotaOwner()
	}
	c.peers.mu.Unlock()
	if members == 0 {
		return false
	}
	c.encoder.quotaOwner, c.out.body.QuotaOwner, c.cut = quotaOwner, quotaOwner, false
	c.source.ChargeTo(quotaOwner)
	events, bytes := c.out.events, c.out.bytes
	progress := c.source.Read(c.hub.serving, c)
	if progress.Missed != "" || progress.Outcome != GoOn && !c.cut {
		c.disband()
		return false
	}
	if !progress.Due.IsZero() {
		c.hub.alarm.Set(&c.alarm, progress.Due)
	}
	more = progress.More || c.cut
	to := &step{c.source.Place(), c.reached.sent}
	if c.out.buf != nil {
		c.out.pack(c.peers.framing)
		c.batch = &batch{
			first: c.since, last: c.reached.place, to: to, events: c.out.events - events, bytes: c.out.bytes - bytes, piece: c.out.rest,
			known: progress.At, more: more,
		}
		c.since, to.sent = to.place, &sent{c.out.events, c.out.bytes, c.out.body, c.out.sentAt}
	}
	c.peers.mu.Lock()
	defer c.peers.mu.Unlock()
	c.reached = to
	if c.batch != nil {
		c.batch.left = slices.Clone(c.members)
	}
	return more
}

// send writes the batch to some of those who are left. It reports whether there is more to do.
func (c *group) send() (more bool) {
	b := c.batch
	n := min(membersAtOnce, len(b.left))
	for _, ss := range b.left[:n] {
		c.give(ss, b)
	}
	if b.left = b.left[n:]; len(b.left) > 0 {
		return true
	}
	c.batch = nil
	c.hub.metrics.events.Add(float64(int64(b.told) * b.events))
	c.hub.metrics.bytes.Add(float64(int64(b.told) * b.bytes))
	if c.out.coding != nil && b.told > 1 {
		c.out.coding.Again(b.told-1, int(b.bytes), len(b.piece))
	}
	if c.out.lent = b.kept; c.out.buf != nil {
		c.out.drop()
	}
	if !b.more && c.source.ShareKey() != c.peers.shareKey { // what it has told gives its members another key
		c.disband()
	}
	return b.more
}

// give sends a batch to a member.
func (c *group) give(ss *session, b *batch) {
	if !ss.Take() {
		ss.Wake() // it may be about to be idle, and to have looked already
		return
	}
	defer ss.recover()
	m := &ss.member
	if m.group != c { // it has left since
		ss.rest()
		return
	}
	if b.leads(m.at.place) {
		if !time.Now().Before(m.due) {
			ss.beServed()
			return
		}
		ss.tell(b)
		return
	}
	if order, ok := m.at.place.Compare(b.to.place); ok && order >= 0 && m.at.sent == m.joined {
		// It knew that already when it joined, and was told nothing since.
		m.at, m.joined = &step{m.at.place, b.to.sent}, b.to.sent
		ss.rest()
		return
	}
	ss.beServed()
}

// leads reports whether a batch is what is next at a place.
func (b *batch) leads(at Place) bool {
	if at == b.first || at == b.last { // nearly all, and quicker
		return true
	}
	first, ok := at.Compare(b.first)
	last, is := at.Compare(b.last)
	return ok && is && first >= 0 && last <= 0
}

// A group is the Sink of its source.

// Emit implements Sink: the claim is the position that its members have then.
func (c *group) Emit(e Event, claim stream.Claim) {
	claim.Epoch = c.peers.epoch
	c.claims[0] = claim
	c.id = stream.AppendID(c.id[:0], c.names, c.claims)
	e.id = c.id
	c.out.add(&c.encoder, e)
}

// Relay implements Sink: what was collected is sent before there is more.
func (c *group) Relay() Outcome {
	if !c.out.full() {
		return GoOn
	}
	c.cut = true
	return WouldBlock
}

func (c *group) Step(bytes int) bool { return c.task.Step(bytes) }

func (c *group) NonBlocking() bool { return true }

func (c *group) Spawn(do func(context.Context)) context.CancelFunc { return c.hub.aside(do) }

func (c *group) Outgrowing(func() bool) {}
