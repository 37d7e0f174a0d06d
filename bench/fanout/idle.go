//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// idleSample is what idle connections cost.
type idleSample struct {
	perConnection float64 // KiB of resident memory
	base          float64 // MiB without them
	cpu           float64 // % of one processor
}

// idleReach is the target, in KiB per connection: what nchan needs, the leanest server of this kind.
const idleReach = 10

// idle measures connections on which only heartbeats are sent.
func (b *bench) idle() error {
	size := b.sizes.idle
	results, err := measure.InTurn(b.rounds, b.modes, func(mode string) (idleSample, error) { return b.idleOnce(mode, "") })
	if err != nil {
		return err
	}
	t := figures.Table{
		Title:  fmt.Sprintf("%d idle connections; %d rounds in turn, medians", size.clients, b.rounds),
		Header: []any{"", "KiB/connection", "MiB without", "CPU %"},
	}
	for _, mode := range b.modes {
		samples := results[mode]
		t.Add(nameOf(mode), figures.MedianOf(samples, func(s idleSample) float64 { return s.perConnection }),
			figures.MedianOf(samples, func(s idleSample) float64 { return s.base }),
			figures.MedianOf(samples, func(s idleSample) float64 { return s.cpu }))
	}
	t.Note("resident memory of the server's process %s after the last had connected, less that before the first had; "+
		"CPU of the second half of that time", size.settle)
	if gateway := results["gateway"]; len(gateway) > 0 {
		t.Reach("KiB per idle connection", figures.MedianOf(gateway, func(s idleSample) float64 { return s.perConnection }), idleReach)
	}
	t.Print(b.out)
	if b.profile != "" && slices.Contains(b.modes, "gateway") {
		_, err = b.idleOnce("gateway", filepath.Join(b.profile, "idle"))
	}
	return err
}

func (b *bench) idleOnce(mode, profile string) (result idleSample, err error) {
	size := b.sizes.idle
	s, err := b.start(mode, "")
	if err != nil {
		return result, err
	}
	defer s.stop()
	// The first connections cause costs that occur only once (code that is read from the disk, pools), and do not
	// count.
	if err := b.Open(&s.Server, "first", 100, s.Live); err != nil {
		return result, err
	}
	if err := b.Close("first"); err != nil {
		return result, err
	}
	time.Sleep(time.Second)
	before, err := process.ReadMemory(s.Pid)
	if err != nil {
		return result, err
	}
	const group = "idle"
	if err := b.Load.Call("Open", load.Open{Group: group, Clients: size.clients, Target: s.Live}, nil); err != nil {
		return result, err
	}
	defer func() {
		if closing := b.Close(group); err == nil {
			err = closing
		}
	}()
	time.Sleep(size.settle / 2)
	cpu, err := process.CPU(s.Pid)
	if err != nil {
		return result, err
	}
	time.Sleep(size.settle / 2)
	used, err := process.CPU(s.Pid)
	if err != nil {
		return result, err
	}
	after, err := process.ReadMemory(s.Pid)
	if err != nil {
		return result, err
	}
	var stats load.Stats
	if err := b.Load.Call("Stats", group, &stats); err != nil {
		return result, err
	}
	if stats.Open != size.clients {
		return result, fmt.Errorf("%d of %d connections are left", stats.Open, size.clients)
	}
	if profile != "" {
		b.profileMemory(s, profile)
	}
	return idleSample{
		perConnection: float64(after.Now-before.Now) / float64(size.clients) / 1024,
		base:          float64(before.Now) / (1 << 20),
		cpu:           100 * float64(used-cpu) / float64(size.settle/2),
	}, nil
}

// profileMemory saves profiles that show where an idle gateway's memory is.
func (b *bench) profileMemory(s *server, name string) {
	var err error
	for file, path := range map[string]string{
		".heap":    "/debug/pprof/heap?gc=1",
		".metrics": "/metrics",
		".cpu":     "/debug/pprof/profile?seconds=10",
	} {
		if err == nil {
			err = s.gateway.Save(path, name+file)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
	}
}
