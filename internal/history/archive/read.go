package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/history"
	"github.com/kubecast/kubecast/internal/history/store"
)

// ErrAway means that the database cannot be read now.
var ErrAway = errors.New("the history's database cannot be read")

// readWithin is how long one question to the database may take.
const readWithin = 10 * time.Second

// Records reports whether the history of a kind, given as resource[.group], is kept.
func (a *Archive) Records(kind string) bool { return slices.Contains(a.kinds, kind) }

// Jobs is a page of a kind's jobs; see store.Store.Jobs. An error wraps ErrAway, or is of the cluster, or of the context.
func (a *Archive) Jobs(ctx context.Context, c *cluster.Cluster, kind string, f store.Filter, after store.JobAfter, limit int) ([]*history.Job, error) {
	return read(ctx, a, c, kind, func(ctx context.Context, log store.Log) ([]*history.Job, error) {
		return a.read.Jobs(ctx, log, f, after, limit)
	})
}

// Transitions is a page of a kind's transitions, the newest first, of those before a number; 0 is before all. Errors are those
// of Jobs.
func (a *Archive) Transitions(ctx context.Context, c *cluster.Cluster, kind string, f store.Filter, before uint64, limit int) ([]*history.Transition, error) {
	return read(ctx, a, c, kind, func(ctx context.Context, log store.Log) ([]*history.Transition, error) {
		return a.read.Transitions(ctx, log, f, before, limit)
	})
}

// read asks the database about a log. What was never recorded is empty.
func read[T any](ctx context.Context, a *Archive, c *cluster.Cluster, kind string, ask func(context.Context, store.Log) ([]T, error)) ([]T, error) {
	identity, err := c.Identity(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-a.ready:
	default:
		return nil, fmt.Errorf("%w: its schema is not ready", ErrAway)
	}
	within, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	log, err := a.read.Find(within, store.LogName{Cluster: identity, Resource: kind})
	if errors.Is(err, store.ErrNoLog) {
		return nil, nil
	}
	var found []T
	if err == nil {
		found, err = ask(within, log)
	}
	switch {
	case err == nil:
		return found, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	a.metrics.Failed(ctx, err)
	return nil, fmt.Errorf("%w: %w", ErrAway, err)
}

// split takes resource.group apart.
func split(kind string) (resource, group string) {
	resource, group, _ = strings.Cut(kind, ".")
	return resource, group
}
