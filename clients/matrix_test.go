package clients

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the clients did into docs/clients.md")

// matrix is one run of all clients.
type matrix struct {
	gateway   *gateway
	namespace *namespace
	probes    *probes
	clients   []client
	subjects  subjects // one for each client
}

// TestClientMatrix runs real clients while objects change all the time. The gateway's streams end because of their
// age; the gateway crashes, is drained, and forgets positions. In the end each client's map must be the cluster's
// state, and what each client did on the way must be what docs/clients.md says.
func TestClientMatrix(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	facts := map[string]*facts{}
	for _, c := range m.clients {
		facts[c.key] = newFacts()
	}
	// The probes run beside the rest, since it takes time to see that a client does not try again.
	asked := m.ask(t)
	stop := m.namespace.churn(t, 50)

	for _, phase := range []struct {
		name  string
		do    func(t *testing.T)
		check func(tally) error
	}{
		// The streams' addresses have a position of another cluster, so they begin with a reset. Later on, the
		// client's own position must count, not that in the address.
		{"begin", m.begin, func(d tally) error { return d.wasReset("epoch") }},
		{"kill", m.kill, nil},
		{"large", m.large(t, facts), nil},
		{"drain", m.drain, func(d tally) error { return d.saw("drain") }},
		{"age", m.age, func(d tally) error { return d.wentOn("age") }},
		{"expire", m.expire, func(d tally) error { return d.wasReset("expired") }},
	} {
		before := m.subjects.tallies()
		began := time.Now()
		phase.do(t)
		m.settle(t)
		for _, s := range m.subjects {
			did := s.tallied().since(before[s.client.key])
			t.Logf("%-6s %-26s %+v", phase.name, s.client.key, did)
			if phase.check != nil {
				if err := phase.check(did); err != nil {
					t.Errorf("%s: %s: %v", phase.name, s.client.key, err)
				}
			}
			facts[s.client.key].phases[phase.name] = did
		}
		t.Logf("%s took %.1f s", phase.name, time.Since(began).Seconds())
	}
	stop()
	m.settle(t)
	m.subjects.compare(t, m.namespace)
	for name, answers := range asked.answers(t) {
		facts[name].answers = answers
	}
	if !t.Failed() {
		checkTable(t, m.clients, facts)
	}
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	s := onStage(t)
	m := &matrix{gateway: s.newGateway(t), namespace: s.newNamespace(t, "matrix"), probes: startProbes(t)}
	inChromium, inNode, inGo := chromiumDriver(t, m.probes.page()), npmDriver(t), goDriver(t)
	m.clients = []client{
		{"Chromium's EventSource", "chromium", inChromium},
		{"undici (Node's own)", "undici", inNode},
		{"eventsource", "eventsource", inNode},
		{"eventsource", "eventsource-4", inNode},
		{"eventsource", "eventsource-2", inNode},
		{"eventsource-client", "eventsource-client", inNode},
		{"launchdarkly-eventsource", "launchdarkly-eventsource", inNode},
		{"event-source-polyfill", "event-source-polyfill", inChromium},
		{"r3labs/sse", "r3labs/sse", inGo},
		{"launchdarkly/eventsource", "launchdarkly/eventsource", inGo},
		{"tmaxmax/go-sse", "tmaxmax/go-sse", inGo},
	}
	return m
}

// config returns the gateway's configuration. Clients are to come back soon, and many come from one address. What has not
// ended in the last fifth of the drain is broken off, which clients tell from a planned end: on a slow machine, too, there must be
// time for that.
func (m *matrix) config(maxAge, more string) string {
	return fmt.Sprintf("cors: {origins: [%q]}\ndrain: 10s\nstream: {retry: 200ms, perUser: 0, perAddress: 0, watchesPerUser: 0, maxAge: %s}\n%s",
		m.probes.server.URL, maxAge, more)
}

// catchUp has a long time-out, so that a slow machine makes no difference.
const catchUp = "catchUp: {timeout: 60s}\n"

func (m *matrix) begin(t *testing.T) {
	m.gateway.start(t, m.config("1h", catchUp))
	for _, c := range m.clients {
		m.subjects = append(m.subjects, c.subscribe(t, m.gateway.url()+m.namespace.path()+"?lastEventId=elsewhere.7"))
	}
	m.probes.listen(t) // by now the clients have found nothing there
}

func (m *matrix) kill(t *testing.T) {
	m.gateway.kill()
	m.absence()
	m.gateway.start(t, m.config("1h", catchUp))
}

func (m *matrix) drain(t *testing.T) {
	m.gateway.drain()
	m.absence()
	m.gateway.start(t, m.config("3s", catchUp))
}

// age waits until each stream has twice ended because of its age. Each client comes back to its position, and gets
// what it missed.
func (m *matrix) age(t *testing.T) {
	before := m.subjects.tallies()
	eventually(t, "the streams end of age", func() error {
		for _, s := range m.subjects {
			if did := s.tallied().since(before[s.client.key]); did.byes["age"] < 2 || did.opens < 2 {
				return fmt.Errorf("%s: %+v", s.client.key, did)
			}
		}
		return m.subjects.revive()
	})
}

// expire restarts the gateway with a ring that does not reach back far enough, and does not let it ask the API server
// for the missing history.
func (m *matrix) expire(t *testing.T) {
	m.gateway.kill()
	m.absence()
	m.gateway.start(t, m.config("1h", "ring: {events: 1000}\ncatchUp: {events: 1}\n"))
}

// absence is long enough for clients to try in vain, and for objects to change.
func (m *matrix) absence() { time.Sleep(time.Second) }

func (m *matrix) settle(t *testing.T) {
	t.Helper()
	m.subjects.settle(t, m.namespace)
}

func (d tally) wasReset(reason string) error {
	if d.resets[reason] == 0 {
		return fmt.Errorf("no reset %q, but %v", reason, d.resets)
	}
	return nil
}

func (d tally) saw(goodbye string) error {
	if d.byes[goodbye] == 0 {
		return fmt.Errorf("no goodbye %q, but %v", goodbye, d.byes)
	}
	return nil
}

// wentOn returns nil if the clients came back with their positions, and the gateway went on from there.
func (d tally) wentOn(goodbye string) error {
	if len(d.resets) > 0 || d.synced > 0 {
		return fmt.Errorf("%d snapshots, resets %v", d.synced, d.resets)
	}
	return d.saw(goodbye)
}
