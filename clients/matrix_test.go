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

// TestClientMatrix runs real clients while the gateway's streams end of age, while it crashes, is drained, and forgets
// their positions, with objects changing all the time. Whatever happens, each client's map must be the cluster's state
// in the end; and what each client did on the way must be what docs/clients.md says.
func TestClientMatrix(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	facts := map[string]*facts{}
	for _, c := range m.clients {
		facts[c.key] = newFacts()
	}
	// The probes' answers come in while the rest runs: "it does not try again" takes time to be seen.
	asked := m.ask(t)
	stop := m.namespace.churn(t, 50)

	for _, phase := range []struct {
		name  string
		do    func(t *testing.T)
		check func(tally) error
	}{
		// The streams are asked for from a position that another cluster has given, so they begin with a reset. Later
		// on, the client's own position must count, not the address.
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

// config is the gateway's. Its clients are to come back soon, and many from one address are what the test is about.
func (m *matrix) config(maxAge, more string) string {
	return fmt.Sprintf("cors: {origins: [%q]}\ndrain: 2s\nstream: {retry: 200ms, perUser: 0, perAddress: 0, watchesPerUser: 0, maxAge: %s}\n%s",
		m.probes.server.URL, maxAge, more)
}

// catchUp is patient, so that a slow machine makes no difference.
const catchUp = "catchUp: {timeout: 60s}\n"

func (m *matrix) begin(t *testing.T) {
	m.gateway.start(t, m.config("1h", catchUp))
	for _, c := range m.clients {
		m.subjects = append(m.subjects, c.subscribe(t, m.gateway.url()+m.namespace.path()+"?lastEventId=elsewhere.7"))
	}
	m.probes.listen(t) // the clients have found nobody there by now
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

// age waits until each stream has ended of age twice. The client comes back to where it was, and gets what it missed.
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

// expire lets the gateway come back with a ring that is too short to reach back, and no leave to ask the API server for
// what is missing.
func (m *matrix) expire(t *testing.T) {
	m.gateway.kill()
	m.absence()
	m.gateway.start(t, m.config("1h", "ring: {events: 1000}\ncatchUp: {events: 1}\n"))
}

// absence is long enough that clients try in vain, and that objects change meanwhile.
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

// wentOn means that the clients came back with their position, and that it was honoured.
func (d tally) wentOn(goodbye string) error {
	if len(d.resets) > 0 || d.synced > 0 {
		return fmt.Errorf("%d snapshots, resets %v", d.synced, d.resets)
	}
	return d.saw(goodbye)
}
