package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

var (
	// ErrExpired means that the API server no longer has the history that was asked for.
	ErrExpired = errors.New("the API server no longer has this history")
	// ErrTooMuch means that the history is longer than the bound.
	ErrTooMuch = errors.New("the history is longer than it may be")
)

// PastChange is one change of the past: Added, Modified or Deleted, and the object after it, which
// carries the version of the change.
type PastChange struct {
	Type   watch.EventType
	Object *Object
}

// HistoryBound bounds what History returns; Bytes counts the objects.
type HistoryBound struct {
	Events int
	Bytes  int64
}

// History returns what happened to a kind after one version, up to and including another, in order. An error wraps
// ErrExpired, ErrTooMuch or ErrUnavailable.
//
// It is read with a watch from the older version: the API server sends its history on that at once. An event of a
// version after until shows that all of it was sent, and so does a bookmark of until or later. A quiet kind has only
// the bookmark, which the API server sends two seconds before the watch's time-out; so the time-out is three seconds.
// An API server that sends no bookmarks is believed if it sent something, then nothing for the last two seconds, and no more in
// another watch: one that sends bookmarks, and was too busy in the middle of its history, goes on in that.
// One that sent nothing at all may have been too busy. With several API servers, one may lag behind; so it is first
// asked whether it has the newer version.
func (c *Cluster) History(ctx context.Context, kind Kind, after, until uint64, bound HistoryBound) ([]PastChange, error) {
	if after == 0 {
		return nil, fmt.Errorf("%w: a watch from version 0 is one from any", ErrExpired)
	}
	if ok, err := c.reaches(ctx, kind, until); err != nil {
		return nil, err
	} else if !ok {
		return nil, fmt.Errorf("%w: it is behind version %d of %s", ErrUnavailable, until, kind)
	}
	h := history{kind: kind, after: after, until: until, bound: bound}
	for {
		complete, err := h.read(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("reading the history of %s after version %d: %w", kind, after, err)
		}
		if complete {
			return h.past, nil
		}
	}
}

// history is what has been read so far.
type history struct {
	kind  Kind
	after uint64 // everything up to this version has been read
	until uint64
	bound HistoryBound
	past  []PastChange
	bytes int64
	quiet uint64 // the newest version that the watch before told, if it ended in silence behind that
}

const (
	// historyTime is how long a watch for a history lasts, in seconds.
	historyTime = 3
	// silence is how long an API server without bookmarks must have sent nothing before the end of the watch counts
	// as the end of the history. Otherwise the time-out may have ended the watch in the middle of a history that
	// takes longer to send.
	silence = 2 * time.Second
)

