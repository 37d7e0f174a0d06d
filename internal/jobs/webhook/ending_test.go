package webhook

import (
	"net/http"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
)

// hang is an answer that never comes.
func hang(_ http.ResponseWriter, r *http.Request, _ arrival) { <-r.Context().Done() }

func TestAGatewayEndsThoughItsDatabaseIsAway(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	away := make(chan error, 1)
	rec := newReceiver(t, nil)
	rec.answer = func(w http.ResponseWriter, _ *http.Request, _ arrival) {
		if len(rec.arrivals()) == 1 {
			_, err := exec(p, "ALTER TABLE outbox RENAME TO away")
			away <- err
		}
		w.WriteHeader(http.StatusNoContent)
	}
	_, stop := p.start(Target{Name: "a", URL: rec.URL})
	p.write("u1", jobs.Failed)
	if err := <-away; err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		stop()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Error("it waits for its database")
	}
	if _, err := exec(p, "ALTER TABLE away RENAME TO outbox"); err != nil {
		t.Fatal(err)
	}
	<-ended
	if waiting, _ := p.waiting("a"); waiting != 1 {
		t.Errorf("%d messages wait; one was not recorded to be sent", waiting)
	}
}

func TestAnAttemptThatTheGatewayBreaksOffIsNoFailure(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	rec := newReceiver(t, hang)
	_, stop := p.start(Target{Name: "a", URL: rec.URL})
	p.write("u1", jobs.Failed)
	until(t, "it is being sent", func() bool { return len(rec.arrivals()) == 1 })
	stop()
	m, err := p.store.Oldest(t.Context(), "a", outbox.OrderingKey{Log: p.log.ID, UID: "u1"})
	if err != nil {
		t.Fatal(err)
	}
	if m == nil || m.Attempts != 0 || m.Due != 0 || m.Answer != "" {
		t.Errorf("%+v", m)
	}
}

// A renewal of a lease reads whether the target is on. Until it is written that the target is gone,
// it says what was before.
func TestATargetThatIsGoneStaysOffUntilThatIsWritten(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	k := &leaseRenewer{store: p.store, holder: "this", times: quick}
	if _, err := p.store.Take(t.Context(), "a", "url", k.holder, time.Minute); err != nil {
		t.Fatal(err)
	}
	of := &term{target: &target{Target: Target{Name: "a"}}}
	renew := func() {
		k.renew(t.Context(), map[*term]*lease{of: {time.Now(), func(err error) { t.Error(err) }}})
	}
	of.set(outbox.Switch{Off: 1, Reason: "410 Gone"})
	if renew(); !of.rests() {
		t.Error("it is on again by what the database said before")
	}
	s := &batcher{store: p.store, times: quick}
	if err := s.record([]*sentResult{{of: of.target, changes: true}}); err != nil {
		t.Fatal(err)
	}
	if renew(); !of.rests() {
		t.Error("it is on again though it is written that it is gone")
	}
	if err := p.store.Enable(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if renew(); of.rests() {
		t.Error("it stays off though an operator has switched it on")
	}
}

// What is due at once would be read again at each look, and stand before what can be sent.
func TestWhatIsBehindARefusedMessageIsNotDue(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ arrival) { w.WriteHeader(http.StatusBadRequest) })
	p.start(Target{Name: "a", URL: rec.URL})
	p.write("u1", jobs.Failed, jobs.Running, jobs.Failed, jobs.Running, jobs.Succeeded)
	until(t, "nothing is due", func() bool {
		jobList, _, err := p.store.Due(t.Context(), "a", "n", now(), outbox.MessageKey{}, 100)
		return err == nil && len(jobList) == 0
	})
	if waiting, _ := p.waiting("a"); waiting != 3 || len(rec.arrivals()) == 0 {
		t.Errorf("%d wait after %d attempts", waiting, len(rec.arrivals()))
	}
}
