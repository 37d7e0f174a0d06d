//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/measure"
	"github.com/kubecast/kubecast/bench/internal/process"
)

// These are measured in turn.
const (
	calm     = "bindings stay"
	changing = "bindings change"
)

// sample is what one measurement found.
type sample struct {
	took     time.Duration
	cpu      time.Duration // the gateway's
	patches  figures.Histogram
	toCalm   figures.Histogram
	tellings tellings
	objects  int // events by which clients were told of objects, or of their deletion
}

// tellings sums up how the clients were told of changes.
type tellings struct {
	changes   int
	requests  figures.Histogram // until the API server answered
	told      figures.Histogram // time from then until a watch of the user was told
	overtaken int               // the binding was changed back before the watch was told of it
}

// settled is how long clients may take to have the right content once nothing changes any more.
const settled = 30 * time.Second

func (b *bench) measure(ctx context.Context) error {
	results, err := measure.InTurn(b.rounds, []string{calm, changing}, func(mode string) (sample, error) {
		rate := 0.0
		if mode == changing {
			rate = b.changes
		}
		return b.one(ctx, rate)
	})
	if err != nil {
		return err
	}
	b.print(results)
	return b.promises()
}

// one measures once. Afterwards it checks that each client has what its user may see.
func (b *bench) one(ctx context.Context, rate float64) (s sample, err error) {
	b.ledger.begin()
	eventsBefore := b.events()
	before, err := process.CPU(b.gateway.Pid)
	if err != nil {
		return s, err
	}
	began := time.Now()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return steadily(ctx, b.patches, b.duration, b.patch) })
	if rate > 0 {
		work.Go(func() error {
			return steadily(ctx, rate, b.duration, func(ctx context.Context, _ int) error {
				u, c := b.choose(ctx)
				if u == nil {
					return ctx.Err()
				}
				return b.apply(ctx, u, c)
			})
		})
		if b.profile != "" {
			work.Go(func() error {
				return b.gateway.Save(fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(int(b.duration.Seconds()), 1)), filepath.Clean(b.profile))
			})
		}
	}
	if err := work.Wait(); err != nil {
		return s, err
	}
	s.took = time.Since(began)
	after, err := process.CPU(b.gateway.Pid)
	if err != nil {
		return s, err
	}
	s.cpu = after - before
	if err := b.await(settled, (*client).content); err != nil {
		return s, fmt.Errorf("the gateway broke its promise: %w", err)
	}
	s.objects = b.events() - eventsBefore
	b.ledger.mu.Lock()
	s.patches, s.toCalm = b.ledger.patches, b.ledger.toCalm
	b.ledger.mu.Unlock()
	for _, c := range b.clients {
		s.tellings.add(c, began)
	}
	for _, u := range b.people {
		for _, c := range u.changes {
			if !c.issued.Before(began) {
				s.tellings.changes++
				s.tellings.requests.Add(c.answered.Sub(c.issued))
			}
		}
	}
	return s, nil
}

// steadily calls do at a rate. A call that takes long does not delay the next, unless too many are under way.
func steadily(ctx context.Context, rate float64, duration time.Duration, do func(ctx context.Context, number int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4 * atOnce)
	began := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		due := time.Duration(float64(n) / rate * float64(time.Second))
		if due >= duration {
			break
		}
		time.Sleep(time.Until(began.Add(due)))
		group.Go(func() error { return do(ctx, n) })
	}
	return group.Wait()
}

// add adds how a client was told of the changes of its user's bindings since some moment.
func (t *tellings) add(c *client, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.views {
		for i, change := range c.user.changes {
			if change.issued.Before(since) {
				continue
			}
			at := v.toldOf(change)
			switch {
			case at.IsZero(), changedBackBefore(c.user.changes[i+1:], change.namespace, at):
				t.overtaken++ // the content at the end is right, as was checked
			default:
				t.told.Add(at.Sub(change.answered)) // 0 if the event was faster than the answer
			}
		}
	}
}

// toldOf returns when the view was first told of a change, or of its effect.
func (v *view) toldOf(c change) time.Time {
	for _, t := range v.told {
		if t.at.After(c.issued) && t.sees.has(c.namespace) == c.made {
			return t.at
		}
	}
	return time.Time{}
}

func changedBackBefore(later []change, namespace int, at time.Time) bool {
	for _, c := range later {
		if c.namespace == namespace {
			return c.issued.Before(at)
		}
	}
	return false
}

// events returns how many events of objects all clients were told.
func (b *bench) events() (total int) {
	for _, c := range b.clients {
		c.mu.Lock()
		for _, v := range c.views {
			total += v.events
		}
		c.mu.Unlock()
	}
	return total
}

