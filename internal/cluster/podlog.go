package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var (
	// ErrLogsRefused means that the gateway itself may not read logs.
	ErrLogsRefused = errors.New("the gateway may not get pods/log")
	// ErrNoPod means that there is no pod of a name.
	ErrNoPod = errors.New("there is no such pod")
)

// PodLog asks for the log of a container, with Kubernetes' parameters (PodLogOptions). The answer
// is the API server's own, of whatever status, and its body must be closed; with the parameter
// follow, it lasts as long as the container runs. It comes with the first line: a container that
// writes nothing has no answer yet. The names must be valid segments of a path. An error wraps
// ErrUnavailable or ErrLogsRefused, or is the context's.
//
// Each log has a connection of its own (see transports). On a shared one, what a client does not
// read would fill the gateway's memory, megabytes for each; here it fills the sockets, and then the
// kubelet waits.
func (c *Cluster) PodLog(ctx context.Context, namespace, pod string, query url.Values) (*http.Response, error) {
	if err := c.Away(); err != nil {
		return nil, err
	}
	address := c.lists.Get().AbsPath("/api/v1/namespaces", namespace, "pods", pod, "log").URL()
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, */*")
	response, err := c.logs.Do(request)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			_ = response.Body.Close() // nothing was written
		}
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w: a log of cluster %s: %w", ErrUnavailable, c.name, err)
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		_ = response.Body.Close() // likewise
		return nil, fmt.Errorf("%w of cluster %s: %s", ErrLogsRefused, c.name, response.Status)
	}
	return response, nil
}

// Pod reads a pod as it is now. An error wraps ErrUnavailable or ErrNoPod.
func (c *Cluster) Pod(ctx context.Context, namespace, name string) (*Object, error) {
	pod, err := c.Get(ctx, Kind{Version: "v1", Resource: "pods", Namespaced: true}, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: %w", ErrNoPod, err)
	}
	return pod, err
}
