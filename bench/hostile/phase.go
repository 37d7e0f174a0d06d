//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// result is the effect of one means in one round.
type result struct {
	without phase // no attack
	control phase // the attack goes to a Sink
	with    phase
	hostile Attacked // of the attack on the gateway
}

// phase is the result of one measurement.
type phase struct {
	events, lists figures.Histogram // the good users'
	missed        uint64
	memory        int64   // the gateway's, at its peak
	cpu           float64 // percent of one processor
	asked         float64 // requests to the API server, per second
	foreign       float64 // percent of one processor that others than this benchmark's processes took
}

// disturbed reports whether others took so much that delays may be theirs.
func (r result) disturbed() bool {
	return max(r.without.foreign, r.control.foreign, r.with.foreign) > tolerated
}

const tolerated = 15

// stage is a gateway with all that belongs to it.
type stage struct {
	*bench
	api, load *process.Child
	beside    []*process.Child // that run now, too
	gateway   *gateway.Gateway
}

// settle is how long an attack goes on before the measurement.
const settle = time.Second

// measure measures one means, on a new gateway: without the attack, with it, and at last with an attack on a Sink that
// gives as much as the gateway gave.
func (b *bench) measure(m means) (r result, err error) {
	s := &stage{bench: b}
	defer s.stop()
	if err := s.start(m.name); err != nil {
		return r, err
	}
	if err := forgetPeak(s.gateway.Pid); err != nil {
		return r, err
	}
	if r.without, err = s.measure(""); err != nil {
		return r, fmt.Errorf("without the attack: %w", err)
	}
	if r.with, r.hostile, err = s.attacked(m, s.gateway.Address, m.name, nil); err != nil {
		return r, err
	}
	sink, err := process.StartChild("sink")
	if err != nil {
		return r, err
	}
	defer sink.Kill()
	seconds := b.duration.Seconds()
	traffic := Traffic{
		Answers: float64(r.hostile.Answered+r.hostile.Refused) / seconds, Bytes: float64(r.hostile.Bytes) / seconds, Streams: m.streams,
	}
	var address string
	if err := sink.Call("Start", traffic, &address); err != nil {
		return r, err
	}
	if r.control, _, err = s.attacked(m, address, "", sink); err != nil {
		return r, fmt.Errorf("control: %w", err)
	}
	return r, nil
}

// attacked measures while an address is attacked. It returns what the attack came to during the measurement.
func (s *stage) attacked(m means, address, profile string, sink *process.Child) (p phase, hostile Attacked, err error) {
	attacker, err := process.StartChild("attacker")
	if err != nil {
		return p, hostile, err
	}
	defer attacker.Kill()
	if err := forgetPeak(s.gateway.Pid); err != nil {
		return p, hostile, err
	}
	if err := attacker.Call("Begin", Attack{Means: m.name, Address: address, Token: s.bad}, nil); err != nil {
		return p, hostile, err
	}
	if m.changes && sink == nil {
		if err := s.api.Call("ChangeCycle", true, nil); err != nil {
			return p, hostile, err
		}
		defer func() { err = errors.Join(err, s.api.Call("ChangeCycle", false, nil)) }()
	}
	time.Sleep(min(settle, s.duration/2))
	var before, after Attacked
	if err := attacker.Call("Count", nil, &before); err != nil {
		return p, hostile, err
	}
	s.beside = []*process.Child{attacker}
	if sink != nil {
		s.beside = append(s.beside, sink)
	}
	if p, err = s.measure(profile); err != nil {
		return p, hostile, err
	}
	if err := attacker.Call("Count", nil, &after); err != nil {
		return p, hostile, err
	}
	return p, after.since(before), attacker.Call("End", nil, nil)
}

func (s *stage) start(name string) (err error) {
	if s.api, err = process.StartChild("apiserver"); err != nil {
		return err
	}
	var address string
	if err := s.api.Call("Start", nil, &address); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.dir, name+"-")
	if err != nil {
		return err
	}
	kubeconfig, err := gateway.Kubeconfig(dir, "http://"+address)
	if err != nil {
		return err
	}
	config, err := s.config(dir)
	if err != nil {
		return err
	}
	if s.gateway, err = gateway.Start(gateway.Options{
		Binary: s.bench.gateway, Dir: dir, Config: config, Kubeconfig: kubeconfig,
	}); err != nil {
		return err
	}
	if s.load, err = process.StartChild("load"); err != nil {
		return err
	}
	target := load.Target{Address: s.gateway.Address, Users: s.good}
	if err := s.load.Call("Open", load.Open{Group: "good", Clients: users, Target: target}, nil); err != nil {
		return err
	}
	return s.api.Call("Emit", source.Emit{Rate: 2 * s.rate, Count: 2 * users}, nil)
}

