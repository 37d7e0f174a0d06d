//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/source"
)

// rate measures a rate, or a burst. The target is that the gateway costs at most reach times as much as the floor; 0:
// no target.
func (b *bench) rate(size rates, reach float64) error {
	results, err := measure.InTurn(b.rounds, b.modes, func(mode string) (measure.Sample, error) { return b.rateOnce(mode, size, "") })
	if err != nil {
		return err
	}
	t := figures.Table{
		Title: fmt.Sprintf("%s, objects of %d bytes; %d rounds in turn, medians", size.title, objectSize, b.rounds),
		Header: []any{"", "CPU µs/event", "× floor", "of it write(2) %", "p50 ms", "p99 ms", "p99.9 ms", "bytes/event", "missed", "repeated",
			"all done s", "client's CPU µs/event", "waited × CPU"},
	}
	writes, err := b.writes(size)
	if err != nil {
		return err
	}
	for _, mode := range b.modes {
		samples := results[mode]
		var missed, repeated uint64
		for _, s := range samples {
			missed += s.Missed()
			repeated += s.Repeated + s.Disordered
		}
		if mode == "gateway" {
			b.Expect(size.title, "missed", missed)
			b.Expect(size.title, "repeated or in disorder", repeated)
		}
		t.Add(nameOf(mode), figures.MedianOf(samples, measure.Sample.PerServerCPU), b.overFloor(results, mode), writes[mode],
			figures.MedianOf(samples, measure.Latency(0.5)), figures.MedianOf(samples, measure.Latency(0.99)),
			figures.MedianOf(samples, measure.Latency(0.999)), figures.MedianOf(samples, measure.Sample.PerBytes), missed, repeated,
			figures.MedianOf(samples, func(s measure.Sample) float64 { return s.Took.Seconds() }), figures.MedianOf(samples, measure.Sample.PerClientCPU),
			figures.MedianOf(samples, measure.Sample.Contention))
	}
	t.Note("CPU of the server's process by delivered event; latency from when the event was made (gateway: in the API server " +
		"behind it) until the client has read it")
	t.Note("waited × CPU: how long the server waited for a processor, by the time it had one; where that is much more than 1, the machine was " +
		"too busy for the rest to mean anything")
	b.rateTargets(&t, results, reach)
	t.Print(b.out)
	return nil
}

// writes is how much of each gateway's processor time is write(2), by mode, in percent; "–" for other servers, which have
// no profile. It is of one further run, so that profiling costs the others nothing.
func (b *bench) writes(size rates) (map[string]any, error) {
	found := map[string]any{}
	for _, mode := range b.modes {
		if found[mode] = "–"; mode != "gateway" && !strings.HasPrefix(mode, "gateway:") {
			continue
		}
		file := filepath.Join(cmp.Or(b.profile, b.dir), strings.Fields(size.title)[0]+"-"+nameOf(mode))
		if _, err := b.rateOnce(mode, size, file); err != nil {
			return nil, err
		}
		cpu, err := os.ReadFile(file + ".cpu")
		if err != nil {
			return nil, err
		}
		share, err := measure.WriteShare(cpu)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if !math.IsNaN(share) {
			found[mode] = 100 * share
		}
	}
	return found, nil
}

func (b *bench) overFloor(results map[string][]measure.Sample, mode string) any {
	if mode == "floor" || len(results["floor"]) == 0 {
		return "–"
	}
	return measure.Ratio(results[mode], results["floor"], measure.Sample.PerServerCPU)
}

func (b *bench) rateTargets(t *figures.Table, results map[string][]measure.Sample, reach float64) {
	gateway := results["gateway"]
	if reach == 0 || len(gateway) == 0 {
		return
	}
	if floor := results["floor"]; len(floor) > 0 {
		t.Reach("CPU, × floor", measure.Ratio(gateway, floor, measure.Sample.PerServerCPU), reach)
	}
	if r3labs := results["r3labs"]; len(r3labs) > 0 {
		t.Reach("CPU, × r3labs", measure.Ratio(gateway, r3labs, measure.Sample.PerServerCPU), 1)
	}
}

// rateOnce measures a server once, and profiles it if a name for the profile's file is given.
func (b *bench) rateOnce(mode string, size rates, profile string) (result measure.Sample, err error) {
	s, err := b.start(mode, "")
	if err != nil {
		return result, err
	}
	defer s.stop()
	return b.measured(s, size, profile)
}

// measured has clients connect to a server, warms it up, and measures it.
func (b *bench) measured(s *server, size rates, profile string) (result measure.Sample, err error) {
	const group = "clients"
	if err := b.Open(&s.Server, group, size.clients, s.Live); err != nil {
		return result, err
	}
	defer func() {
		if closing := b.Close(group); err == nil {
			err = closing
		}
	}()
	warmUp := source.Emit{Rate: max(size.rate, 20), Count: int(max(size.rate, 20) * size.warmUp.Seconds())}
	if _, err := b.Emit(&s.Server, group, size.clients, warmUp); err != nil {
		return result, err
	}
	if profile != "" {
		rate := size.rate
		if rate == 0 {
			rate = 1000 // about the rate of a burst
		}
		defer b.profileCPU(s, profile, time.Duration(float64(size.events)/rate*float64(time.Second)))()
	}
	return b.Emit(&s.Server, group, size.clients, source.Emit{Rate: size.rate, Count: size.events})
}

// profileCPU takes a profile of the gateway's processor time.
func (b *bench) profileCPU(s *server, name string, d time.Duration) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.gateway.Save(fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(int(d.Seconds()), 1)), name+".cpu"); err != nil {
			fmt.Fprintln(os.Stderr, "profile:", err)
		}
	}()
	return func() { <-done }
}

// nameOf is what a server is called in tables.
func nameOf(mode string) string {
	if binary, other := strings.CutPrefix(mode, "gateway:"); other {
		return filepath.Base(binary)
	}
	return mode
}
