package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

var (
	// ErrGone means that the API server no longer has the history that was asked for.
	ErrGone = errors.New("the API server no longer has this history")
	// ErrTooMuch means that the history is longer than the bound.
	ErrTooMuch = errors.New("the history is longer than it may be")
)

// Past is one thing that happened: Added, Modified or Deleted, and the object after it, which carries its version.
type Past struct {
	Type   watch.EventType
	Object *Object
}

// HistoryBound bounds what History reads.
type HistoryBound struct {
	Events int
	Bytes  int64
}

// History is what happened to a kind after one version, up to and including another, in order. An error wraps
// ErrGone, ErrTooMuch or ErrUnavailable.
//
// It is read with a watch from the older version, to which the API server sends its history at once. The watch has
// no natural end before the newer version is passed; on a quiet kind it is ended by its time-out of one second, the
// shortest there is. Since an API server of several may lag, it is first asked to have the newer version.
func (c *Cluster) History(ctx context.Context, kind Kind, after, until uint64, bound HistoryBound) ([]Past, error) {
	if ok, err := c.HasVersion(ctx, kind, until); err != nil {
		return nil, err
	} else if !ok {
		return nil, fmt.Errorf("%w: it is behind version %d of %s", ErrUnavailable, until, kind)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	second := int64(1)
	body, err := c.client.Get().AbsPath(kind.Path()).VersionedParams(&metav1.ListOptions{
		Watch:           true,
		ResourceVersion: strconv.FormatUint(after, 10),
		TimeoutSeconds:  &second,
	}, metav1.ParameterCodec).Stream(ctx)
	if err != nil {
		return nil, historyError(kind, err)
	}
	defer body.Close()

	var past []Past
	var bytes int64
	compact := compactor{kind: kind}
	dec := newDecoder(body)
	for {
		value, err := dec.ReadValue()
		if err == io.EOF {
			return past, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: reading the history of %s: %w", ErrUnavailable, kind, err)
		}
		event := gjson.GetMany(view(value), "type", "object")
		object := value[event[1].Index : event[1].Index+len(event[1].Raw)]
		switch kindOfEvent := watch.EventType(strings.Clone(event[0].Str)); kindOfEvent {
		case watch.Added, watch.Modified, watch.Deleted:
			o, err := compact.object(object)
			if err != nil {
				return nil, fmt.Errorf("reading the history of %s: %w", kind, err)
			}
			if o.Version() > until {
				return past, nil
			}
			past = append(past, Past{kindOfEvent, o})
			bytes += int64(o.Size())
			if len(past) > bound.Events || bytes > bound.Bytes {
				return nil, fmt.Errorf("%w: of %s after version %d", ErrTooMuch, kind, after)
			}
		case watch.Error:
			return nil, historyError(kind, statusError(object))
		}
	}
}

// HasVersion asks whether the API server has reached a version of a kind, once for all who ask at the same time. The
// API server itself waits some seconds for it. An error wraps ErrUnavailable.
func (c *Cluster) HasVersion(ctx context.Context, kind Kind, version uint64) (bool, error) {
	question := kind.Path() + "@" + strconv.FormatUint(version, 10)
	answer, err := c.once(ctx, question, func(ctx context.Context) (any, error) { return c.hasVersion(ctx, kind, version) })
	has, _ := answer.(bool)
	return has, err
}

func (c *Cluster) hasVersion(ctx context.Context, kind Kind, version uint64) (bool, error) {
	_, err := c.client.Get().AbsPath(kind.Path()).VersionedParams(&metav1.ListOptions{
		Limit:                1,
		ResourceVersion:      strconv.FormatUint(version, 10),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}, metav1.ParameterCodec).MaxRetries(0).DoRaw(ctx)
	switch {
	case err == nil:
		return true, nil
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), apierrors.IsTimeout(err):
		return false, nil
	}
	return false, fmt.Errorf("%w: asking for version %d of %s: %w", ErrUnavailable, version, kind, err)
}

func historyError(kind Kind, err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return fmt.Errorf("%w: of %s: %w", ErrGone, kind, err)
	}
	return fmt.Errorf("%w: reading the history of %s: %w", ErrUnavailable, kind, err)
}