func (s *stage) stop() {
	for _, child := range []*process.Child{s.load, s.api} {
		if child != nil {
			defer child.Kill()
		}
	}
	if s.gateway != nil {
		s.gateway.Kill() // its clients are gone
	}
}

// measure makes events for the good users, who also list. With a profile's name, the gateway's profiles are taken.
func (s *stage) measure(profile string) (p phase, err error) {
	var next uint64
	if err := s.api.Call("Next", nil, &next); err != nil {
		return p, err
	}
	if err := s.load.Call("Begin", load.Begin{Group: "good", Seq: next}, nil); err != nil {
		return p, err
	}
	profiled := s.saveProfile(profile)
	before, err := s.used()
	if err != nil {
		return p, err
	}
	began := time.Now()
	if err := s.load.Call("Poll", Poll{Address: s.gateway.Address, Users: s.good, History: s.history != "none"}, nil); err != nil {
		return p, err
	}
	rounds := max(1, int(s.rate*s.duration.Seconds()/users))
	if err := s.api.Call("Emit", source.Emit{Rate: s.rate, Count: rounds * users}, nil); err != nil {
		return p, err
	}
	if err := s.load.Call("Polled", nil, &p.lists); err != nil {
		return p, err
	}
	after, err := s.used()
	if err != nil {
		return p, err
	}
	took := time.Since(began)
	var stats load.Stats
	if err := s.load.Call("Await", load.Await{Group: "good", Until: load.Delivered, Count: uint64(rounds), Quiet: quiet}, &stats); err != nil {
		return p, err
	}
	memory, err := process.ReadMemory(s.gateway.Pid)
	if err != nil {
		return p, err
	}
	p.events, p.missed, p.memory = stats.Latency, uint64(rounds*users)-stats.Delivered, memory.Peak
	p.cpu = 100 * (after.cpu - before.cpu).Seconds() / took.Seconds()
	p.asked = float64(after.asked-before.asked) / took.Seconds()
	p.foreign = 100 * ((after.machine - after.ours) - (before.machine - before.ours)).Seconds() / took.Seconds()
	return p, <-profiled
}

// quiet is how long nothing must come before the missing events count as missed.
const quiet = 5 * time.Second

type used struct {
	cpu           time.Duration // by the gateway
	ours, machine time.Duration // by this benchmark's processes, and by all
	asked         int64
}

func (s *stage) used() (u used, err error) {
	if u.cpu, err = process.CPU(s.gateway.Pid); err != nil {
		return u, err
	}
	u.ours = u.cpu
	pids := []int{os.Getpid(), s.api.Pid, s.load.Pid}
	for _, child := range s.beside {
		pids = append(pids, child.Pid)
	}
	for _, pid := range pids {
		cpu, err := process.CPU(pid)
		if err != nil {
			return u, err
		}
		u.ours += cpu
	}
	if u.machine, err = process.Machine(); err != nil {
		return u, err
	}
	return u, s.api.Call("Asked", nil, &u.asked)
}

// forgetPeak makes the kernel reset a process's peak of memory (proc(5), clear_refs).
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// saveProfile takes profiles of the gateway while it is measured.
func (s *stage) saveProfile(name string) <-chan error {
	done := make(chan error, 1)
	if s.profile == "" || name == "" {
		done <- nil
		return done
	}
	go func() {
		if s.trace {
			done <- s.gateway.Save("/debug/pprof/trace?seconds=1", filepath.Join(s.profile, name+".trace"))
			return
		}
		seconds := max(1, int(s.duration.Seconds())-1)
		err := s.gateway.Save(fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds), filepath.Join(s.profile, name+".cpu"))
		if err == nil {
			err = s.gateway.Save("/debug/pprof/heap", filepath.Join(s.profile, name+".heap"))
		}
		done <- err
	}()
	return done
}
