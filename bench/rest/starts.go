//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/measure"
)

// starts measures how long a gateway takes from its start until it is ready, and how long it takes to read the same list
// over a bare connection, and throw it away.
func (b *bench) starts(ctx context.Context) error {
	const start, bare = "gateway, from start to ready", "the list over a bare connection"
	api, err := b.cluster.server()
	if err != nil {
		return err
	}
	results, err := measure.InTurn(b.rounds, []string{bare, start}, func(name string) (time.Duration, error) {
		began := time.Now()
		if name == bare {
			c, err := api.connect(ctx)
			if err != nil {
				return 0, err
			}
			_, err = c.get(everyPod)
			return time.Since(began), errors.Join(err, c.Close())
		}
		g, err := b.startGateway()
		if err != nil {
			return 0, err
		}
		defer g.Stop()
		return time.Since(began), nil
	})
	if err != nil {
		return err
	}
	t := figures.Table{Title: fmt.Sprintf("start with %d pods", b.more), Header: []any{"", "ms"}}
	for _, name := range []string{bare, start} {
		t.Add(name, figures.MedianOf(results[name], figures.Milliseconds))
	}
	t.Reach("start by the bare list", measure.Ratio(results[start], results[bare], time.Duration.Seconds), 1.5)
	t.Print(b.out)
	return nil
}
