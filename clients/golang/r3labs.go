package main

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/r3labs/sse/v2"
)

// runR3labs subscribes again after a clean end, which the library takes for final. After an error the library retries
// by itself for up to a quarter of an hour, with its own back-off instead of the server's retry.
func runR3labs(ctx context.Context, s stream) error {
	var options []func(*sse.Client)
	if s.Raised {
		options = append(options, sse.ClientMaxBufferSize(maxEvent))
	}
	client := sse.NewClient(s.URL, options...)
	client.Connection = s.httpClient()
	client.ReconnectNotify = func(err error, _ time.Duration) { s.lost(err) }
	retry := time.Second
	for {
		err := client.SubscribeRawWithContext(ctx, func(e *sse.Event) {
			if ms, err := strconv.Atoi(string(e.Retry)); err == nil {
				retry = time.Duration(ms) * time.Millisecond
			}
			if len(e.Event) > 0 {
				s.event(string(e.Event), string(e.ID), string(e.Data))
			}
		})
		if err != nil {
			return err
		}
		s.send(report{Type: "ended"})
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retry/2 + rand.N(retry)):
		}
	}
}
