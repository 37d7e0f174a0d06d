package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
)

// TestTargetsAreReplacedWhileMessagesAreSent: each message of a target arrives once, at one of its
// URLs and in the order of its job, although the URL changes in the middle, and with an attempt
// under way. A target that stays is sent to without a break, one that is gone is not sent to, and
// one that comes is.
func TestTargetsAreReplacedWhileMessagesAreSent(t *testing.T) {
	const jobs = 15
	p := newHistory(t, outbox.Route{Name: "moves"}, outbox.Route{Name: "stays"}, outbox.Route{Name: "goes"}, outbox.Route{Name: "comes"})
	var busy atomic.Bool
	held, release := make(chan string, 1), make(chan struct{})
	before := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, a arrival) {
		if busy.CompareAndSwap(true, false) {
			held <- a.uid
			<-release
		}
		w.WriteHeader(http.StatusNoContent)
	})
	var old *target
	after := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ arrival) {
		select {
		case <-old.ended:
		default:
			t.Error("the new URL is sent to while an attempt at the old one is under way")
		}
		w.WriteHeader(http.StatusNoContent)
	})
	stays, goes, comes := newReceiver(t, nil), newReceiver(t, nil), newReceiver(t, nil)
	target := func(name string, at *receiver) Target { return Target{Name: name, URL: at.URL, Concurrency: 4} }
	senders, _ := p.start(target("moves", before), target("stays", stays), target("goes", goes))
	p.sent(senders, jobs, "a")
	until(t, "all targets have their lease", func() bool {
		return !slices.ContainsFunc(senders.Status(t.Context()), func(s Status) bool { return !s.Held })
	})
	old = senders.all()[0]
	kept := senders.all()[1]

	busy.Store(true)
	p.sent(senders, jobs, "b")
	underWay := <-held
	use, err := senders.Replace([]Target{target("stays", stays), target("moves", after), target("comes", comes)}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	use()
	p.sent(senders, jobs, "c")
	close(release)
	until(t, "nothing waits", func() bool {
		waiting := 0
		for _, name := range []string{"moves", "stays", "comes"} {
			n, _ := p.waiting(name)
			waiting += n
		}
		return waiting == 0
	})
	if senders.all()[0] != kept {
		t.Error("a target that stays was begun anew")
	}
	for what, all := range map[string][]arrival{"moves": append(before.arrivals(), after.arrivals()...), "stays": stays.arrivals(), "comes": comes.arrivals()} {
		seen := map[string][]string{}
		for _, a := range all {
			seen[a.uid] = append(seen[a.uid], a.to)
		}
		for uid, states := range seen {
			if uid == underWay { // it took longer than an attempt may at the end, and was made again
				states = slices.Compact(states)
			}
			if !slices.Equal(states, []string{"Failed", "Succeeded"}) {
				t.Errorf("%s is told %v of %s", what, states, uid)
			}
		}
		if len(seen) != 3*jobs {
			t.Errorf("%s is told of %d jobs, want %d", what, len(seen), 3*jobs)
		}
	}
	if len(after.arrivals()) == 0 {
		t.Error("nothing arrived at the new URL")
	}
	if ofC := slices.ContainsFunc(goes.arrivals(), func(a arrival) bool { return strings.HasPrefix(a.uid, "c-") }); ofC {
		t.Error("a target that is gone is sent to")
	}
	if _, err := senders.Replace([]Target{target("moves", after), {Name: "bad", URL: after.URL, Body: "1 +"}}, time.Hour); err == nil || !strings.Contains(err.Error(), "webhooks[1].body") {
		t.Errorf("a body that does not compile: %v", err)
	}
}

// sent has jobs end twice.
func (p *history) sent(senders *Senders, jobList int, prefix string) {
	for n := range jobList {
		p.write(fmt.Sprintf("%s-%03d", prefix, n), jobs.Running, jobs.Failed, jobs.Running, jobs.Succeeded)
		senders.Wake()
	}
}
