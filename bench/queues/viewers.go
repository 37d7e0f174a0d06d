//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// config lifts the limits that would count all viewers as one; all else is the default.
const config = `auth: {anonymous: true}
authorizer: {mode: sar}
requests: {perUser: 0, perSecond: 0}
stream: {perUser: 0, perAddress: 0, watchesPerUser: 0}
`

// looking is one way in which clients look at queues.
type looking struct {
	name  string
	users []load.User
	key   string // of their tokens; "": they have none, and may see all
}

// looked is what one of them costs.
type looked struct {
	measure.Sample
	cpu              float64 // processors
	memory           process.Memory
	requests, orders int64
}

// viewers measures what it costs that many look at a queue, beside one, and nobody.
func (b *bench) viewers() error {
	same := func(n int, path func(int) string) (all []load.User) {
		for i := range n {
			all = append(all, load.User{Path: path(i)})
		}
		return all
	}
	whole := func(int) string { return "/queues/whole" }
	ways := []looking{
		{"nobody", nil, ""}, {"one", same(1, whole), ""}, {"all, the same", same(b.clients, whole), ""},
		{"all, 50 narrowings", same(b.clients, func(i int) string { return fmt.Sprintf("/queues/whole?limit=%d", 51+i%50) }), ""},
	}
	keys, err := os.MkdirTemp("", "kubecast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(keys)
	for _, of := range []struct {
		name   string
		groups func(int) []string
	}{{"users who see all", func(int) []string { return []string{chiefs} }}, {"users of 10 teams", ofOneTeam}, {"users, each of other teams", ofSomeTeams}} {
		users, key, err := signed(keys, b.clients, of.groups)
		if err != nil {
			return err
		}
		ways = append(ways, looking{of.name, users, key})
	}
	var names []string
	by := map[string]looking{}
	for _, w := range ways {
		names, by[w.name] = append(names, w.name), w
	}
	found, err := measure.InTurn(b.rounds, names, func(name string) (looked, error) { return b.look(by[name]) })
	if err != nil {
		return err
	}
	t := figures.Table{
		Title:  fmt.Sprintf("a queue of %d jobs that changes %g times a second, and %d who look at it; %d rounds in turn, medians", b.jobs, b.rate, b.clients, b.rounds),
		Header: []any{"who looks", "gateway's CPUs", "MiB", "peak MiB", "MB/s", "late p50 ms", "p99 ms", "requests/s", "of them for the order", "waited × CPU"},
	}
	for _, name := range names {
		of := func(read func(looked) float64) float64 { return figures.MedianOf(found[name], read) }
		late := func(q float64) any {
			if len(by[name].users) == 0 {
				return ""
			}
			return of(func(l looked) float64 { return measure.Latency(q)(l.Sample) })
		}
		per := func(n func(looked) int64) float64 {
			return of(func(l looked) float64 { return float64(n(l)) / l.Took.Seconds() })
		}
		t.Add(name, of(func(l looked) float64 { return l.cpu }), of(func(l looked) float64 { return float64(l.memory.Now) / (1 << 20) }),
			of(func(l looked) float64 { return float64(l.memory.Peak) / (1 << 20) }), of(func(l looked) float64 { return float64(l.Bytes) / 1e6 / l.Took.Seconds() }), late(0.5), late(0.99),
			per(func(l looked) int64 { return l.requests }), per(func(l looked) int64 { return l.orders }), of(func(l looked) float64 { return l.Contention() }))
	}
	t.Note("how late: from a change in the API server until the client has read an event of the queue with it, or with a later one; each client is told every 250 ms at most")
	t.Note("users have tokens, and the cluster's roles say what they see: the jobs of all, those of one of 10 namespaces, or those of a set of these that nobody else has (up to 1,023 users)")
	t.Note("Kueue is imitated: its objects, and its visibility API, which answers at once")
	t.Print(b.out)
	return nil
}

// look measures a gateway of its own.
func (b *bench) look(way looking) (l looked, err error) {
	s := &measure.Server{Name: "gateway"}
	if s.Source, err = process.StartChild("apiserver"); err != nil {
		return l, err
	}
	defer s.Source.Kill()
	var address string
	if err := s.Source.Call("Start", b.jobs, &address); err != nil {
		return l, err
	}
	dir, err := os.MkdirTemp("", "kubecast-bench-")
	if err != nil {
		return l, err
	}
	defer os.RemoveAll(dir)
	kubeconfig, err := gateway.Kubeconfig(dir, "http://"+address)
	if err != nil {
		return l, err
	}
	of := config
	if way.key != "" {
		of = fmt.Sprintf(teamConfig, way.key)
	}
	g, err := gateway.Start(gateway.Options{Binary: b.gateway, Dir: dir, Config: of, Kubeconfig: kubeconfig})
	if err != nil {
		return l, err
	}
	defer g.Kill()
	s.Pid = g.Pid
	const group = "viewers"
	if len(way.users) > 0 {
		if err := b.Open(s, group, len(way.users), load.Target{Address: g.Address, Users: way.users}); err != nil {
			return l, err
		}
		defer func() {
			if closing := b.Close(group); err == nil {
				err = closing
			}
		}()
	}
	var before, after [2]int64
	if err := s.Source.Call("Asked", nil, &before); err != nil {
		return l, err
	}
	defer b.profiled(g, way.name)()
	what := source.Emit{Rate: b.rate, Count: b.changes}
	if len(way.users) > 0 {
		l.Sample, err = b.EmitTo(s, load.Begin{Group: group, Passed: time.Duration(float64(time.Second) / b.rate)}, len(way.users), what)
		b.Expect(way.name, "changes that viewers were not told", l.Missed())
	} else {
		l.Sample, err = b.unwatched(s, what)
	}
	if err != nil {
		return l, err
	}
	if err := s.Source.Call("Asked", nil, &after); err != nil {
		return l, err
	}
	l.cpu = l.ServerCPU.Seconds() / l.Took.Seconds()
	l.requests, l.orders = after[0]-before[0], after[1]-before[1]
	l.memory, err = process.ReadMemory(s.Pid)
	return l, err
}

// unwatched makes changes of which nobody is told.
func (b *bench) unwatched(s *measure.Server, what source.Emit) (l measure.Sample, err error) {
	before, err := process.CPU(s.Pid)
	if err != nil {
		return l, err
	}
	began := time.Now()
	if err := s.Source.Call("Emit", what, nil); err != nil {
		return l, err
	}
	after, err := process.CPU(s.Pid)
	l.ServerCPU, l.Took = after-before, time.Since(began)
	return l, err
}

// profiled takes a profile of the gateway's processor time, if that is wanted.
func (b *bench) profiled(g *gateway.Gateway, name string) (wait func()) {
	if b.profile == "" {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := os.MkdirAll(b.profile, 0o755)
		if err == nil {
			err = g.Save(fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(int(float64(b.changes)/b.rate), 1)), filepath.Join(b.profile, name+".cpu"))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "profile:", err)
		}
	}()
	return func() { <-done }
}
