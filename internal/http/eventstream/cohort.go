package eventstream

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/coding"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/stream"
)

// A cohort is sessions that are idle, alike, and at the same place. What there is next is read, framed and encoded once for all of them,
// and what is left for each is a write.
//
// A session joins when it becomes idle. Whatever concerns it alone wakes it as ever: something that is due, other permissions, a
// client that leaves or does not take all of a batch at once. Then it leaves, and goes on by itself from the place to which the
// cohort has brought it. So only what is next of the one source of healthy streams is told by cohorts, and everything else by
// sessions. If the source has something to tell that is no batch (a reset, an end), all members are woken, and find out themselves.
//
// A member is not told twice, nor is anything left out: a batch leads from one place to another, and is sent only to those who stand at
// the first. The cohort takes each for the moment of the write. Whom it cannot take is just served by somebody else, and is woken, to leave.
type cohort struct {
	attention
	waiting
	hub     *Hub
	kin     *kin
	source  Alike
	encoder serverSentEvents
	out     frames
	names   []string       // of the source
	claims  []stream.Claim // scratch
	id      []byte         // scratch
	alarm   entry          // rings when the source is due
	task    *budget.Task   // in which it is served
	cut     bool           // the source was stopped, as enough was collected
	since   Place          // from where what is next is the same as from where the source stands
	batch   *batch         // that is being sent; nil: none

	// Guarded by kin.mu.
	members []*session
	reached *step // where the source stands
	over    bool
	turns   int // how often it was queued
}

// step is a place, and what was sent until there.
type step struct {
	place Place
	sent  *sent
}

// sent is what a cohort has sent at a moment since its beginning.
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
	kept          bool      // the piece is not the cohort's alone any more
	known         time.Time // since when the oldest event of it is known
	more          bool      // there is more behind it
}

const (
	// mostMembers is how many sessions a cohort has at most, so that several workers can serve those that are many.
	mostMembers = 256
	// membersAtOnce is how many are written to in one turn of a worker, which takes less than a slice.
	membersAtOnce = 64
)

// membership is a session's place in a cohort. It belongs to whoever owns the session, but for the index.
type membership struct {
	kin    *kin    // those that are like it; nil: it is not known, or it is like nobody
	cohort *cohort // nil: it is in none
	joined *sent
	at     *step     // to where the cohort has brought it
	due    time.Time // when it has to be woken
	index  int       // among the members; guarded by kin.mu
}

// kins are all sessions that are like others, or may be.
type kins struct {
	together atomic.Int64 // sessions in cohorts

	mu  sync.Mutex
	all map[kinship]*kin
}

// kinship is what sessions have in common that are alike.
type kinship struct {
	likeness    any // of their sources
	name, epoch string
	coding      *coding.Coding
}

// kin are the sessions of one kinship.
type kin struct {
	kinship
	sessions int // guarded by kins.mu

	mu      sync.Mutex
	cohorts []*cohort
	many    bool // there has been more than one session
}

func (k *kins) join(of kinship) *kin {
	k.mu.Lock()
	defer k.mu.Unlock()
	found := k.all[of]
	if found == nil {
		if k.all == nil {
			k.all = map[kinship]*kin{}
		}
		found = &kin{kinship: of}
		k.all[of] = found
	}
	if found.sessions++; found.sessions > 1 {
		found.mu.Lock()
		found.many = true
		found.mu.Unlock()
	}
	return found
}

func (k *kins) leave(left *kin) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if left.sessions--; left.sessions == 0 {
		delete(k.all, left.kinship)
	}
}

// joinOthers lets a session that is about to be idle be told what is next together with others, if there are any like it. It has
// to be served by itself when it is due.
func (ss *session) joinOthers(due time.Time) {
	source, like := ss.alike()
	if !like {
		return
	}
	likeness := source.Likeness()
	if likeness == nil {
		return
	}
	m := &ss.member
	if of := (kinship{likeness, source.Name(), ss.epochs[0], ss.out.coding}); m.kin == nil || m.kin.kinship != of {
		ss.leaveOthers()
		m.kin = ss.hub.kins.join(of)
	}
	if m.kin.add(ss, source, due) {
		ss.hub.kins.together.Add(1)
		source.Rest()
	}
}

// alike is the source that others may have as well.
func (ss *session) alike() (source Alike, is bool) {
	if !ss.parks || len(ss.sources) != 1 || !ss.begun() || ss.out.buf != nil || ss.bookmarkDue || slices.Contains(ss.behind, true) {
		return nil, false
	}
	if _, is = ss.encoder.(*serverSentEvents); is {
		source, is = ss.sources[0].(Alike)
	}
	return source, is
}