func (b *bench) print(results map[string][]sample) {
	t := figures.Table{
		Title: fmt.Sprintf("%d streams of %d users, %d pods in %d namespaces, %g pods change per second; %d × %s in turn, medians",
			len(b.clients), b.users, b.pods, b.namespaces, b.patches, b.rounds, b.duration),
		Header: []any{"", "told after p50 ms", "p99 ms", "max ms", "bindings/s", "API server p50 ms", "pods' events p50 ms", "p99 ms", "their patch p50 ms",
			"p99 ms", "CPU ms/s", "objects told/s"},
	}
	for _, mode := range []string{calm, changing} {
		of := func(read func(sample) float64) float64 { return figures.MedianOf(results[mode], read) }
		quantile := func(which func(sample) figures.Histogram, q float64) any {
			if n := of(func(s sample) float64 { return float64(which(s).N) }); n == 0 {
				return "–"
			}
			return of(func(s sample) float64 {
				h := which(s)
				return figures.Milliseconds(h.Quantile(q))
			})
		}
		told := func(s sample) figures.Histogram { return s.tellings.told }
		requests := func(s sample) figures.Histogram { return s.tellings.requests }
		toCalm := func(s sample) figures.Histogram { return s.toCalm }
		patches := func(s sample) figures.Histogram { return s.patches }
		t.Add(mode, quantile(told, 0.5), quantile(told, 0.99), quantile(told, 1),
			of(func(s sample) float64 { return float64(s.tellings.changes) / s.took.Seconds() }), quantile(requests, 0.5),
			quantile(toCalm, 0.5), quantile(toCalm, 0.99), quantile(patches, 0.5), quantile(patches, 0.99),
			of(func(s sample) float64 { return figures.Milliseconds(s.cpu) / s.took.Seconds() }),
			of(func(s sample) float64 { return float64(s.objects) / s.took.Seconds() }))
	}
	t.Note("told: from the API server's answer to a binding's change until a watch of its user is told narrowed or widened (0: before); pods' events: " +
		"to streams of users whose bindings never change, from just before the patch")
	a, z := results[calm], results[changing]
	perChange := figures.MedianOf(indices(min(len(a), len(z))), func(i int) float64 {
		return figures.Milliseconds(z[i].cpu-a[i].cpu) / float64(max(z[i].tellings.changes, 1))
	})
	t.Note("the gateway uses %.2f ms of CPU for a change of a binding, which is told to %d watches, and %.0f objects with it", perChange, b.streams+1,
		figures.MedianOf(indices(min(len(a), len(z))), func(i int) float64 {
			return float64(z[i].objects-a[i].objects) / float64(max(z[i].tellings.changes, 1))
		}))
	t.Note("changed back before it was told: %d; all %d streams held, and have what their users may see", z[0].tellings.overtaken, len(b.clients))
	times := func(which func(*sample) *figures.Histogram, q float64) float64 {
		return measure.Ratio(z, a, func(s sample) float64 { return which(&s).Quantile(q).Seconds() })
	}
	events := func(s *sample) *figures.Histogram { return &s.toCalm }
	patches := func(s *sample) *figures.Histogram { return &s.patches }
	t.Note("beside bindings that stay: pods' events take %.1f × as long (p50; p99: %.1f ×), of which their patches %.1f × (p99: %.1f ×)",
		times(events, 0.5), times(events, 0.99), times(patches, 0.5), times(patches, 0.99))
	within := 1.0
	if b.mode == "sar" {
		within = 10 // authorizer.cacheAllow
	}
	t.Reach("told after seconds, the last", figures.MedianOf(z, func(s sample) float64 { return s.tellings.told.Max.Seconds() }), within)
	t.Print(b.out)
}

func indices(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// promises checks the promises that must hold on any machine.
func (b *bench) promises() error {
	var broken []error
	for _, c := range b.clients {
		c.mu.Lock()
		broken = append(broken, c.err)
		for name, v := range c.views {
			if v.foreign > 0 {
				broken = append(broken, fmt.Errorf("%s, watch %q: %d events of what he may not see", c.user.name, name, v.foreign))
			}
		}
		c.mu.Unlock()
		if n := c.resets.Load(); n > 0 {
			broken = append(broken, fmt.Errorf("%s: %d resets", c.user.name, n))
		}
	}
	if err := errors.Join(broken...); err != nil {
		return fmt.Errorf("the gateway broke its promise: %w", err)
	}
	return nil
}
