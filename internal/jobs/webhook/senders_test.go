package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

func TestMessagesArriveOnceInTheOrderOfTheirJob(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	rec := newReceiver(t, nil)
	senders, _ := p.start(Target{Name: "a", URL: rec.URL})
	for _, uid := range numbered("u", 50) {
		p.write(uid, jobs.Running, jobs.Failed, jobs.Running, jobs.Succeeded)
		senders.Wake()
	}
	until(t, "nothing waits", func() bool { n, _ := p.waiting("a"); return n == 0 })
	to, ids := map[string][]string{}, map[string]bool{}
	for _, a := range rec.arrivals() {
		to[a.uid] = append(to[a.uid], a.to)
		ids[a.id] = true
		if a.header.Get("Content-Type") != "application/cloudevents+json" || a.header.Get("Webhook-Signature") != "" || a.header.Get("Webhook-Timestamp") == "" {
			t.Fatalf("%v", a.header)
		}
	}
	for uid, states := range to {
		if !slices.Equal(states, []string{"Failed", "Succeeded"}) {
			t.Errorf("%s: %v", uid, states)
		}
	}
	if len(ids) != 100 || len(rec.arrivals()) != 100 {
		t.Errorf("%d ids in %d requests, want 100", len(ids), len(rec.arrivals()))
	}
}

// However a target behaves, the others get theirs as if it did not exist: measured beside a gateway
// that has none but the good one.
func TestNoTargetDelaysAnother(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	wait := func(r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}
	status := func(code int, headers ...string) func(http.ResponseWriter, *http.Request, arrival) {
		return func(w http.ResponseWriter, _ *http.Request, _ arrival) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
		}
	}
	bad := map[string]func(http.ResponseWriter, *http.Request, arrival){
		"hangs": func(_ http.ResponseWriter, r *http.Request, _ arrival) { wait(r) },
		"hangs-in-its-body": func(w http.ResponseWriter, r *http.Request, _ arrival) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			wait(r)
		},
		"redirects": status(http.StatusFound, "Location", "http://127.0.0.1:1/"),
		"is-gone":   status(http.StatusGone),
		"is-busy":   status(http.StatusTooManyRequests, "Retry-After", "3600"),
		"talks": func(w http.ResponseWriter, _ *http.Request, _ arrival) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(strings.Repeat("x", 1<<20)))
		},
		"breaks-off": func(w http.ResponseWriter, _ *http.Request, _ arrival) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		},
	}
	measure := func(withBad bool) time.Duration {
		all := []outbox.Route{{Name: "good"}}
		good := newReceiver(t, nil)
		targets := []Target{{Name: "good", URL: good.URL}}
		if withBad {
			for name, answer := range bad {
				all = append(all, outbox.Route{Name: name})
				targets = append(targets, Target{Name: name, URL: newReceiver(t, answer).URL})
			}
			all = append(all, outbox.Route{Name: "away"})
			targets = append(targets, Target{Name: "away", URL: "http://127.0.0.1:1/"})
		}
		p := newHistory(t, all...)
		senders, stop := p.start(targets...)
		defer stop()
		written := map[string]time.Time{}
		const jobCount = 40
		began := time.Now()
		for _, uid := range numbered("u", jobCount) {
			p.write(uid, jobs.Failed)
			written[uid] = time.Now()
			senders.Wake()
			time.Sleep(5 * time.Millisecond)
		}
		t.Logf("%d transitions were written in %v", jobCount, time.Since(began))
		until(t, "the good one has all", func() bool { return len(good.arrivals()) == jobCount })
		var took []time.Duration
		for _, a := range good.arrivals() {
			took = append(took, a.at.Sub(written[a.uid]))
		}
		slices.Sort(took)
		return took[jobCount/2]
	}
	alone, beside := measure(false), measure(true)
	t.Logf("median from the transition to the good target: %v alone, %v beside %d bad ones", alone, beside, len(bad)+1)
	// Beside others there are nine times as many rows to write. Whoever waits for one that hangs
	// waits for all of attemptWithin.
	if beside > 20*alone && beside > attemptWithin/3 {
		t.Errorf("%v beside bad targets, %v alone", beside, alone)
	}
}

