package eventstream

import (
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/http/conn"
)

// membership is a session's place in a group. It belongs to whoever owns the session, but for the index.
type membership struct {
	peers  *peers // those with the same key; nil: the key is not known, or there is none
	group  *group // nil: it is in none
	joined *sent
	at     *step     // to where the group has brought it
	due    time.Time // when it has to be woken
	index  int       // among the members; guarded by peers.mu
}

// joinGroup makes a session that is about to be idle a member of a group, if it has peers. The
// session has to be served by itself when it is due.
func (ss *session) joinGroup(due time.Time) {
	source, like := ss.shareable()
	if !like {
		return
	}
	shareKey := source.ShareKey()
	if shareKey == nil {
		return
	}
	m := &ss.member
	if of := (groupKey{shareKey, source.Name(), ss.claims[0].Epoch, ss.out.coding, ss.framing()}); m.peers == nil || m.peers.groupKey != of {
		ss.leavePeers()
		m.peers = ss.hub.groupIndex.join(of)
	}
	if m.peers.add(ss, source, due) {
		ss.hub.groupIndex.together.Add(1)
		source.Suspend()
	}
}

// framing is what the session's connection needs around a piece.
func (ss *session) framing() framing {
	if ss.taken {
		return conn.Chunks{}
	}
	return conn.Unframed{}
}

// shareable is the session's source, if others may be told the same.
func (ss *session) shareable() (source Shareable, is bool) {
	if !ss.parks || len(ss.sources) != 1 || !ss.begun() || ss.out.buf != nil || ss.bookmarkDue || slices.Contains(ss.behind, true) {
		return nil, false
	}
	if _, is = ss.encoder.(*serverSentEvents); is {
		source, is = ss.sources[0].(Shareable)
	}
	return source, is
}

// leaveGroup has a session go on by itself from where its group has brought it.
func (ss *session) leaveGroup() {
	m := &ss.member
	c := m.group
	if c == nil {
		return
	}
	c.remove(ss)
	ss.hub.groupIndex.together.Add(-1)
	ss.settle()
	ss.moveTo(0, ss.sources[0].(Shareable).Seek(m.at.place))
	ss.dues[0] = time.Time{} // it is read next
	ss.member = membership{peers: m.peers}
}

// settle notes on the session what its group has sent to it since it joined, or since this was done last.
func (ss *session) settle() {
	m := &ss.member
	until := m.at.sent
	if until == m.joined {
		return
	}
	ss.out.events += until.events - m.joined.events
	ss.out.bytes += until.bytes - m.joined.bytes
	ss.counted = counted{ss.out.events, ss.out.bytes} // the group has counted them
	ss.out.body.Follow(m.joined.body, until.body)
	if until.at.After(ss.out.sentAt) {
		ss.out.sentAt = until.at
	}
	m.joined = until
}

// leavePeers leaves the group, and the sessions with the same key.
func (ss *session) leavePeers() {
	ss.leaveGroup()
	if k := ss.member.peers; k != nil {
		ss.member.peers = nil
		ss.hub.groupIndex.leave(k)
	}
}

// beat does what is due on a member of a group that can stay one, since that is its heartbeat alone. It is not done if
// the session may have been woken for anything else. Nearly all turns of idle streams are these, and leaving a group
// and joining it again costs as much as the write.
func (ss *session) beat() (done bool, outcome Outcome) {
	now := time.Now()
	if ss.member.group == nil || !ss.isDueAlone(dueHeartbeat, now) || !ss.isToldAll() {
		return false, GoOn
	}
	ss.settle()
	if outcome = ss.onTime(now); outcome == GoOn {
		outcome = ss.flush()
	}
	if outcome != GoOn {
		ss.leaveGroup()
	}
	return true, outcome
}

// isToldAll reports whether the session's group has nothing for it on the way, and is not over. Whatever it reads from
// now on, it offers to the session, or wakes it.
func (ss *session) isToldAll() bool {
	c := ss.member.group
	c.peers.mu.Lock()
	defer c.peers.mu.Unlock()
	return !c.over && ss.member.at.sent == c.reached.sent
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
	ss.leaveGroup()
	if err != nil {
		ss.out.failed = true
		ss.finish(ClientGone)
		return
	}
	b.kept = true
	ss.out.take(b.piece[n:], b.known)
	ss.hub.goroutines.Go(func() { ss.run(WouldBlock) })
}

// rest makes a session idle again that was taken.
func (ss *session) rest() {
	if !ss.Idle() {
		ss.beServed()
	}
}
