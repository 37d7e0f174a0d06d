package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var (
	// ErrMeasurementsRefused means that the gateway itself may not list what is measured.
	ErrMeasurementsRefused = errors.New("the gateway may not list metrics.k8s.io")
	// ErrNotMeasured means that the cluster answered, but not what measures for it.
	ErrNotMeasured = errors.New("the cluster's metrics.k8s.io does not answer")
)

// IsMeasured reports whether a kind is of metrics.k8s.io, in any version: what nodes and pods use
// just now. An API server of its own (metrics-server) makes these objects for each list, without
// versions, and tells nobody of changes.
func IsMeasured(group, resource string) bool {
	return group == "metrics.k8s.io" && (resource == "nodes" || resource == "pods")
}

// newMeasurement is NewObject for an object without a version.
func newMeasurement(json string) (*Object, error) {
	o, _, err := readObject(json)
	return o, err
}

const (
	// measurementsFresh is for how long a list of measurements is answered again. metrics-server measures every 15 s.
	measurementsFresh = 5 * time.Second
	// measurementsFailed is for how long it is not asked again for what it has refused, or did not answer.
	measurementsFailed = time.Second
	// maxMeasurements bounds one list, in bytes: those of some 100,000 pods.
	maxMeasurements = 64 << 20
)

// Measurements are the objects of a kind that is measured, at one moment. They are shared, and never change.
type Measurements struct {
	objects []*Object // in the order of Compare
	err     error     // why there are none
}

// Get finds an object, or nil.
func (m *Measurements) Get(namespace, name string) *Object {
	i, found := m.find(namespace, name)
	if !found {
		return nil
	}
	return m.objects[i]
}

func (m *Measurements) find(namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(m.objects, name, func(o *Object, _ string) int {
		return Compare(o.namespace, o.name, namespace, name)
	})
}

// In returns the objects of a namespace, or all of them for "", in the order of Kubernetes' lists.
func (m *Measurements) In(namespace string) []*Object {
	if namespace == "" {
		return m.objects
	}
	first, _ := m.find(namespace, "")
	rest := m.objects[first:]
	if end := slices.IndexFunc(rest, func(o *Object) bool { return o.namespace != namespace }); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// Measurements lists a kind that is measured, in all namespaces. Whoever asks within
// measurementsFresh shares the answer, and whoever asks at the same time the request, so it does
// not matter how many ask. Nothing is answered that is older. An error wraps ErrUnavailable,
// ErrNotMeasured, ErrMeasurementsRefused or ErrNoKind, or is the context's.
func (c *Cluster) Measurements(ctx context.Context, kind Kind) (*Measurements, error) {
	if m, ok := c.measurements.get(kind); ok {
		return m, m.err
	}
	answer, err := c.once(ctx, "measurements "+kind.Path(), func(ctx context.Context) (any, error) {
		if m, ok := c.measurements.get(kind); ok { // made since the caller looked
			return m, nil
		}
		m := &Measurements{}
		lasting := measurementsFresh
		if m.objects, m.err = c.measure(ctx, kind); m.err != nil {
			lasting = measurementsFailed
		}
		c.measurements.keep(kind, m, lasting)
		return m, nil
	})
	if err != nil {
		return nil, err
	}
	m := answer.(*Measurements)
	return m, m.err
}

func (c *Cluster) measure(ctx context.Context, kind Kind) ([]*Object, error) {
	failed := func(err error) ([]*Object, error) {
		return nil, fmt.Errorf("%w: %s of cluster %s: %w", ErrNotMeasured, kind, c.name, err)
	}
	body, err := c.lists.Get().AbsPath(kind.Path()).MaxRetries(0).Stream(ctx)
	switch {
	case apierrors.IsNotFound(err):
		c.Changed(kind.Group)
		return nil, fmt.Errorf("%w: %s (cluster %s): %w", ErrNoKind, kind, c.name, err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return nil, fmt.Errorf("%w of cluster %s: %w", ErrMeasurementsRefused, c.name, err)
	case err != nil:
		return failed(err)
	}
	defer body.Close()
	bounded := &io.LimitedReader{R: body, N: maxMeasurements}
	list, err := decodeList(kind, bounded)
	switch {
	case bounded.N == 0:
		return failed(fmt.Errorf("its list is larger than %d bytes", maxMeasurements))
	case err != nil:
		return failed(err)
	}
	slices.SortFunc(list.Items, func(a, b *Object) int { return Compare(a.namespace, a.name, b.namespace, b.name) })
	return list.Items, nil
}
