package eventstream

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/scheduler"
)

// own takes a session of which nothing is heard at the moment, and has its heartbeat due.
func (r *running) own(number uint64) *session {
	r.t.Helper()
	for _, ss := range r.hub.open.all() {
		if ss.number != number {
			continue
		}
		for end := time.Now().Add(patience); !ss.Take(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				r.t.Fatalf("session %d is never idle", number)
			}
		}
		ss.times.at(dueHeartbeat, time.Now())
		return ss
	}
	r.t.Fatalf("there is no session %d", number)
	return nil
}

// silent makes it seem that a session was told nothing for a while, as its group's last step says.
func (ss *session) silent() {
	ss.settle()
	ss.out.sentAt = time.Now().Add(-2 * ss.times.interval)
}

// TestMembersHaveTheirHeartbeatWhileTheyStay: if each heartbeat took a member out of its group and in again, idle streams
// would cost twice what they have to.
func TestMembersHaveTheirHeartbeatWhileTheyStay(t *testing.T) {
	r := run(t, func(c net.Conn) net.Conn { return c })
	clients := []*bufio.Reader{r.open(), r.open(), r.open()}
	r.awaitTogether(3)
	ss := r.own(3)
	c, before := ss.member.group, ss.out.bytes
	ss.silent()
	ss.times.in(dueBookmark, 48*time.Hour) // so that the next is the heartbeat
	done, outcome := ss.beat()
	if !done || outcome != GoOn || ss.member.group != c || r.hub.Stats().Together != 3 {
		t.Fatalf("done: %v, %v; it is a member: %v", done, outcome, ss.member.group == c)
	}
	if again, _ := ss.beat(); again {
		t.Error("it has another one at once")
	}
	if left := time.Until(ss.times.due[dueHeartbeat]); left < ss.times.interval/2 || left > ss.times.interval {
		t.Errorf("the next one is due in %v", left)
	}
	if sent := ss.out.bytes - before; sent < int64(len(": \n\n")) {
		t.Errorf("%d bytes are counted", sent)
	}
	ss.park()
	if ss.member.due != ss.times.next() {
		t.Error("its group does not know when it is due")
	}
	r.expect(clients[2], ": \n")
	r.api.Put("pods", "team-a/last")
	for _, client := range clients {
		r.expect(client, `"name":"last"`)
	}
}

// TestWhatAGroupTellsPutsItsMembersHeartbeatsOff, as all traffic does, and is counted once.
func TestWhatAGroupTellsPutsItsMembersHeartbeatsOff(t *testing.T) {
	r := run(t, func(c net.Conn) net.Conn { return c })
	clients := []*bufio.Reader{r.open(), r.open()}
	r.awaitTogether(2)
	var ss *session
	for n := 0; ; n++ {
		name := fmt.Sprint("told-", n)
		r.api.Put("pods", "team-a/"+name)
		for _, client := range clients {
			r.expect(client, name)
		}
		if ss = r.own(2); ss.member.group != nil && ss.member.at.sent != ss.member.joined && ss.isToldAll() {
			break
		}
		ss.beServed()
	}
	byGroup := ss.member.at.sent.bytes - ss.member.joined.bytes
	sent, counted := ss.out.bytes, testutil.ToFloat64(ss.hub.metrics.bytes)
	ss.out.sentAt = time.Now().Add(-2 * ss.times.interval)
	if done, outcome := ss.beat(); !done || outcome != GoOn {
		t.Fatalf("done: %v, %v", done, outcome)
	}
	if left := time.Until(ss.times.due[dueHeartbeat]); left < ss.times.interval/2 {
		t.Errorf("it is due in %v", left)
	}
	if told := ss.out.bytes - sent; told != byGroup {
		t.Errorf("%d bytes were sent, of which the group %d", told, byGroup)
	}
	if more := testutil.ToFloat64(ss.hub.metrics.bytes) - counted; more != 0 {
		t.Errorf("%v bytes are counted again", more)
	}
	ss.rest()
}

// TestMembersLeaveForWhatIsMoreThanAHeartbeat, which they would be told at their next heartbeat, or never.
func TestMembersLeaveForWhatIsMoreThanAHeartbeat(t *testing.T) {
	for name, more := range map[string]func(ss *session){
		"a bookmark is due":          func(ss *session) { ss.times.at(dueBookmark, time.Now()) },
		"the token ends":             func(ss *session) { ss.times.at(dueExpiry, time.Now()) },
		"the client has left":        func(ss *session) { ss.gone.Store(true) },
		"the token is revoked":       func(ss *session) { ss.revoked.Store(true) },
		"permissions have changed":   func(ss *session) { ss.permission.Tell(&permission.Answer{}) },
		"it moves to other replicas": func(ss *session) { ss.moves.Store(1) },
		"the server drains":          func(ss *session) { ss.hub.drain() },
		"its group is over":          func(ss *session) { ss.member.group.disband() },
		"a batch is on its way":      func(ss *session) { ss.member.group.reached = &step{ss.member.at.place, &sent{}} },
		"no heartbeat is due":        func(ss *session) { ss.times.in(dueHeartbeat, time.Hour) },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			r := run(t, func(c net.Conn) net.Conn { return c })
			r.open()
			r.open()
			r.awaitTogether(2)
			ss := r.own(2)
			ss.silent()
			more(ss)
			if done, _ := ss.beat(); done {
				t.Error("it stays as if that were all")
			}
			ss.beServed()
		})
	}
}

// A group with members of several users waits where it is served soonest, and not behind the first one's other streams.
func TestGroupWaitsInTheTurnOfAMemberWhoseUserHasTime(t *testing.T) {
	w := scheduler.NewWorkers()
	hub, peers := &Hub{workers: w}, &peers{}
	many, few := w.Join("many"), w.Join("few")
	of := func(queues ...*scheduler.RunQueue) *group {
		c := &group{hub: hub, peers: peers}
		for _, q := range queues {
			c.members = append(c.members, &session{QueueEntry: scheduler.QueueEntry{Queue: q}})
		}
		c.enqueue()
		return c
	}
	if first := of(many, many); first.Queue != many {
		t.Error("a group of one user's streams waits elsewhere")
	}
	if shared := of(many, few); shared.Queue != few {
		t.Error("a group of two users' streams waits behind the one who has another one")
	}
}
