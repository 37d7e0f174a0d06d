package webhook

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/jobs/outbox"
)

// leaseRenewer keeps the leases of all targets to which this replica sends, in one transaction for all of them.
type leaseRenewer struct {
	store  *outbox.Store
	holder string // names this replica
	times  times

	mu    sync.Mutex
	terms map[*term]*lease
}

type lease struct {
	renewed time.Time // the lease lasts from here at least
	end     context.CancelCauseFunc
}

// add begins to keep the lease of a term, which was just taken.
func (r *leaseRenewer) add(t *term, end context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.terms[t] = &lease{time.Now(), end}
}

func (r *leaseRenewer) remove(t *term) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.terms, t)
}

// run renews the leases until the context ends. A term whose lease is lost is ended.
func (r *leaseRenewer) run(ctx context.Context) {
	tick := time.NewTicker(r.times.lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		terms := maps.Clone(r.terms)
		r.mu.Unlock()
		if len(terms) > 0 {
			r.renew(ctx, terms)
		}
	}
}

var errLapsed = errors.New("the lease could not be renewed in time")

func (r *leaseRenewer) renew(ctx context.Context, terms map[*term]*lease) {
	answers, changed := map[string]outbox.LastAnswer{}, map[*term]int{}
	for t := range terms {
		t.mu.Lock()
		if t.last.At != 0 {
			answers[t.Name] = t.last
		}
		t.last, changed[t] = outbox.LastAnswer{}, t.changed
		t.mu.Unlock()
	}
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, r.times.lease)
	defer cancel()
	held, err := r.store.Renew(within, r.holder, r.times.lease, answers)
	for t, of := range terms {
		change, ours := held[t.Name]
		switch {
		case err != nil && time.Since(of.renewed) >= r.times.lease:
			of.end(errors.Join(errLapsed, err))
		case err != nil:
			t.mu.Lock()
			if t.last.At == 0 {
				t.last = answers[t.Name]
			}
			t.mu.Unlock()
		case !ours:
			of.end(outbox.ErrHeld)
		default:
			of.renewed = began
			t.mu.Lock()
			if t.changed == changed[t] && !t.unsaved { // an operator may have switched it on
				t.change = change
			}
			t.mu.Unlock()
		}
	}
}
