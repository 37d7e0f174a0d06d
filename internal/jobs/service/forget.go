package service

import (
	"context"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/jobs"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

const (
	// forgetAtOnce is how many jobs of a log that is no longer recorded are removed in one transaction.
	forgetAtOnce = 100
	// forgetRest is how long nothing is removed after a removal, as a multiple of the time that the removal took; it is
	// at least leastRest. See retention.go of package recorder.
	forgetRest, leastRest = 3, 200 * time.Millisecond
	// forgetAgain is how long after everything was removed the next search for more begins.
	forgetAgain = time.Hour
)

// forget removes, little by little, the logs of clusters and kinds that nobody has recorded for as long as jobs are
// kept. A log that belongs to this gateway stays, since its cluster may only have been away for so long.
func (a *Service) forget(ctx context.Context) {
	if a.opts.Keep == 0 {
		return
	}
	for wait := leastRest; ; {
		if !backoff.Pause(ctx, wait) {
			return
		}
		if !a.forgetting.TryLock() {
			wait = forgetAgain
			continue
		}
		began := time.Now()
		more, err := a.forgetSome(ctx)
		a.forgetting.Unlock()
		if wait = forgetAgain; more {
			wait = max(leastRest, forgetRest*time.Since(began))
		}
		if err != nil && ctx.Err() == nil {
			a.metrics.Failed(ctx, err)
			a.log.Warn("what is no longer recorded is not removed for now", "error", store.Named(err))
		}
	}
}

// forgetSome removes a part of one log; more says that there may be more to remove.
func (a *Service) forgetSome(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageWithin)
	defer cancel()
	since := jobs.At(time.Now().Add(-a.opts.Keep))
	database := a.database.For(store.System("retention"))
	logs, err := database.Unused(ctx, since)
	if err != nil {
		return false, err
	}
	logs = slices.DeleteFunc(logs, func(u store.Unused) bool { return a.isOurs(ctx, u) })
	if len(logs) == 0 {
		return false, nil
	}
	removed, err := database.Forget(ctx, logs[0].Log, since, forgetAtOnce)
	if err != nil {
		return false, err
	}
	a.metrics.Removed(removed)
	if !removed.More {
		a.log.Info("the history of what is no longer recorded was removed", "cluster", logs[0].People, "kind", logs[0].Resource)
	}
	return true, nil
}

// isOurs reports whether a log may be one that this gateway records. For a cluster whose identity cannot be asked for,
// the name decides.
func (a *Service) isOurs(ctx context.Context, u store.Unused) bool {
	if !a.Records(u.Resource) && (u.Resource != store.RunsResource || !a.recordsRuns()) {
		return false
	}
	a.mu.Lock()
	clusters := slices.Clone(a.clusters)
	a.mu.Unlock()
	return slices.ContainsFunc(clusters, func(c *cluster.Cluster) bool {
		identity, err := c.Identity(ctx)
		return err == nil && identity == u.Cluster || err != nil && c.Name() == u.People
	})
}
