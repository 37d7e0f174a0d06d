//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/bench/internal/figures"
	"github.com/kubecast/kubecast/bench/internal/gateway"
	"github.com/kubecast/kubecast/bench/internal/measure"
)

// starts measures how long a gateway takes from its start until it is ready. The baseline is the time in which the
// same list is read over a bare connection and dropped. It also measures the other forms in which an API server sends
// the list (see docs/decisions.md).
func (b *bench) starts(ctx context.Context) error {
	const (
		start    = "gateway, from start to ready"
		bare     = "the list over a bare connection"
		http2    = "the list over HTTP/2 (net/http)"
		streamed = "the list as a watch's first events (WatchList)"
	)
	api, err := b.cluster.server()
	if err != nil {
		return err
	}
	var started *gateway.Gateway
	measured := map[string]func() error{
		bare: func() error {
			c, err := api.connect(ctx)
			if err != nil {
				return err
			}
			_, err = c.get(api.request(everyPod))
			return errors.Join(err, c.Close())
		},
		streamed: func() error {
			c, err := api.connect(ctx)
			if err != nil {
				return err
			}
			return errors.Join(c.getUntil(api.request(streamedPods), []byte(metav1.InitialEventsAnnotationKey)), c.Close())
		},
		http2: func() error { return b.cluster.list(ctx) },
		start: func() (err error) {
			started, err = b.startGateway()
			return err
		},
	}
	names := []string{bare, start, http2, streamed}
	results, err := measure.InTurn(b.rounds, names, func(name string) (time.Duration, error) {
		began := time.Now()
		err := measured[name]()
		took := time.Since(began)
		if started != nil {
			started.Stop()
			started = nil
		}
		return took, err
	})
	if err != nil {
		return err
	}
	t := figures.Table{Title: fmt.Sprintf("start with %d pods", b.more), Header: []any{"", "ms"}}
	for _, name := range names {
		t.Add(name, figures.MedianOf(results[name], figures.Milliseconds))
	}
	t.Reach("start by the bare list", measure.Ratio(results[start], results[bare], time.Duration.Seconds), 1.5)
	t.Print(b.out)
	return nil
}
