//go:build linux

package main

import (
	"fmt"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// row is the medians of one means.
type row struct {
	means  means
	rounds []result
}

func (r row) median(phase func(result) phase, read func(phase) float64) float64 {
	return figures.MedianOf(r.rounds, func(round result) float64 { return read(phase(round)) })
}

func without(r result) phase { return r.without }
func control(r result) phase { return r.control }
func with(r result) phase    { return r.with }

func events(quantile float64) func(phase) float64 {
	return func(p phase) float64 { return figures.Milliseconds(p.events.Quantile(quantile)) }
}

func lists(quantile float64) func(phase) float64 {
	return func(p phase) float64 { return figures.Milliseconds(p.lists.Quantile(quantile)) }
}

func memory(p phase) float64 { return float64(p.memory >> 20) }

// report prints the table. Only lost events are an error.
func (b *bench) report(results map[string][]result) error {
	t := figures.Table{
		Title: fmt.Sprintf("One hostile user beside %d good ones, who are told of %v events/s: what the good ones notice, and the gateway's peak memory; "+
			"without → with (p99 also: the same traffic beside the gateway); medians of %d rounds", users, b.rate, b.rounds),
		Header: []any{"means", "event p50 ms", "p99 ms", "list p99 ms", "MiB", "CPU %", "API requests/s", "hostile/s: answered", "refused", "cut", "MB", "target"},
	}
	var missed uint64
	disturbed := 0
	var rows []row
	for _, m := range allMeans {
		if rounds := results[m.name]; len(rounds) > 0 {
			rows = append(rows, row{m, rounds})
		}
	}
	unreached := 0
	for _, r := range rows {
		verdict := "reached"
		if why := b.judge(r); why != "" {
			unreached++
			verdict = "NOT reached:" + why
		}
		pair := func(format string, read func(phase) float64) string {
			return fmt.Sprintf(format+" → "+format, r.median(without, read), r.median(with, read))
		}
		three := func(read func(phase) float64) string {
			return pair("%.1f", read) + fmt.Sprintf(" (%.1f)", r.median(control, read))
		}
		hostile := func(read func(Attacked) int64) string {
			perSecond := func(round result) float64 { return float64(read(round.hostile)) / b.duration.Seconds() }
			return fmt.Sprintf("%.0f", figures.MedianOf(r.rounds, perSecond))
		}
		t.Add(r.means.name, pair("%.1f", events(0.5)), three(events(0.99)), three(lists(0.99)), pair("%.0f", memory),
			pair("%.0f", func(p phase) float64 { return p.cpu }), pair("%.0f", func(p phase) float64 { return p.asked }),
			hostile(func(a Attacked) int64 { return a.Answered }), hostile(func(a Attacked) int64 { return a.Refused }),
			hostile(func(a Attacked) int64 { return a.Failed }), hostile(func(a Attacked) int64 { return a.Bytes / 1e6 }), verdict)
		for _, round := range r.rounds {
			missed += round.without.missed + round.with.missed + round.control.missed
			if round.disturbed() {
				disturbed++
			}
		}
	}
	t.Note("target: good users' p99, of events and of lists of their own, at most %v × as without, or %s; memory at most + %d MiB: %d of %d means reach it",
		b.limit.times, b.limit.floor, b.limit.memory>>20, len(rows)-unreached, len(rows))
	if disturbed > 0 {
		t.Note("in %d rounds other programs took more than %d %% of a processor: what delayed the good users may have been those", disturbed, tolerated)
	}
	if !process.MayRunFirst() {
		t.Note("without the right to run before others (CAP_SYS_NICE) the good users also wait for the processors on which the gateway works")
	}
	for _, r := range rows {
		t.Note("%s: %s", r.means.name, r.means.what)
	}
	t.Print(b.out)
	if missed > 0 {
		return fmt.Errorf("the gateway broke its promise: good users missed %d events", missed)
	}
	return nil
}

// judge says which targets are missed.
func (b *bench) judge(r row) (why string) {
	late := func(what string, read func(phase) float64) {
		if r.median(with, read) > max(b.limit.times*r.median(without, read), figures.Milliseconds(b.limit.floor)) {
			why += " " + what
		}
	}
	late("events", events(0.99))
	late("lists", lists(0.99))
	if r.median(with, memory) > r.median(without, memory)+float64(b.limit.memory>>20) {
		why += " memory"
	}
	return why
}

// since returns what came after an earlier count.
func (a Attacked) since(before Attacked) Attacked {
	return Attacked{a.Answered - before.Answered, a.Refused - before.Refused, a.Failed - before.Failed, a.Bytes - before.Bytes}
}