// add makes a session a member of a cohort, and is false if there is none for it.
func (k *kin) add(ss *session, source Alike, due time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.many {
		return false
	}
	place := source.Place()
	var with *cohort
	room := false
	for _, c := range k.cohorts {
		if len(c.members) == mostMembers {
			continue
		}
		room = true
		// What comes behind this place, the cohort has not read.
		if order, ok := place.Compare(c.reached.place); ok && order >= 0 {
			with = c
			break
		}
	}
	switch {
	case with == nil && room:
		return false // they are further on, and so is the session soon, or the other way round
	case with == nil:
		with = newCohort(ss, k, source)
	}
	sent := with.reached.sent
	ss.member = membership{kin: k, cohort: with, joined: sent, at: &step{place, sent}, due: due, index: len(with.members)}
	with.members = append(with.members, ss)
	return true
}

// newCohort returns a cohort without members that is about to be served. The lock of its kin is held.
func newCohort(ss *session, k *kin, source Alike) *cohort {
	c := &cohort{
		hub: ss.hub, kin: k, source: source.Fork(), encoder: serverSentEvents{memory: ss.hub.opts.Memory},
		out: frames{coding: ss.out.coding, body: coding.Begun()}, names: []string{source.Name()}, claims: make([]stream.Claim, 1), alarm: entry{index: -1},
		waiting: waiting{line: ss.line},
	}
	c.alarm.wake = c.Wake
	c.since = c.source.Place()
	c.reached = &step{c.since, &sent{body: c.out.body}}
	k.cohorts = append(k.cohorts, c)
	c.hub.workers.push(c) // so that its source wakes it from then on
	return c
}

// leaveCohort has a session go on by itself from where its cohort has brought it.
func (ss *session) leaveCohort() {
	m := &ss.member
	c := m.cohort
	if c == nil {
		return
	}
	c.remove(ss)
	ss.hub.kins.together.Add(-1)
	if until := m.at.sent; until != m.joined {
		ss.out.events += until.events - m.joined.events
		ss.out.bytes += until.bytes - m.joined.bytes
		ss.counted = counted{ss.out.events, ss.out.bytes} // the cohort has counted them
		ss.out.body.Follow(m.joined.body, until.body)
		ss.out.sentAt = until.at
	}
	ss.sources[0].(Alike).Resume(m.at.place)
	ss.member = membership{kin: m.kin}
}

// leaveOthers says that nobody is like a session any more.
func (ss *session) leaveOthers() {
	ss.leaveCohort()
	if k := ss.member.kin; k != nil {
		ss.member.kin = nil
		ss.hub.kins.leave(k)
	}
}

// remove takes a member out. A cohort without any ends.
func (c *cohort) remove(ss *session) {
	k := c.kin
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
		k.cohorts = slices.DeleteFunc(k.cohorts, func(other *cohort) bool { return other == c })
	}
	over := c.over
	k.mu.Unlock()
	if over {
		if c.take() {
			c.close()
		} else {
			c.Wake() // whoever serves it will see that it is over
		}
	}
}

// disband has each member find out by itself what there is to tell.
func (c *cohort) disband() {
	k := c.kin
	k.mu.Lock()
	members := c.members
	c.members, c.over = nil, true
	k.cohorts = slices.DeleteFunc(k.cohorts, func(other *cohort) bool { return other == c })
	k.mu.Unlock()
	for _, ss := range members {
		ss.Wake()
	}
}

// close ends a cohort that is over. Its owner calls it.
func (c *cohort) close() {
	c.state.Store(stateOver)
	c.hub.alarm.remove(&c.alarm)
	c.source.Close()
}

// Wake implements stream.Waiter: there may be something to tell.
func (c *cohort) Wake() {
	if c.woken() {
		c.queue()
	}
}

// queue arranges that the cohort is served, in the turn of a member's user. If cohorts had turns of their own, whoever has streams in many of
// them would have as many turns. If it were always the same member's, all would wait behind that user's other streams.
func (c *cohort) queue() {
	var lines [8]*line
	n := 0
	c.kin.mu.Lock()
	for ; n < min(len(lines), len(c.members)); n++ {
		lines[n] = c.members[(c.turns+n)%len(c.members)].line
	}
	c.turns += n
	c.kin.mu.Unlock()
	if n == 0 { // it is over
		c.hub.workers.push(c)
		return
	}
	c.hub.workers.pushAmong(c, lines[:n])
}

// work serves the cohort for a worker: it reads a batch, or goes on sending one.
func (c *cohort) work(task *budget.Task) (long bool) {
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
	c.kin.mu.Lock()
	over := c.over
	c.kin.mu.Unlock()
	switch {
	case over:
		c.close()
	case again || !c.idle():
		c.queue()
	}
	return long
}

