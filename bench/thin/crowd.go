//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/pods"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// crowded is what it took until all of a crowd had everything.
type crowded struct {
	load.Stats
	took   time.Duration
	cpu    time.Duration // of the gateway
	before int64         // its memory without clients
	peak   int64
}

// crowd measures many clients that open at once: lists, and event streams, plain and compressed.
func (b *bench) crowd() error {
	one, few := crowdPath(true), crowdPath(false)
	all := max(b.sizes.crowd/50, 2)
	t := figures.Table{
		Title:  fmt.Sprintf("clients that open at once, among %d pods", b.sizes.pods),
		Header: []any{"", "clients", "coding", "MB sent", "all have it s", "gateway's CPU s", "CPU ms/client", "MiB before", "peak MiB"},
	}
	for _, what := range []struct {
		name, path string
		clients    int
		stream     bool
	}{
		{"list, one team's", one, b.sizes.crowd, false},
		{"stream, one team's", one, b.sizes.crowd, true},
		{"list, all", few, all, false},
		{"stream, all", few, all, true},
	} {
		cpu := map[string]float64{}
		for _, coding := range codings {
			c, err := b.crowdOnce(what.path, coding, what.clients, what.stream)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", what.name, codingName(coding), err)
			}
			cpu[coding] = c.cpu.Seconds()
			t.Add(what.name, what.clients, codingName(coding), float64(c.Bytes)/1e6, c.took.Seconds(), c.cpu.Seconds(),
				1e3*c.cpu.Seconds()/float64(what.clients), mebibytes(c.before), mebibytes(c.peak))
		}
		t.Reach(what.name+": CPU with zstd, × plain", cpu["zstd"]/cpu[""], 1)
	}
	t.Note("each gateway is a new one, which nobody has asked before; clients of streams decode and read them, and those of lists only count bytes")
	t.Print(b.out)
	return nil
}

// crowdPath is the path of all pods, or of those of the largest team.
func crowdPath(team bool) string {
	if team {
		return "/api/v1/namespaces/" + pods.TeamOf(largest) + "/pods"
	}
	return listPath
}

// largest is the number of a pod of a team that has many.
const largest = 1

func (b *bench) crowdOnce(path, coding string, clients int, stream bool) (c crowded, err error) {
	s, err := b.start()
	if err != nil {
		return c, err
	}
	defer s.stop()
	if _, err := s.open("/api/v1/pods?limit=1", "application/json", ""); err != nil { // code that is read from the disk
		return c, err
	}
	memory, err := process.ReadMemory(s.Pid)
	if err != nil {
		return c, err
	}
	before, err := process.CPU(s.Pid)
	if err != nil {
		return c, err
	}
	target := s.target(path, coding)
	target.Snapshot, target.Raw = stream, !stream
	until := load.Synced
	if !stream {
		target.Accept, until = "application/json", load.Closed
	}
	const group = "crowd"
	began := time.Now()
	if err := b.Load.Call("Open", load.Open{Group: group, Clients: clients, Target: target}, nil); err != nil {
		return c, err
	}
	defer func() {
		if closing := b.Close(group); err == nil {
			err = closing
		}
	}()
	if err := b.Load.Call("Await", load.Await{Group: group, Until: until, Quiet: 20 * time.Second}, &c.Stats); err != nil {
		return c, err
	}
	c.took = time.Since(began)
	if stream && c.Synced != uint64(clients) {
		return c, fmt.Errorf("%d of %d snapshots are complete", c.Synced, clients)
	}
	after, err := process.CPU(s.Pid)
	if err != nil {
		return c, err
	}
	now, err := process.ReadMemory(s.Pid)
	c.cpu, c.before, c.peak = after-before, memory.Now, now.Peak
	return c, err
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