func TestARefusedMessageDelaysOnlyItsOwnJob(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, a arrival) {
		if strings.HasPrefix(a.uid, "bad") {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	senders, _ := p.start(Target{Name: "a", URL: rec.URL, Concurrency: 2})
	for i, uid := range numbered("u", 20) {
		p.write(fmt.Sprintf("bad%d", i), jobs.Failed, jobs.Running, jobs.Succeeded)
		p.write(uid, jobs.Failed)
	}
	senders.Wake()
	until(t, "only the bad ones wait", func() bool { n, _ := p.waiting("a"); return n == 40 })
	tried := map[string]int{}
	for _, a := range rec.arrivals() {
		if tried[a.uid+a.to]++; strings.HasPrefix(a.uid, "bad") && a.to == "Succeeded" {
			t.Errorf("%s was told before what came before", a.uid)
		}
	}
	for of, n := range tried {
		if n != 1 { // the next attempt comes after five seconds or so
			t.Errorf("%s was sent %d times", of, n)
		}
	}
}

func TestAMessageThatIsRefusedToTheEndIsADeadLetterAndTheNextGoesOn(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	refuse := true
	rec := newReceiver(t, nil)
	rec.answer = func(w http.ResponseWriter, _ *http.Request, a arrival) {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		if refuse && a.to == "Failed" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte("\xff\x00no <b>"))
		}
	}
	senders, _ := p.start(Target{Name: "a", URL: rec.URL})
	p.write("u", jobs.Failed, jobs.Running, jobs.Succeeded)
	for n := range len(schedule) + 1 {
		until(t, "it was tried", func() bool { return len(rec.arrivals()) > n })
		until(t, "it was recorded", func() bool {
			m, err := p.store.Oldest(t.Context(), "a", outbox.OrderingKey{Log: p.log.ID, UID: "u"})
			if err != nil || m != nil && m.Attempts == n && m.Seq == 2 { // none: it is dead, and the next one has been sent as well
				return false
			}
			_, err = exec(p, "UPDATE outbox SET due = 1 WHERE due > 0") // the clock is put forward
			return err == nil
		})
	}
	until(t, "the next one arrived", func() bool { waiting, dead := p.waiting("a"); return waiting == 0 && dead == 1 })
	all := rec.arrivals()
	if last := all[len(all)-1]; last.to != "Succeeded" || len(all) != len(schedule)+2 {
		t.Errorf("%d requests, the last %s", len(all), last.to)
	}
	ids := map[string]bool{}
	for _, a := range all[:len(all)-1] {
		ids[a.id+string(a.body)] = true
	}
	if len(ids) != 1 {
		t.Errorf("the attempts had %d ids and bodies", len(ids))
	}
	dead, err := p.store.Dead(t.Context(), "a", 1)
	if err != nil || dead[0].Answer != "400 Bad Request:   no <b>" {
		t.Errorf("%v, %q", err, dead[0].Answer)
	}
	rec.mu.Lock()
	refuse = false
	rec.mu.Unlock()
	if _, err := p.store.Resend(t.Context(), "a", all[0].id, 0, 0); err != nil {
		t.Fatal(err)
	}
	senders.Wake()
	until(t, "the dead letter arrived", func() bool { waiting, dead := p.waiting("a"); return waiting == 0 && dead == 0 })
	if again := rec.arrivals(); again[len(again)-1].id != all[0].id || string(again[len(again)-1].body) != string(all[0].body) {
		t.Error("the dead letter became another message")
	}
}

