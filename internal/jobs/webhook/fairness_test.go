package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/outbox"
)

// Whoever has many jobs end at once in a namespace keeps nobody else's messages waiting until all of theirs are sent.
func TestMessagesOfOneNamespaceDelayNoOthers(t *testing.T) {
	p := newHistory(t, outbox.Route{Name: "a"})
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ arrival) {
		time.Sleep(5 * time.Millisecond)
		w.WriteHeader(http.StatusNoContent)
	})
	const flood = 300
	for n := range flood {
		p.write(fmt.Sprintf("mallory-%d", n), jobs.Failed)
	}
	senders, _ := p.start(Target{Name: "a", URL: rec.URL})
	until(t, "the flood is being sent", func() bool { return len(rec.arrivals()) > 20 })
	before := len(rec.arrivals())
	for n := range 5 {
		p.write(fmt.Sprintf("good%d-0", n), jobs.Succeeded)
	}
	senders.Wake()
	good := func() (n int) {
		for _, a := range rec.arrivals() {
			if a.uid[:4] == "good" {
				n++
			}
		}
		return n
	}
	until(t, "the others' have come", func() bool { return good() == 5 })
	if behind := len(rec.arrivals()) - before; behind > flood/2 {
		t.Errorf("they came behind %d of another's", behind)
	}
}

func TestNamespacesTakeTurnsAndKeepTheirOrder(t *testing.T) {
	l := newRotation()
	push := func(namespace string, uids ...string) {
		for _, uid := range uids {
			job := outbox.OrderingKey{Log: 1, UID: namespace + uid}
			l.belongs(job, namespace)
			l.Push(job)
		}
	}
	push("a", "1", "2", "3", "4")
	push("b", "1")
	push("c", "1", "2")
	var got []string
	for l.Len() > 0 {
		got = append(got, l.Pop().UID)
	}
	if want := []string{"a1", "b1", "c1", "a2", "c2", "a3", "a4"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	l.Push(outbox.OrderingKey{Log: 1, UID: "b1"}) // it comes back into its line
	if _, waiting := l.share("b"); waiting != 1 {
		t.Errorf("%d wait", waiting)
	}
	for n := range 10 * knownMost {
		l.belongs(outbox.OrderingKey{Log: 2, UID: fmt.Sprint(n)}, "a")
	}
	if len(l.of) > 3*knownMost {
		t.Errorf("%d are remembered", len(l.of))
	}
}
