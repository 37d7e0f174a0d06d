//go:build linux

package main

import (
	"fmt"
	"net/url"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/load"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/bench/internal/source"
)

const (
	questions = 50
	// fresh is how old a change may be that counts as one that is told: see load.Begin.
	fresh = 5 * time.Second
)

// question is the path of a live page of 50 places. Of each order there are ten, about all pods or half of them.
func question(number int) string {
	orders := []string{"-metadata.resourceVersion", "-metadata.creationTimestamp", "spec.nodeName,metadata.name", "status.phase,-status.startTime", "metadata.name"}
	query := url.Values{"limit": {"50"}, "conflate": {"10ms"}, "sort": {orders[number%len(orders)]}}
	if n := number / len(orders); n > 0 {
		query.Set("fieldSelector", fmt.Sprintf("metadata.namespace!=team-%02d", n))
	}
	return "/api/v1/pods?" + query.Encode()
}

// pages measures live pages of distinct questions while pods change.
func (b *bench) pages() error {
	size := b.sizes.pages
	s, err := b.start()
	if err != nil {
		return err
	}
	defer s.stop()
	idle, err := b.changing(s, size) // what the changes cost without a page
	if err != nil {
		return err
	}
	target := s.target("", "")
	target.Snapshot = true
	for i := range size.clients {
		target.Users = append(target.Users, load.User{Path: question(i % questions)})
	}
	const group = "pages"
	if err := b.Load.Call("Open", load.Open{Group: group, Clients: size.clients, Target: target}, nil); err != nil {
		return err
	}
	defer func() {
		if closing := b.Close(group); err == nil {
			err = closing
		}
	}()
	var stats load.Stats
	if err := b.Load.Call("Await", load.Await{Group: group, Until: load.Synced, Quiet: 20 * time.Second}, &stats); err != nil {
		return err
	}
	if stats.Synced != uint64(size.clients) {
		return fmt.Errorf("%d of %d clients have their page", stats.Synced, size.clients)
	}
	time.Sleep(fresh) // what is old is old
	next, err := s.Next()
	if err != nil {
		return err
	}
	if err := b.Load.Call("Begin", load.Begin{Group: group, Seq: next, Fresh: fresh}, nil); err != nil {
		return err
	}
	wait := b.profiled(s, "pages", time.Duration(float64(size.changes)/size.rate*float64(time.Second)))
	busy, err := b.changing(s, size)
	wait()
	if err != nil {
		return err
	}
	if err := b.Load.Call("Stats", group, &stats); err != nil {
		return err
	}
	if stats.Open != size.clients {
		return fmt.Errorf("%d of %d pages are left", stats.Open, size.clients)
	}
	memory, err := process.ReadMemory(s.Pid)
	if err != nil {
		return err
	}
	if stats.Delivered == 0 {
		return fmt.Errorf("no change was told within %s", fresh)
	}
	each := func(d time.Duration) float64 { return figures.Microseconds(d) / float64(size.changes) }
	t := figures.Table{
		Title:  fmt.Sprintf("%d live pages of %d questions, %d pods, %g changes/s", size.clients, questions, b.sizes.pods, size.rate),
		Header: []any{"told", "p50 ms", "p99 ms", "p99.9 ms", "CPU µs/change", "without pages", "µs/change and question", "waited × CPU", "MiB"},
	}
	telling := each(busy.cpu-idle.cpu) / questions
	t.Add(stats.Delivered, figures.Milliseconds(stats.Latency.Quantile(0.5)), figures.Milliseconds(stats.Latency.Quantile(0.99)),
		figures.Milliseconds(stats.Latency.Quantile(0.999)), each(busy.cpu), each(idle.cpu), telling,
		busy.waited.Seconds()/max(busy.cpu.Seconds(), 1e-6), mebibytes(memory.Now))
	t.Note("conflate=10ms; from the change in the API server until a page has it; what moves on to a page and has changed more than %s before does not count", fresh)
	t.Reach("p99.9 ms", figures.Milliseconds(stats.Latency.Quantile(0.999)), 100)
	t.Reach("µs a change and question, with telling their pages", telling, 50)
	t.Print(b.out)
	return nil
}

type cost struct{ cpu, waited time.Duration }

// changing makes changes, and measures what they cost the gateway.
func (b *bench) changing(s *server, size rates) (c cost, err error) {
	before, err := process.CPU(s.Pid)
	if err != nil {
		return c, err
	}
	waited, err := process.Waited(s.Pid)
	if err != nil {
		return c, err
	}
	if err := s.Source.Call("Emit", source.Emit{Rate: size.rate, Count: size.changes}, nil); err != nil {
		return c, err
	}
	time.Sleep(500 * time.Millisecond) // the last ones are told
	after, err := process.CPU(s.Pid)
	if err != nil {
		return c, err
	}
	now, err := process.Waited(s.Pid)
	return cost{after - before, now - waited}, err
}
