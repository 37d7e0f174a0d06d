//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// result is the effect of one means.
type result struct {
	means         means
	without, with phase
	hostile       Attacked
}

// phase is the result of one measurement.
type phase struct {
	events, lists figures.Histogram // the good users'
	missed        uint64
	memory        int64   // the gateway's, at its peak
	cpu           float64 // percent of one processor
	asked         float64 // requests to the API server, per second
}

// stage is a gateway with all that belongs to it.
type stage struct {
	*bench
	api, load *process.Child
	gateway   *gateway.Gateway
}

// settle is how long an attack goes on before the measurement.
const settle = time.Second

// measure measures one means, on a new gateway.
func (b *bench) measure(m means) (r result, err error) {
	s := &stage{bench: b}
	defer s.stop()
	if err := s.start(m.name); err != nil {
		return r, err
	}
	r.means = m
	if r.without, err = s.measure(); err != nil {
		return r, fmt.Errorf("without the attack: %w", err)
	}
	attacker, err := process.StartChild("attacker")
	if err != nil {
		return r, err
	}
	defer attacker.Kill()
	if err := attacker.Call("Begin", Attack{Means: m.name, Address: s.gateway.Address, Token: b.bad}, nil); err != nil {
		return r, err
	}
	time.Sleep(min(settle, b.duration/2))
	profiled := s.saveProfile(m.name)
	if r.with, err = s.measure(); err != nil {
		return r, err
	}
	if err := <-profiled; err != nil {
		return r, err
	}
	return r, attacker.Call("End", nil, &r.hostile)
}

func (s *stage) start(name string) (err error) {
	if s.api, err = process.StartChild("apiserver"); err != nil {
		return err
	}
	var address string
	if err := s.api.Call("Start", nil, &address); err != nil {
		return err
	}
	dir := filepath.Join(s.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	kubeconfig, err := gateway.Kubeconfig(dir, "http://"+address)
	if err != nil {
		return err
	}
	if s.gateway, err = gateway.Start(gateway.Options{
		Binary: s.bench.gateway, Dir: dir, Config: s.config(), Kubeconfig: kubeconfig,
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

// measure makes events for the good users, and lists as one of them.
func (s *stage) measure() (p phase, err error) {
	var next uint64
	if err := s.api.Call("Next", nil, &next); err != nil {
		return p, err
	}
	if err := s.load.Call("Begin", load.Begin{Group: "good", Seq: next}, nil); err != nil {
		return p, err
	}
	if err := forgetPeak(s.gateway.Pid); err != nil {
		return p, err
	}
	before, err := s.used()
	if err != nil {
		return p, err
	}
	began := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	lists := make(chan figures.Histogram)
	go func() { lists <- s.poll(ctx) }()
	rounds := max(1, int(s.rate*s.duration.Seconds()/users))
	err = s.api.Call("Emit", source.Emit{Rate: s.rate, Count: rounds * users}, nil)
	cancel()
	p.lists = <-lists
	if err != nil {
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
	return p, nil
}

// quiet is how long nothing must come before the missing events count as missed.
const quiet = 5 * time.Second

type used struct {
	cpu   time.Duration
	asked int64
}

func (s *stage) used() (u used, err error) {
	if u.cpu, err = process.CPU(s.gateway.Pid); err != nil {
		return u, err
	}
	return u, s.api.Call("Asked", nil, &u.asked)
}

// forgetPeak makes the kernel reset a process's peak of memory (proc(5), clear_refs).
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// polls is how many lists a second good users ask for, all of them together.
const polls = 25

// poll lists as one good user after the other until the context ends. A list that is refused counts with the longest
// time.
func (s *stage) poll(ctx context.Context) (lists figures.Histogram) {
	client := &http.Client{Timeout: 20 * time.Second}
	tick := time.NewTicker(time.Second / polls)
	defer tick.Stop()
	for number := 0; ; number++ {
		select {
		case <-ctx.Done():
			return lists
		case <-tick.C:
		}
		user := s.good[number%users]
		path, _, _ := strings.Cut(user.Path, "?")
		request, err := http.NewRequest(http.MethodGet, "http://"+s.gateway.Address+path, nil)
		if err != nil {
			panic(err) // our own path
		}
		request.Header.Set("Authorization", "Bearer "+user.Token)
		began := time.Now()
		took := client.Timeout
		if response, err := client.Do(request); err == nil {
			if _, err := io.Copy(io.Discard, response.Body); err == nil && response.StatusCode == http.StatusOK {
				took = time.Since(began)
			}
			response.Body.Close()
		}
		lists.Add(took)
	}
}

// saveProfile takes profiles of the gateway while it is measured.
func (s *stage) saveProfile(name string) <-chan error {
	done := make(chan error, 1)
	if s.profile == "" {
		done <- nil
		return done
	}
	go func() {
		seconds := max(1, int(s.duration.Seconds())-1)
		err := s.gateway.Save(fmt.Sprintf("/debug/pprof/profile?seconds=%d", seconds), filepath.Join(s.profile, name+".cpu"))
		if err == nil {
			err = s.gateway.Save("/debug/pprof/heap", filepath.Join(s.profile, name+".heap"))
		}
		done <- err
	}()
	return done
}
