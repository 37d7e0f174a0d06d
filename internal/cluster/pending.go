package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidwall/gjson"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// ErrNoPositions means that nobody says in which order the Workloads of a queue wait: Kueue's visibility API is not
// installed or does not answer, or the gateway may not read it.
var ErrNoPositions = errors.New("the visibility API of Kueue does not answer")

// Pending is a Workload that waits in a ClusterQueue.
type Pending struct {
	Namespace, Name string
	LocalQueue      string // in the Workload's namespace
}

const (
	// pendingFresh is for how long an order is answered again: a change of it is to be told within a second.
	pendingFresh = 250 * time.Millisecond
	// pendingShare is by how much longer than the asking took an order is answered again at most. What took less than
	// pendingFresh is asked again after that, and what took longer ever more seldom.
	pendingShare = 4
	// pendingWithin is within what it has to be answered, since callers wait for it. What was not
	// answered in time is not asked again for pendingLate, what was refused for pendingFailed.
	pendingWithin = 2 * time.Second
	pendingLate   = 30 * time.Second
	pendingFailed = 5 * time.Second
	// maxPending bounds how many Workloads of a queue are read, and maxPendingBytes the answer.
	maxPending      = 20_000
	maxPendingBytes = 64 << 20
)

// VisibilityGroup is the group of Kueue's visibility API.
const VisibilityGroup = "visibility.kueue.x-k8s.io"

// visibilityVersions are the versions of Kueue's visibility API, whose answers are alike; the newest first.
var visibilityVersions = []string{"v1beta2", "v1beta1"}

// PendingOrder is in which order the Workloads of a ClusterQueue wait.
type PendingOrder struct {
	Pending []Pending
	Asked   time.Time // when Kueue was asked
	Until   time.Time // it is not asked again before

	err error // why nobody says so
}

// PendingWorkloads are the Workloads that wait in a ClusterQueue, in Kueue's own order. They are
// shared, as Measurements are, by all who ask within a moment, and must not be changed. An error
// wraps ErrNoPositions or ErrUnavailable, or is the context's; what is said of when is true even so.
func (c *Cluster) PendingWorkloads(ctx context.Context, clusterQueue string) (PendingOrder, error) {
	if len(content.IsPathSegmentName(clusterQueue)) > 0 {
		return PendingOrder{}, ErrNoPositions
	}
	if o, ok := c.orders.get(clusterQueue); ok {
		return o, o.err
	}
	answer, err := c.once(ctx, "pending "+clusterQueue, func(ctx context.Context) (any, error) {
		if o, ok := c.orders.get(clusterQueue); ok { // made since the caller looked
			return o, nil
		}
		o, lasting := PendingOrder{Asked: time.Now()}, pendingFresh
		ctx, cancel := context.WithTimeout(ctx, pendingWithin)
		defer cancel()
		o.Pending, o.err = c.askPending(ctx, clusterQueue)
		switch {
		case ctx.Err() != nil:
			lasting = pendingLate
		case o.err != nil:
			lasting = pendingFailed
		}
		lasting = max(lasting, pauseOf(time.Since(o.Asked)))
		o.Until = time.Now().Add(lasting)
		c.orders.keep(clusterQueue, o, lasting)
		return o, nil
	})
	if err != nil {
		return PendingOrder{}, err
	}
	o := answer.(PendingOrder)
	return o, o.err
}

// pauseOf is for how long Kueue is left alone that took so long: the longer it takes, the more of its time it has for other things.
func pauseOf(took time.Duration) time.Duration {
	return time.Duration(float64(took) * min(pendingShare, took.Seconds()/pendingFresh.Seconds()))
}

func (c *Cluster) askPending(ctx context.Context, clusterQueue string) (_ []Pending, err error) {
	for _, version := range visibilityVersions {
		var body io.ReadCloser
		path := "/apis/" + VisibilityGroup + "/" + version + "/clusterqueues/" + clusterQueue + "/pendingworkloads"
		body, err = c.lists.Get().AbsPath(path).Param("limit", fmt.Sprint(maxPending)).MaxRetries(0).Stream(ctx)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			break
		}
		defer body.Close()
		return readPending(body)
	}
	return nil, fmt.Errorf("%w: cluster %s: %w", ErrNoPositions, c.name, err)
}

// readPending reads a PendingWorkloadsSummary.
func readPending(body io.Reader) ([]Pending, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxPendingBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNoPositions, err)
	case len(text) > maxPendingBytes, !gjson.ValidBytes(text):
		return nil, fmt.Errorf("%w: its answer of %d bytes is not taken", ErrNoPositions, len(text))
	}
	pending := []Pending{}
	gjson.GetBytes(text, "items").ForEach(func(_, item gjson.Result) bool {
		pending = append(pending, Pending{
			Namespace: item.Get("metadata.namespace").Str, Name: item.Get("metadata.name").Str,
			LocalQueue: item.Get("localQueueName").Str,
		})
		return true
	})
	return pending, nil
}
