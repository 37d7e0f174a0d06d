//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/process"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// pages measures how long pages take among many transitions: from memory, from the disk, and while
// old ones are removed.
func (b *bench) pages(ctx context.Context, wanted []string) error {
	return b.each(wanted, func(d *database) error { return b.pagesOf(ctx, d) })
}

// asked is what was seen of some questions.
type asked struct {
	figures.Histogram
	cpu     figures.Histogram // of this process, in which SQLite is, too
	reads   []int             // of this process, from the system or the disk; those of SQLite are of 4 KB each
	slowest []slow
}

type slow struct {
	question question
	took     time.Duration
	reads    int
	items    int
}

func (b *bench) pagesOf(ctx context.Context, d *database) error {
	s, err := store.New(store.Options{Address: d.address})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	log, err := s.Take(ctx, store.LogName{Cluster: "bench", Resource: "jobs.batch"}, "bench", "bench", time.Hour)
	if err != nil {
		return err
	}
	began := time.Now()
	if log.Seq == 0 {
		if d.name == "sqlite" { // whose file is to be written without a journal
			if err := s.Close(); err != nil {
				return err
			}
		}
		if err := d.fill(ctx, log.ID, b.sizes.rows); err != nil {
			return err
		}
		if s, err = store.New(store.Options{Address: d.address}); err != nil {
			return err
		}
		if log, err = s.Find(ctx, log.LogName); err != nil {
			return err
		}
	}
	filled := time.Since(began)
	t := figures.Table{
		Title:  fmt.Sprintf("pages of 100 with %s, among %d transitions of %d jobs (made in %s)", d.name, b.sizes.rows, b.sizes.rows/steps, filled.Round(time.Second)),
		Header: []any{"", "questions", "p50 ms", "p99 ms", "longest ms", "client's CPU p50 ms", "p99 ms", "reads p50", "p99", "most"},
	}
	add := func(what string, a asked) {
		if d.name != "sqlite" { // whose own process reads
			a.reads = nil
		}
		t.Add(what, a.N, figures.Milliseconds(a.Quantile(0.5)), figures.Milliseconds(a.Quantile(0.99)), figures.Milliseconds(a.Max),
			figures.Milliseconds(a.cpu.Quantile(0.5)), figures.Milliseconds(a.cpu.Quantile(0.99)),
			a.read(0.5), a.read(0.99), a.read(1))
	}
	defer t.Print(b.out)
	if b.sizes.questions == 0 {
		return nil
	}
	var questions []question
	random := rand.New(rand.NewPCG(1, 2))
	for range b.sizes.questions {
		questions = append(questions, b.ask(random))
	}
	if err := d.forget(); err != nil {
		return err
	}
	cold, err := b.answers(ctx, s, log, questions)
	if err != nil {
		return err
	}
	add("cold: each question for the first time after a restart", cold)
	warm, err := b.answers(ctx, s, log, questions)
	if err != nil {
		return err
	}
	add("warm: the same once more", warm)
	for _, slow := range cold.slowest {
		t.Note("slow when cold: %.0f ms, %d reads for %d items of %s", figures.Milliseconds(slow.took), slow.reads, slow.items, slow.question)
	}
	t.Reach("pages of "+d.name+", cold, p99 in ms", figures.Milliseconds(cold.Quantile(0.99)), 50)
	t.Reach("pages of "+d.name+", warm, p99 in ms", figures.Milliseconds(warm.Quantile(0.99)), 50)
	if err := b.usage(ctx, d, s, log); err != nil {
		return err
	}
	return b.removing(ctx, d, s, log, questions, &t, add)
}

// answers asks questions, one after the other.
func (b *bench) answers(ctx context.Context, s *store.Store, log store.Log, questions []question) (a asked, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.sizes.asking)
	defer cancel()
	for _, q := range questions {
		before, err := process.CPU(os.Getpid())
		if err != nil {
			return a, err
		}
		readBefore := reads()
		began := time.Now()
		items, err := q.answer(ctx, s, log)
		took := time.Since(began)
		a.Add(took)
		after, _ := process.CPU(os.Getpid()) // as before
		a.cpu.Add(after - before)
		read := reads() - readBefore
		a.reads = append(a.reads, read)
		a.slowest = append(a.slowest, slow{q, took, read, items})
		if ctx.Err() != nil {
			break // which the number of questions tells
		}
		if err != nil {
			return a, fmt.Errorf("%s: %w", q, err)
		}
	}
	slices.SortStableFunc(a.slowest, func(a, b slow) int { return int(b.took - a.took) })
	a.slowest = a.slowest[:min(12, len(a.slowest))]
	return a, nil
}

// read is a quantile of the reads.
func (a *asked) read(q float64) int {
	if len(a.reads) == 0 {
		return 0
	}
	slices.Sort(a.reads)
	return a.reads[min(len(a.reads)-1, int(q*float64(len(a.reads))))]
}

// reads are how many times this process has read, from a disk or from the system's memory. So it
// does not depend on what else the machine does.
func reads() (n int) {
	text, _ := os.ReadFile("/proc/self/io")
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "syscr: %d", &n); err == nil {
			return n
		}
	}
	return 0
}

// removing asks while old transitions are removed as the gateway does it, and, in turn, while nothing is.
func (b *bench) removing(ctx context.Context, d *database, s *store.Store, log store.Log, questions []question, t *figures.Table, add func(string, asked)) error {
	const atOnce, rest = 100, 3 // jobs, and how many times as long as that took nothing is removed
	var meanwhile, without asked
	var removed, times int
	var longest, took time.Duration
	for round, ends := 0, time.Now().Add(b.sizes.removing); removed < b.sizes.remove && time.Now().Before(ends); round++ {
		some := questions[len(questions)/phases*(round%phases):][:len(questions)/phases]
		a, err := b.answers(ctx, s, log, some)
		if err != nil {
			return err
		}
		without.Merge(a.Histogram)
		without.cpu.Merge(a.cpu)
		without.reads = append(without.reads, a.reads...)
		var stop atomic.Bool
		done := make(chan error, 1)
		go func() {
			for !stop.Load() && removed < b.sizes.remove {
				began := time.Now()
				gone, err := s.Expire(ctx, log, firstTime+jobs.Time(period), atOnce)
				if err != nil || gone.Jobs == 0 {
					done <- err
					return
				}
				one := time.Since(began)
				longest, took = max(longest, one), took+one
				removed, times = removed+gone.Transitions, times+1
				time.Sleep(rest * one)
			}
			done <- nil
		}()
		a, err = b.answers(ctx, s, log, some)
		stop.Store(true)
		if err := errors.Join(err, <-done); err != nil {
			return err
		}
		meanwhile.Merge(a.Histogram)
		meanwhile.cpu.Merge(a.cpu)
		meanwhile.reads = append(meanwhile.reads, a.reads...)
	}
	add("in turn: while nothing is removed", without)
	add(fmt.Sprintf("while %d transitions are removed, %d jobs at a time, with rests", removed, atOnce), meanwhile)
	t.Note("removed in %s and rests, %d times for %.0f ms, at most %.0f ms", took.Round(100*time.Millisecond), times, figures.Milliseconds(took)/float64(times), figures.Milliseconds(longest))
	t.Reach("while removing with "+d.name+", p99 by that of the same without", meanwhile.Quantile(0.99).Seconds()/without.Quantile(0.99).Seconds(), 2)
	return nil
}

// phases are the parts of all questions that are asked in turn with and without a removal.
const phases = 5
