package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubecast/kubecast/internal/backoff"
)

// newest is the newest version of a kind at some moment.
type newest struct {
	version uint64
	asked   time.Time
}

const (
	// newestTogether is how long a request for the newest version is held back, so that other callers can join it.
	newestTogether = 20 * time.Millisecond
	// newestFor is how long an answer is remembered.
	newestFor = time.Second
	// newestAgain is how long to wait before asking a second time for a version that was not reached: the server that
	// answers may be a cache that lags behind, such as another gateway.
	newestAgain = time.Second
)

// HasVersion reports whether the cluster has reached a version of a kind. An error wraps ErrUnavailable.
//
// Clients claim these versions, and may invent them. So the API server is not asked for each version, since it would
// wait some seconds for each that it does not have. It is asked for its newest version instead: once for all callers
// that ask at the same time, whatever they claim.
func (c *Cluster) HasVersion(ctx context.Context, kind Kind, version uint64) (bool, error) {
	if c.remembersVersion(kind, version) {
		return true, nil
	}
	for again := false; ; again = true {
		now, err := c.Newest(ctx, kind)
		switch {
		case err != nil:
			return false, err
		case version <= now || again:
			return version <= now, nil
		}
		if !backoff.Pause(ctx, newestAgain) {
			return false, ctx.Err()
		}
	}
}

// Lists is nil if the API server lists a kind for the gateway, and its error if it does not.
func (c *Cluster) Lists(ctx context.Context, kind Kind) error {
	_, err := c.Newest(ctx, kind)
	return err
}

func (c *Cluster) remembersVersion(kind Kind, version uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.newest[kind]
	return version <= known.version && time.Since(known.asked) < newestFor
}

// Newest returns the newest version of a kind, asked for no earlier than at the call. An error wraps ErrUnavailable.
func (c *Cluster) Newest(ctx context.Context, kind Kind) (uint64, error) {
	for called := time.Now(); ; {
		answer, err := c.once(ctx, "newest "+kind.Path(), func(ctx context.Context) (any, error) { return c.askNewest(ctx, kind) })
		if err != nil {
			return 0, err
		}
		if found := answer.(newest); !found.asked.Before(called) {
			return found.version, nil
		}
		// The request was under way when the call came.
	}
}

func (c *Cluster) askNewest(ctx context.Context, kind Kind) (newest, error) {
	backoff.Pause(ctx, newestTogether)
	found := newest{asked: time.Now()}
	var err error
	if found.version, err = newestVersion(ctx, c.client, kind); err != nil {
		return found, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest == nil {
		c.newest = map[Kind]newest{}
	}
	c.newest[kind] = found
	return found, nil
}

// newestVersion asks for the newest version of a kind: a list without a version asks for the newest
// state, even of an API server that lags behind others. An error wraps ErrUnavailable.
func newestVersion(ctx context.Context, client rest.Interface, kind Kind) (version uint64, err error) {
	body, err := client.Get().AbsPath(kind.Path()).VersionedParams(&metav1.ListOptions{Limit: 1}, metav1.ParameterCodec).MaxRetries(0).DoRaw(ctx)
	if err == nil {
		version, err = ParseVersion(gjson.GetBytes(body, "metadata.resourceVersion").Str)
		// See resumeGuard.listed.
		if of, bad := ParseVersion(gjson.GetBytes(body, "items.0.metadata.resourceVersion").Str); bad == nil {
			version = max(version, of)
		}
	}
	if err != nil {
		return version, fmt.Errorf("%w: asking for the newest version of %s: %w", ErrUnavailable, kind, withStatus(err))
	}
	return version, nil
}
