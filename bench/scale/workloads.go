//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// The project's own targets.
const (
	reachMemory = 8                // KiB a stream
	reachIdle   = 2.0              // % of a processor for 20,000 streams
	reachAll    = 3 * time.Second  // from an event until the last of all clients has it
	reachBack   = 30 * time.Second // from the end of an edge until its clients are back at others
)

// singles is how often one event to all is measured.
const singles = 5

// everything is a path of all objects that a user may see, from the next change on.
const path = "/api/v1/configmaps?watch=true&sendInitialEvents=false"

// floor measures servers of raw sockets.
func (b *bench) floor() error {
	m := &measured{bench: b, name: "floor", oneOf: 1}
	var servers []server
	for range b.sizes.edges {
		child, err := process.StartChild("floor")
		if err != nil {
			return err
		}
		defer child.Kill()
		s := server{target: load.Target{Path: "/"}}
		if err := child.Call("Start", nil, &s.target.Address); err != nil {
			return err
		}
		servers = append(servers, s)
		m.servers = append(m.servers, child.Pid)
		m.more = append(m.more, child)
	}
	m.source, m.more = m.more[0], m.more[1:]
	var err error
	if m.crowd, err = newCrowd(servers, b.streams); err != nil {
		return err
	}
	defer m.crowd.stop()
	title := fmt.Sprintf("%d clients of %d servers of raw sockets, each with one thread", b.streams, b.sizes.edges)
	return m.costs(title)
}

// edges measures edges whose users may see all objects, or only those of their own namespace, and then what they notice
// of faults.
func (b *bench) edges(all bool) (err error) {
	m := &measured{bench: b, name: "everything", oneOf: 1}
	title := fmt.Sprintf("%d browsers at %d edges of one core, each a user who may see everything", b.streams, b.sizes.edges)
	if !all {
		m.name, m.oneOf = "narrowed", namespaces
		title = fmt.Sprintf("%d browsers at %d edges of one core, each a user who may see one of %d namespaces", b.streams, b.sizes.edges, namespaces)
	}
	f, err := startFleet(filepath.Join(b.dir, m.name), b.binary, b.sizes.edges)
	if err != nil {
		return err
	}
	defer f.stop()
	m.source, m.core, m.edge = f.source, f.core.Pid, f.edges[0]
	servers := make([]server, b.sizes.edges)
	next := 0
	for i, g := range f.edges {
		m.servers = append(m.servers, g.Pid)
		servers[i].target = load.Target{Address: g.Address}
		for range share(b.streams, len(servers), i) {
			groups := []string{"platform"}
			if !all {
				groups = []string{teamOf(next)}
			}
			token, err := f.token(fmt.Sprintf("user-%06d", next), groups...)
			if err != nil {
				return err
			}
			servers[i].users = append(servers[i].users, load.User{Path: path, Token: token})
			next++
		}
	}
	alone, err := b.alone(f, servers)
	if err != nil {
		return err
	}
	if m.crowd, err = newCrowd(servers, b.streams); err != nil {
		return err
	}
	defer m.crowd.stop()
	if err := m.costs(title); err != nil {
		return err
	}
	b.save(f.edges[0], m.name, map[string]string{".heap": "/debug/pprof/heap?gc=1", ".metrics": "/metrics"})
	watches, err := f.watches()
	if err != nil {
		return err
	}
	if err := m.faults(f, title); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "  watches at the API server: %d with one browser at each edge, %d with all\n", alone, watches)
	if watches > alone {
		m.Expect(m.name, "watches more than with one browser at each edge", uint64(watches-alone))
	}
	return nil
}

// alone is how many watches the API server has for one browser at each edge, which also brings about what gateways cost once.
func (b *bench) alone(f *fleet, servers []server) (watches int64, err error) {
	first := make([]server, len(servers))
	for i, s := range servers {
		first[i] = server{target: s.target, users: s.users[:1]}
	}
	c, err := newCrowd(first, len(first))
	if err != nil {
		return 0, err
	}
	defer c.stop()
	if err := c.open(0); err != nil {
		return 0, err
	}
	if err := c.live(func() error { return f.source.Call("Emit", source.Emit{Count: namespaces}, nil) }); err != nil {
		return 0, err
	}
	return f.watches()
}

