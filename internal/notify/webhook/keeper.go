package webhook

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/notify/outbox"
)

// keeper keeps the leases of all targets to which this replica sends, in one transaction for all of them.
type keeper struct {
	box    *outbox.Box
	holder string // names this replica
	times  times

	mu      sync.Mutex
	tenures map[*tenure]*lease
}

type lease struct {
	renewed time.Time // the lease lasts from here at least
	end     context.CancelCauseFunc
}

// add begins to keep the lease of a tenure, which was just taken.
func (k *keeper) add(t *tenure, end context.CancelCauseFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tenures[t] = &lease{time.Now(), end}
}

func (k *keeper) remove(t *tenure) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.tenures, t)
}

// run renews the leases until the context ends. A tenure whose lease is lost is ended.
func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(k.times.lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		k.mu.Lock()
		tenures := maps.Clone(k.tenures)
		k.mu.Unlock()
		if len(tenures) > 0 {
			k.renew(ctx, tenures)
		}
	}
}

var errLapsed = errors.New("the lease could not be renewed in time")

func (k *keeper) renew(ctx context.Context, tenures map[*tenure]*lease) {
	answers, changed := map[string]outbox.Answer{}, map[*tenure]int{}
	for t := range tenures {
		t.mu.Lock()
		if t.last.At != 0 {
			answers[t.Name] = t.last
		}
		t.last, changed[t] = outbox.Answer{}, t.changed
		t.mu.Unlock()
	}
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, k.times.lease)
	defer cancel()
	held, err := k.box.Renew(within, k.holder, k.times.lease, answers)
	for t, of := range tenures {
		change, ours := held[t.Name]
		switch {
		case err != nil && time.Since(of.renewed) >= k.times.lease:
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
