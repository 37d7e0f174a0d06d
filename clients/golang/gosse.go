package main

import (
	"context"
	"net/http"
	"time"

	"github.com/tmaxmax/go-sse"
)

func runGoSSE(ctx context.Context, s stream) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return err
	}
	client := &sse.Client{
		HTTPClient: s.httpClient(),
		OnRetry:    func(err error, _ time.Duration) { s.lost(err) },
	}
	connection := client.NewConnection(request)
	if s.Raised {
		connection.Buffer(nil, maxEvent)
	}
	connection.SubscribeToAll(func(e sse.Event) {
		if e.Type != "" {
			s.event(e.Type, e.LastEventID, e.Data)
		}
	})
	return connection.Connect()
}
