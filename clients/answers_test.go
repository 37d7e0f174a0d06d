package clients

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// asking is one stream of each client from each probe.
type asking struct {
	probes *probes
	began  time.Time
	asked  []*question
}

// question is one client with one answer.
type question struct {
	client client
	answer string

	mu     sync.Mutex
	id     int
	closed bool
	torn   bool // it was given a part of an event
}

// ask opens a stream from each client to each probe.
func (m *matrix) ask(t *testing.T) *asking {
	t.Helper()
	a := &asking{probes: m.probes, began: time.Now()}
	answers := []string{refused, torn, cut}
	for _, status := range statuses {
		answers = append(answers, fmt.Sprintf("%s-%d", atConnect, status), fmt.Sprintf("%s-%d", afterward, status))
	}
	for _, c := range m.clients {
		for _, answer := range answers {
			q := &question{client: c, answer: answer}
			a.asked = append(a.asked, q)
			q.mu.Lock()
			id, err := c.driver.open(command{Client: c.key, URL: m.probes.url(answer, c.key), Raised: true}, q.hear)
			q.id = id
			q.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		a.closeAnswered(done)
	}()
	t.Cleanup(func() { close(done); <-stopped })
	return a
}

func (q *question) hear(r report) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.torn = q.torn || r.Type == "event" && r.Data == tornData
}

// enough is how many requests show that a client tries again.
func (q *question) enough() int {
	switch {
	case q.answer == refused:
		return 1
	case strings.HasPrefix(q.answer, afterward):
		return 3 // the stream, the status, another try
	}
	return 2
}

// closeAnswered closes the streams of clients that are known to try again; they would go on as long as the test.
func (a *asking) closeAnswered(done <-chan struct{}) {
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticks.C:
		}
		for _, q := range a.asked {
			// Two more, so that all reports of what went before have come.
			if len(a.probes.requests(q.answer, q.client.key)) >= q.enough()+2 {
				q.close()
			}
		}
	}
}

func (q *question) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		_ = q.client.driver.close(q.id) // fails only if the driver has ended, which other streams report
	}
}

// slowest is how long the most patient client waits before it tries again.
const slowest = 12 * time.Second

// answers returns what each client did with each answer, by the client's name.
func (a *asking) answers(t *testing.T) map[string]map[string]string {
	t.Helper()
	time.Sleep(time.Until(a.began.Add(slowest)))
	all := map[string]map[string]string{}
	for _, q := range a.asked {
		name := q.client.key
		if all[name] == nil {
			all[name] = map[string]string{}
		}
		requests := a.probes.requests(q.answer, name)
		q.mu.Lock()
		all[name][q.answer] = q.says(requests)
		q.mu.Unlock()
		if strings.HasPrefix(q.answer, afterward) && len(requests) > 1 {
			all[name]["position"] = requests[1].says()
			all[name]["codings"] = cmp.Or(requests[1].codings, "nothing")
		}
	}
	return all
}

// says puts what the client did into words. The caller holds q.mu.
func (q *question) says(requests []hit) string {
	switch {
	case q.answer != torn && q.answer != cut:
		if len(requests) >= q.enough() {
			return "retries"
		}
		return "stops"
	case len(requests) < 2:
		return "does not come back"
	case q.torn:
		return "delivered"
	case requests[1].header == lastTorn, requests[1].query == lastTorn:
		return "its id is kept"
	}
	return "dropped"
}

func (h hit) says() string {
	switch {
	case h.header == lastWhole:
		return "header"
	case h.query == lastWhole:
		return "query"
	}
	return "not at all"
}
