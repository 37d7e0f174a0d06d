package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/r3labs/sse/v2"
	"gopkg.in/cenkalti/backoff.v1"
)

// byLibrary connects with the SSE client of r3labs/sse, as gateway watch does. When a connection breaks, that library
// delivers the part of the last frame that came. Such an event and its id are left out.
func byLibrary(ctx context.Context, url string, header http.Header, each func(frame) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := sse.NewClient(url, sse.ClientMaxBufferSize(8<<20))
	client.ReconnectStrategy = &backoff.StopBackOff{}
	for name := range header {
		client.Headers[name] = header.Get(name)
	}
	client.ResponseValidator = func(_ *sse.Client, response *http.Response) error {
		if response.StatusCode == http.StatusOK {
			return nil
		}
		body, err := io.ReadAll(response.Body)
		return errors.Join(errStatus{answer{response.StatusCode, response.Header, string(body)}}, err, response.Body.Close())
	}
	var failed error
	err := client.SubscribeRawWithContext(ctx, func(event *sse.Event) {
		if failed != nil || !json.Valid(event.Data) || len(event.Event) == 0 {
			return
		}
		if failed = each(frame{event: string(event.Event), id: string(event.ID), data: string(bytes.Clone(event.Data))}); failed != nil {
			cancel()
		}
	})
	return errors.Join(failed, err)
}