// recover disbands a cohort whose serving panicked.
func (c *cohort) recover() {
	cause := recover()
	if cause == nil {
		return
	}
	c.hub.opts.Log.Error("panic", "cause", cause, "stack", string(debug.Stack()))
	c.disband()
	c.close()
}

// read makes a batch of what is next. It reports whether there is more to be read now.
func (c *cohort) read() (more bool) {
	c.kin.mu.Lock()
	members, payer := len(c.members), ""
	if members > 0 {
		payer = c.members[0].id.Payer()
	}
	c.kin.mu.Unlock()
	if members == 0 {
		return false
	}
	c.encoder.payer, c.out.body.Payer, c.cut = payer, payer, false
	c.source.For(payer)
	events, bytes := c.out.events, c.out.bytes
	progress := c.source.Read(c.hub.serving, c)
	if progress.Missed != "" || progress.Outcome != GoOn && !c.cut {
		c.disband()
		return false
	}
	if due := c.source.Due(); !due.IsZero() {
		c.hub.alarm.set(&c.alarm, due)
	}
	more = progress.More || c.cut
	to := &step{c.source.Place(), c.reached.sent}
	if c.out.buf != nil {
		c.out.pack(conn.Chunks{})
		c.batch = &batch{
			first: c.since, last: c.reached.place, to: to, events: c.out.events - events, bytes: c.out.bytes - bytes, piece: c.out.rest,
			known: progress.At, more: more,
		}
		c.since, to.sent = to.place, &sent{c.out.events, c.out.bytes, c.out.body, c.out.sentAt}
	}
	c.kin.mu.Lock()
	defer c.kin.mu.Unlock()
	c.reached = to
	if c.batch != nil {
		c.batch.left = slices.Clone(c.members)
	}
	return more
}

// send writes the batch to some of those who are left. It reports whether there is more to do.
func (c *cohort) send() (more bool) {
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
	if !b.more && c.source.Likeness() != c.kin.likeness { // it has told something by which its members are others now
		c.disband()
	}
	return b.more
}

// give sends a batch to a member.
func (c *cohort) give(ss *session, b *batch) {
	if !ss.take() {
		ss.Wake() // it may be about to be idle, and to have looked already
		return
	}
	defer ss.recover()
	m := &ss.member
	if m.cohort != c { // it has left since
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

// tell sends a member a batch.
func (ss *session) tell(b *batch) {
	n, err := ss.out.to.Send(b.piece, 0, nil)
	b.told++
	ss.member.at = b.to
	if err == nil && n == len(b.piece) {
		if !b.known.IsZero() {
			ss.hub.metrics.latency.Observe(time.Since(b.known).Seconds())
		}
		ss.rest()
		return
	}
	ss.leaveCohort()
	if err != nil {
		ss.out.failed = true
		ss.finish(endLeft)
		return
	}
	b.kept = true
	ss.out.take(b.piece[n:])
	ss.hub.goroutines.Go(func() { ss.run(MustWait) })
}

// rest makes a session idle again that was taken.
func (ss *session) rest() {
	if !ss.idle() {
		ss.beServed()
	}
}

// The cohort is the Sink of its source.

// Emit implements Sink.
func (c *cohort) Emit(prefix, name, data string) {
	c.emit(message{kind: msgEvent, prefix: prefix, name: name, data: data})
}

// Tell implements Sink.
func (c *cohort) Tell(prefix string, change stream.Type, o, base *cluster.Object, view *View) {
	c.emit(message{kind: msgChange, prefix: prefix, change: change, object: o, base: base, view: view})
}

// emit collects a message, with the members' position behind it.
func (c *cohort) emit(m message) {
	c.claims[0] = c.source.Claim()
	c.claims[0].Epoch = c.kin.epoch
	c.id = stream.AppendID(c.id[:0], c.names, c.claims)
	m.id = c.id
	c.out.add(&c.encoder, m)
}

// Relay implements Sink: what was collected is sent before there is more.
func (c *cohort) Relay() Outcome {
	if !c.out.full() {
		return GoOn
	}
	c.cut = true
	return MustWait
}

// Step implements Sink.
func (c *cohort) Step(bytes int) bool { return c.task.Step(bytes) }

// Prompt implements Sink.
func (c *cohort) Prompt() bool { return true }

func (c *cohort) aside(do func(context.Context)) context.CancelFunc { return c.hub.aside(do) }

func (c *cohort) relists() bool          { return false }
func (c *cohort) outgrowing(func() bool) {}
