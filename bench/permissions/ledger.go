//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/mark"
)

// ledger knows the last change of each pod, and how long the changes of pods took.
type ledger struct {
	mu      sync.Mutex
	seq     uint64
	last    []uint64          // by pod
	patches figures.Histogram // time until the API server answered
	toCalm  figures.Histogram // time until a bystander was told
}

func newLedger(pods int) *ledger { return &ledger{last: make([]uint64, pods)} }

// next is the number of the next change.
func (l *ledger) next() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	return l.seq
}

// patched records a change. The changes of one pod are made one after the other.
func (l *ledger) patched(pod int, seq uint64, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[pod] = seq
	l.patches.Add(took)
}

// delivered records how long it took until a bystander was told.
func (l *ledger) delivered(after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.toCalm.Add(after)
}

// begin forgets the times.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.patches, l.toCalm = figures.Histogram{}, figures.Histogram{}
}

// patch changes one pod after the other, so that the changes of one never overlap.
func (b *bench) patch(ctx context.Context, number int) error {
	number %= b.pods
	m := mark.Mark{Seq: b.ledger.next(), At: time.Now().UnixNano()}
	if err := b.cluster.patch(ctx, namespaceName(number%b.namespaces), podName(number), m); err != nil {
		return err
	}
	b.ledger.patched(number, m.Seq, time.Since(time.Unix(0, m.At)))
	return nil
}

// content returns an error if the client has what it should not have, or lacks what it should have. The caller holds
// the client's lock.
func (c *client) content() error {
	sees := c.user.visible()
	for name, v := range c.views {
		want := map[string]uint64{}
		if name == "maps" {
			for namespace := range c.bench.namespaces {
				if sees.has(namespace) {
					want[namespaceName(namespace)+"/"+rootCertificate] = 0
				}
			}
		} else {
			c.bench.ledger.pods(func(pod int, seq uint64) {
				if namespace := pod % c.bench.namespaces; sees.has(namespace) {
					want[namespaceName(namespace)+"/"+podName(pod)] = seq
				}
			})
		}
		if v.sees != sees {
			return fmt.Errorf("watch %q was told %b, and may see %b", name, v.sees, sees)
		}
		for key, seq := range want {
			if got, ok := v.objects[key]; !ok || got != seq {
				return fmt.Errorf("watch %q has %s at change %d (%t), and it is at %d", name, key, got, ok, seq)
			}
		}
		if len(v.objects) != len(want) {
			return fmt.Errorf("watch %q has %d objects of %d", name, len(v.objects), len(want))
		}
	}
	return nil
}

func (l *ledger) pods(each func(pod int, seq uint64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for pod, seq := range l.last {
		each(pod, seq)
	}
}
