package main

import (
	"context"
	"net/http"

	"github.com/launchdarkly/eventsource"
)

// runLaunchDarkly makes the library retry the first connection, too, which is not its default.
func runLaunchDarkly(ctx context.Context, s stream) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return err
	}
	source, err := eventsource.SubscribeWithRequestAndOptions(request,
		eventsource.StreamOptionHTTPClient(s.httpClient()),
		eventsource.StreamOptionCanRetryFirstConnection(-1),
		eventsource.StreamOptionErrorHandler(func(err error) eventsource.StreamErrorHandlerResult {
			if ctx.Err() != nil {
				return eventsource.StreamErrorHandlerResult{CloseNow: true}
			}
			s.lost(err)
			return eventsource.StreamErrorHandlerResult{}
		}))
	if err != nil {
		return err
	}
	for event := range source.Events {
		if event.Event() != "" { // without a name it is the library's own event for a retry
			s.event(event.Event(), event.Id(), event.Data())
		}
	}
	return nil
}