func TestATargetThatIsGoneIsLeftAloneAlsoByOthers(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	status := http.StatusGone
	rec := newReceiver(t, nil)
	rec.answer = func(w http.ResponseWriter, _ *http.Request, _ arrival) {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		w.WriteHeader(status)
	}
	target := Target{Name: "a", URL: rec.URL, Concurrency: 1}
	_, stop := p.start(target)
	p.write("u1", jobs.Failed)
	off := func() bool {
		s, err := p.store.State(t.Context(), "a")
		return err == nil && s.Off != 0
	}
	until(t, "it is off", off)
	stop()
	rec.mu.Lock()
	status = http.StatusOK
	rec.mu.Unlock()
	senders, stop := p.start(target)
	p.write("u2", jobs.Failed)
	senders.Wake()
	time.Sleep(200 * time.Millisecond)
	if n := len(rec.arrivals()); n != 1 || !off() {
		t.Fatalf("%d requests, and off is %v", n, off())
	}
	if err := p.store.Enable(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	until(t, "all arrived after it was enabled", func() bool { n, _ := p.waiting("a"); return n == 0 })
	stop()
	if err := p.store.Record(t.Context(), nil, map[string]outbox.Switch{"a": {Off: 1}}); err != nil {
		t.Fatal(err)
	}
	p.write("u3", jobs.Failed)
	p.start(Target{Name: "a", URL: rec.URL + "/other"})
	until(t, "another URL switched it on", func() bool { n, _ := p.waiting("a"); return n == 0 })
}

func TestRetryAfterHoldsTheWholeTargetAndCostsNoAttempt(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	rec := newReceiver(t, nil)
	var free time.Time
	rec.answer = func(w http.ResponseWriter, _ *http.Request, _ arrival) {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		if free.IsZero() {
			free = time.Now().Add(time.Second)
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	for _, uid := range numbered("u", 10) {
		p.write(uid, jobs.Failed)
	}
	p.start(Target{Name: "a", URL: rec.URL, Concurrency: 1})
	until(t, "all arrived", func() bool { n, _ := p.waiting("a"); return n == 0 })
	all := rec.arrivals()
	for _, a := range all[1:] {
		if a.at.Before(free.Add(-100 * time.Millisecond)) {
			t.Errorf("sent %v too early", free.Sub(a.at))
		}
	}
	if len(all) != 11 {
		t.Errorf("%d requests", len(all))
	}
}

// What a killed sender has sent and not recorded is sent again, by another replica, with the same id.
func TestAnotherReplicaTakesOverAndNothingIsMissing(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	rec := newReceiver(t, nil)
	target := Target{Name: "a", URL: rec.URL}
	// A holder that was killed: its lease is left to run out.
	if _, err := p.store.Take(t.Context(), "a", "url", "killed", time.Second); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	one, stopOne := p.start(target)
	two, stopTwo := p.start(target)
	p.write("u1", jobs.Failed)
	until(t, "one of two took over", func() bool { return len(rec.arrivals()) == 1 })
	t.Logf("taken over within %v after a lease of 1 s", time.Since(began))
	sending := func(s *Senders) bool {
		s.targets[0].mu.Lock()
		defer s.targets[0].mu.Unlock()
		return s.targets[0].sending
	}
	if sending(one) == sending(two) {
		t.Errorf("sending: %v and %v", sending(one), sending(two))
	}
	if sending(two) {
		stopOne, stopTwo = stopTwo, stopOne
	}
	p.write("u2", jobs.Failed)
	until(t, "the second arrived", func() bool { return len(rec.arrivals()) == 2 })
	stopOne()
	began = time.Now()
	p.write("u3", jobs.Failed)
	until(t, "the other took over", func() bool { return len(rec.arrivals()) == 3 })
	if took := time.Since(began); took > quick.lease {
		t.Errorf("%v after a clean end: it waited for the lease", took)
	}
	stopTwo()
}

func TestWhatWasSentWhileTheDatabaseWasAwayIsSentAgainOrRecorded(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	rec := newReceiver(t, nil)
	rec.answer = func(http.ResponseWriter, *http.Request, arrival) {
		if len(rec.arrivals()) == 1 { // the outcome of this one cannot be recorded
			if _, err := exec(p, "ALTER TABLE outbox RENAME TO away"); err != nil {
				t.Error(err)
			}
		}
	}
	senders, _ := p.start(Target{Name: "a", URL: rec.URL})
	p.write("u1", jobs.Failed)
	senders.Wake()
	until(t, "it was sent", func() bool { return len(rec.arrivals()) == 1 })
	time.Sleep(100 * time.Millisecond)
	if _, err := exec(p, "ALTER TABLE away RENAME TO outbox"); err != nil {
		t.Fatal(err)
	}
	until(t, "it was recorded", func() bool { n, _ := p.waiting("a"); return n == 0 })
	p.write("u2", jobs.Failed)
	until(t, "the next arrived", func() bool { all := rec.arrivals(); return all[len(all)-1].uid == "u2" })
	for _, a := range rec.arrivals() {
		if a.uid == "u1" && a.id != rec.arrivals()[0].id {
			t.Error("two ids of one message")
		}
	}
}

// It is not held back, and with it all that follows of its job.
func TestWhatIsSentMayLackWhyItCame(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	p.write("u1", jobs.Running, jobs.Failed)
	if err := p.db.Transact(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE transitions SET cause = ?", "what a later release may write")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	rec := newReceiver(t, nil)
	p.start(Target{Name: "a", URL: rec.URL})
	until(t, "it is sent", func() bool { return len(rec.arrivals()) == 1 })
}

// The message was written before it was known why.
func TestWhatIsSentSaysWhyAsItIsKnownThen(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	p.write("u1", jobs.Running, jobs.Failed)
	oom := &jobs.Cause{Text: "trainer was OOM-killed (exit 137) on gpu-07", Reason: jobs.OOMKilled, Pods: 1}
	next, err := p.db.Write(t.Context(), p.log, store.Batch{To: p.log.Version, Causes: []store.KnownCause{{UID: "u1", Version: p.log.Version, To: jobs.Failed, Cause: oom}}})
	if err != nil {
		t.Fatal(err)
	}
	p.log = next
	rec := newReceiver(t, nil)
	p.start(Target{Name: "a", URL: rec.URL})
	until(t, "it is sent", func() bool { return len(rec.arrivals()) == 1 })
	if body := string(rec.arrivals()[0].body); strings.Count(body, oom.Text) != 2 {
		t.Errorf("the transition and the job say %s", body)
	}
}
