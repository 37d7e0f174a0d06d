package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
)

// work is a Runnable that has a name.
type work struct {
	QueueEntry
	name string
}

func (*work) Work(*budget.Task) bool { return false }

// While others have streams, one worker is left to them, however many streams of one user are woken.
func TestOneUserLeavesAWorkerToOthers(t *testing.T) {
	w := NewWorkers()
	w.total = 2
	w.Close() // so that nobody is waited for
	push := func(l *RunQueue) { w.Push(&work{QueueEntry: QueueEntry{Queue: l}}) }
	many := w.Join("many")
	push(many)
	push(many)
	if first, second := w.pop(nil, false), w.pop(nil, false); first == nil || second == nil {
		t.Fatal("a worker is idle, though all streams are those of one user")
	}
	few := w.Join("few")
	push(many)
	push(many)
	if w.pop(many, false) != nil {
		t.Fatal("two workers serve one user, and there is none left")
	}
	push(few)
	if ss := w.pop(nil, false); ss == nil || ss.entry().Queue != few {
		t.Fatal("the other user is not served")
	}
	if ss := w.pop(many, false); ss == nil || ss.entry().Queue != many { // as the only one now
		t.Fatal("who was to wait is forgotten")
	}
}

// A user who always has more to be told keeps a worker busy. Others do not wait until that worker has time.
func TestNobodyWaitsForALongTurn(t *testing.T) {
	w := NewWorkers()
	w.total, w.asleep = 2, 2
	w.helpAfter = time.Hour
	busy, other := w.Join("busy"), w.Join("other")
	push := func(l *RunQueue) { w.Push(&work{QueueEntry: QueueEntry{Queue: l}}) }
	push(busy)
	if w.asleep != 1 {
		t.Fatal("nobody was called")
	}
	w.pop(nil, false)
	push(other)
	if w.asleep != 1 {
		t.Error("a worker was called, though the first is soon done")
	}
	push(busy)
	w.pop(busy, true) // the other's, and busy's is next
	w.pop(other, false)
	push(other)
	if w.asleep != 0 {
		t.Error("one waits for another's long turn")
	}
	w.pop(busy, false)
	if w.long != 0 {
		t.Errorf("%d workers are within long turns, of those that serve nobody with long ones", w.long)
	}
}

// However many streams of one user are woken, those of another are served next.
func TestStreamsAreServedByUserInTurn(t *testing.T) {
	w := NewWorkers()
	push := func(l *RunQueue, path string) { w.Push(&work{QueueEntry{Queue: l}, path}) }
	many, few := w.Join("many"), w.Join("few")
	for i := range 100 {
		push(many, fmt.Sprint("many ", i))
	}
	push(few, "few 0")
	push(few, "few 1")
	w.Close() // so that nobody is waited for
	var order []string
	var served *RunQueue
	for range 102 {
		ss := w.pop(served, false)
		served = ss.entry().Queue
		order = append(order, ss.(*work).name)
	}
	if w.pop(served, false); served.served != 0 {
		t.Errorf("%d workers serve whom nobody serves", served.served)
	}
	if got := strings.Join(order[:5], ", "); got != "many 0, few 0, many 1, few 1, many 2" || order[101] != "many 99" || w.first != nil {
		t.Errorf("%s … %s", got, order[101])
	}
	w.Leave(many)
	w.Leave(few)
	if len(w.queues) != 0 {
		t.Errorf("%d queues are left", len(w.queues))
	}
}

// However many groups the streams of one user are in, they have one turn; and a group with many
// users' streams does not wait behind one user's.
func TestGroupsAreServedInTheTurnsOfTheirMembers(t *testing.T) {
	w := NewWorkers()
	w.total = 2
	w.Close() // so that nobody is waited for
	many, few := w.Join("many"), w.Join("few")
	for range 50 {
		w.PushAmong(&work{}, []*RunQueue{many, many})
	}
	shared := &work{}
	w.PushAmong(shared, []*RunQueue{many, few})
	if first, second := w.pop(nil, false), w.pop(nil, false); first.entry().Queue != many || second != Runnable(shared) {
		t.Errorf("behind one of the 50, %v is served", second)
	}
	if third := w.pop(few, false); third != nil { // the other worker serves many
		t.Error("all workers serve one user")
	}
	if w.first != nil {
		t.Error("somebody else waits")
	}
}