// read reads one watch. It reports whether the history is complete. If not, the next read goes on after what was
// read.
func (h *history) read(ctx context.Context, c *Cluster) (complete bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seconds := int64(historyTime)
	body, err := c.client.Get().AbsPath(h.kind.Path()).SetHeader(RelistHeader, RelistEnds).VersionedParams(&metav1.ListOptions{
		Watch:               true,
		AllowWatchBookmarks: true,
		ResourceVersion:     strconv.FormatUint(h.after, 10),
		TimeoutSeconds:      &seconds,
	}, metav1.ParameterCodec).Stream(ctx)
	if err != nil {
		return false, historyError(err)
	}
	defer body.Close()

	compact := compactor{kind: h.kind}
	dec := newDecoder(body)
	before, newest, quiet := h.after, time.Now(), h.quiet
	h.quiet = 0
	for {
		value, err := dec.ReadValue()
		switch {
		case err == io.EOF && h.after == quiet && time.Since(newest) >= silence:
			return true, nil
		case err == io.EOF && h.after > before && time.Since(newest) >= silence:
			h.quiet = h.after
			h.dropNewest()
			return false, nil
		case err == io.EOF && h.dropNewest() && h.after > before:
			return false, nil
		case err == io.EOF:
			return false, fmt.Errorf("%w: the watch ended, and nothing shows that it told all", ErrUnavailable)
		case err != nil:
			return false, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		newest = time.Now()
		event := gjson.GetMany(view(value), "type", "object")
		object := value[event[1].Index : event[1].Index+len(event[1].Raw)]
		// The value is in the decoder's buffer, which the next value overwrites.
		switch kindOfEvent := watch.EventType(strings.Clone(event[0].Str)); kindOfEvent {
		case watch.Added, watch.Modified, watch.Deleted:
			o, err := compact.object(object)
			if err == nil {
				err = c.shardOf(h.kind).Refuse(o.UID())
			}
			if err != nil {
				return false, err
			}
			if o.Version() > h.until {
				return true, nil
			}
			h.past, h.after = append(h.past, PastChange{kindOfEvent, o}), o.Version()
			h.bytes += int64(o.Size())
			if len(h.past) > h.bound.Events || h.bytes > h.bound.Bytes {
				return false, ErrTooMuch
			}
		case watch.Bookmark:
			version, err := ParseVersion(gjson.GetBytes(object, "metadata.resourceVersion").Str)
			if err != nil {
				return false, err
			}
			if version >= h.until {
				return true, nil
			}
		case watch.Error:
			return false, historyError(statusError(object))
		}
	}
}

// dropNewest forgets the events of the newest version, since the watch may have ended before others of the same
// version.
func (h *history) dropNewest() bool {
	n := len(h.past)
	for n > 0 && h.past[n-1].Object.Version() == h.after {
		n--
		h.bytes -= int64(h.past[n].Object.Size())
	}
	dropped := n < len(h.past)
	h.past = h.past[:n]
	h.after--
	return dropped
}

// reaches asks the API server whether it has reached a version of a kind. The API server waits for it for some
// seconds.
func (c *Cluster) reaches(ctx context.Context, kind Kind, version uint64) (bool, error) {
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

// Forgotten is an ErrExpired of an API server that said from which version on it still has what
// happened. One that was restarted knows nothing of what was before, though etcd still has the
// states at those versions.
type Forgotten struct {
	Since uint64 // a watch from this version gets what happened after it
	cause error
}

func (f *Forgotten) Error() string { return fmt.Sprintf("%v: %v", ErrExpired, f.cause) }

// Unwrap implements errors.Is and errors.As.
func (f *Forgotten) Unwrap() []error { return []error{ErrExpired, f.cause} }

// forgotten reads what the API server's watch cache says: "too old resource version: 123 (456)".
// The text is no promise; what is made of it is checked by the watch that follows.
var forgotten = regexp.MustCompile(`too old resource version: \d+ \((\d+)\)`)

// ListAt lists a kind as it was at a version, which etcd has not compacted. An error wraps
// ErrExpired or ErrUnavailable.
func (c *Cluster) ListAt(ctx context.Context, kind Kind, version uint64) ([]*Object, error) {
	body, err := c.client.Get().AbsPath(kind.Path()).VersionedParams(&metav1.ListOptions{
		ResourceVersion: strconv.FormatUint(version, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}, metav1.ParameterCodec).Stream(ctx)
	if err != nil {
		return nil, historyError(err)
	}
	defer body.Close()
	list, err := decodeList(kind, body)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case list.ResourceVersion != strconv.FormatUint(version, 10):
		return nil, fmt.Errorf("%w: version %s was listed in place of %d", ErrUnavailable, list.ResourceVersion, version)
	}
	for _, o := range list.Items {
		if err := c.shardOf(kind).Refuse(o.UID()); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return list.Items, nil
}

func historyError(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		if found := forgotten.FindStringSubmatch(err.Error()); found != nil {
			if since, bad := ParseVersion(found[1]); bad == nil {
				return &Forgotten{Since: since, cause: err}
			}
		}
		return fmt.Errorf("%w: %w", ErrExpired, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