// costs measures and prints what clients cost that are told nothing, little and much.
func (m *measured) costs(title string) error {
	idle, err := m.open()
	if err != nil {
		return err
	}
	streams := float64(m.streams)
	memory, still := float64(idle.memory)/streams/1024, 100*idle.servers.Seconds()/m.settle.Seconds()/streams*20_000
	t := figures.Table{Title: title, Header: []any{"", "events/s each", "deliveries/s", "CPU µs/delivery", "core's CPU %", "API server's", "clients' µs",
		"p50 ms", "p99 ms", "p99.9 ms", "longest", "missed", "repeated"}}
	for _, rate := range []struct {
		perSecond float64
		each      int
	}{{0.1, m.slow}, {1, m.fast}} {
		s, err := m.during(rate.each, rate.perSecond, nil)
		if err != nil {
			return err
		}
		per := func(d time.Duration) float64 { return figures.Microseconds(d) / float64(max(s.Delivered, 1)) }
		at := func(q float64) float64 { return figures.Milliseconds(s.Latency.Quantile(q)) }
		t.Add(m.name, rate.perSecond, float64(s.Delivered)/s.took.Seconds(), per(s.servers), 100*s.core.Seconds()/s.took.Seconds(),
			100*s.source.Seconds()/s.took.Seconds(), per(s.clients), at(0.5), at(0.99), at(0.999), figures.Milliseconds(s.Latency.Max),
			s.missed(), s.Repeated+s.Disordered)
	}
	var last []float64
	for range singles {
		s, err := m.during(1, 0, nil)
		if err != nil {
			return err
		}
		last = append(last, s.Latency.Max.Seconds())
	}
	t.Note("a stream that is told nothing: %.1f KiB resident in its server, %.1f KiB of the kernel's for both ends, and for 20,000 of them %.2f %% of a processor",
		memory, float64(idle.kernel)/streams/1024, still)
	t.Note("one event to each client at once: the last has it after %.2f s (median of %d)", figures.Median(last), singles)
	if m.core != 0 {
		t.Reach("KiB a stream", memory, reachMemory)
		t.Reach("% of a processor for 20,000 idle streams", still, reachIdle)
		t.Reach("seconds until the last client has an event", figures.Median(last), reachAll.Seconds())
	}
	t.Print(m.out)
	return nil
}

// faults measures and prints what clients notice while the core is killed, the API server restarts, and an edge is killed,
// with an event a second for each.
func (m *measured) faults(f *fleet, title string) error {
	t := figures.Table{Title: title + ", of which each is told one event a second",
		Header: []any{"", "longest s", "all back s", "missed", "repeated", "resets"}}
	add := func(name string, s sample, back any) {
		t.Add(name, s.Latency.Max.Seconds(), back, s.missed(), s.Repeated+s.Disordered, s.Resets)
	}
	each := m.fast
	before := time.Duration(each) * time.Second / 6
	s, err := m.during(each, 1, func() error {
		time.Sleep(before)
		listen := f.core.Address
		f.core.Kill()
		err := f.startCore(listen)
		m.core = f.core.Pid
		return err
	})
	if err != nil {
		return err
	}
	add("the core is killed", s, "")

	if s, err = m.during(each, 1, func() error {
		time.Sleep(before)
		return f.source.Call("Restart", m.away, nil)
	}); err != nil {
		return err
	}
	add(fmt.Sprintf("the API server restarts, %s away", m.away), s, "")

	var killed time.Time
	m.servers = m.servers[1:]
	if s, err = m.during(each, 1, func() error {
		time.Sleep(before)
		killed = time.Now()
		f.edges[0].Kill()
		var addresses []string
		for _, g := range f.edges {
			addresses = append(addresses, g.Address)
		}
		return m.crowd.move(0, addresses, m.returning)
	}); err != nil {
		return err
	}
	back := s.LastLive.Sub(killed).Seconds()
	add("an edge is killed", s, back)
	t.Note("clients of a killed edge come back within %s, each with its position", m.returning)
	t.Reach("seconds until all clients of a killed edge are back", back, reachBack.Seconds())
	t.Print(m.out)
	return nil
}
