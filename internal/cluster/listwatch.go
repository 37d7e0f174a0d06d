package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

// Health is told what becomes of a ListWatch's requests: Up when a watch stands, Down when a request failed or a
// watch broke off. A watch that ends as it should is neither. The calls come from the informer's goroutines.
type Health interface {
	Up()
	Down(err error)
}

// ListWatch lists and watches all objects of one kind, as the lister and watcher of an informer. Its objects are
// *Object; between them it sends progress markers (see Object.IsMarker): as the first event of each watch that
// follows a list, after the bookmark that ends a streamed list, and with each other bookmark.
//
// A marker of version V says: all changes up to V have been delivered before it. It is sent as a Modified event, so
// client-go's queue keeps it in order; and because no list contains it, client-go takes it for deleted when it
// replaces its content, and notifies that (as a tombstone) before any addition or update of the new list.
type ListWatch struct {
	client rest.Interface
	kind   Kind
	health Health
}

var _ toolscache.ListerWatcherWithContext = (*ListWatch)(nil)

// List implements toolscache.ListerWatcher.
func (lw *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), options)
}

// Watch implements toolscache.ListerWatcher.
func (lw *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), options)
}

// ListWithContext reads a list, decoding it as it arrives.
func (lw *ListWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	body, err := lw.get(ctx, options)
	if err != nil {
		lw.fail(ctx, err)
		return nil, err
	}
	defer body.Close()
	list, err := decodeList(lw.kind, body)
	if err != nil {
		err = fmt.Errorf("reading the list of %s: %w", lw.kind, err)
		lw.fail(ctx, err)
		return nil, err
	}
	return list, nil
}

// WatchWithContext begins a watch.
func (lw *ListWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	ctx, cancel := context.WithCancel(ctx)
	body, err := lw.get(ctx, options)
	if err != nil {
		lw.fail(ctx, err)
		cancel()
		return nil, err
	}
	w := &watcher{
		compactor: compactor{kind: lw.kind},
		body:      body,
		cancel:    cancel,
		health:    lw.health,
		result:    make(chan watch.Event),
		done:      make(chan struct{}),
	}
	streamed := options.SendInitialEvents != nil && *options.SendInitialEvents
	var from *Object
	if version, err := ParseVersion(options.ResourceVersion); err == nil && !streamed {
		from = newMarker(version)
	}
	if !streamed {
		lw.health.Up()
	}
	go w.run(ctx, from)
	return w, nil
}

func (lw *ListWatch) get(ctx context.Context, options metav1.ListOptions) (io.ReadCloser, error) {
	return lw.client.Get().AbsPath(lw.kind.Path()).VersionedParams(&options, metav1.ParameterCodec).Stream(ctx)
}

// fail reports a failure, unless it is our own doing.
func (lw *ListWatch) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		lw.health.Down(err)
	}
}

// ObjectList is what a list request answered.
type ObjectList struct {
	metav1.ListMeta
	Items []*Object
}

// GetObjectKind implements runtime.Object.
func (*ObjectList) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject is the list itself: nobody changes one.
func (l *ObjectList) DeepCopyObject() runtime.Object { return l }

// decodeList reads {"kind":…,"metadata":{…},"items":[…]}, holding one item at a time.
func decodeList(kind Kind, r io.Reader) (*ObjectList, error) {
	dec := newDecoder(r)
	list := &ObjectList{}
	compact := compactor{kind: kind}
	if err := expect(dec, '{'); err != nil {
		return nil, err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		switch {
		case name.String() == "metadata":
			value, err := dec.ReadValue()
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(value, &list.ListMeta); err != nil {
				return nil, err
			}
		case name.String() == "items" && dec.PeekKind() == '[':
			if _, err := dec.ReadToken(); err != nil {
				return nil, err
			}
			for dec.PeekKind() != ']' {
				value, err := dec.ReadValue()
				if err != nil {
					return nil, err
				}
				item, err := compact.object(value)
				if err != nil {
					return nil, err
				}
				list.Items = append(list.Items, item)
			}
			if _, err := dec.ReadToken(); err != nil {
				return nil, err
			}
		default: // kind, apiVersion; and items that are null
			if err := dec.SkipValue(); err != nil {
				return nil, err
			}
		}
	}
	if err := expect(dec, '}'); err != nil {
		return nil, err
	}
	if list.ResourceVersion == "" {
		return nil, errors.New("the answer is not a list: it has no metadata.resourceVersion")
	}
	return list, nil
}

func expect(dec *jsontext.Decoder, kind jsontext.Kind) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != kind {
		return fmt.Errorf("%q was expected, not %q", kind, token.Kind())
	}
	return nil
}

// newDecoder does not look for duplicate names, which the API server's encoder cannot produce and which cost a
// third of the decoding.
func newDecoder(r io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true))
}

// watcher reads the events of one watch from its body.
type watcher struct {
	compactor
	body   io.ReadCloser
	cancel context.CancelFunc
	health Health
	result chan watch.Event
	done   chan struct{}
}

// Stop implements watch.Interface; it waits until the watch's goroutine has ended.
func (w *watcher) Stop() {
	w.cancel()
	<-w.done
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

func (w *watcher) run(ctx context.Context, from *Object) {
	defer close(w.done)
	defer close(w.result)
	defer w.body.Close()
	defer w.cancel()
	// A read that blocks ends when the request's context does: the transport closes the body.
	if from != nil && !w.send(ctx, watch.Modified, from) {
		return
	}
	dec := newDecoder(w.body)
	began, events := time.Now(), 0
	for {
		value, err := dec.ReadValue()
		if err == nil {
			events++
			err = w.event(ctx, value)
		}
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil: // stopped
		case events == 0 && time.Since(began) < shortWatch:
			// client-go backs off from such watches, but our marker would look to it like an event.
			w.health.Down(err)
			w.send(ctx, watch.Error, asStatus(fmt.Errorf("the watch ended as soon as it began: %w", err)))
		case err == io.EOF: // the watch's time was up
		case isInterruption(err):
			// client-go watches on from where it was.
			w.health.Down(err)
		default:
			w.health.Down(err)
			w.send(ctx, watch.Error, asStatus(err))
		}
		return
	}
}

// shortWatch is how long a watch without events must have lasted to be repeated at once; client-go's own limit.
const shortWatch = time.Second

// isInterruption tells a connection that broke from a body that makes no sense.
func isInterruption(err error) bool {
	var syntax *jsontext.SyntacticError
	var event *eventError
	return errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &syntax) && !errors.As(err, &event)
}

// eventError is an event that could not be used, though it could be read.
type eventError struct{ err error }

func (e *eventError) Error() string { return e.err.Error() }
func (e *eventError) Unwrap() error { return e.err }

// event sends on one {"type":…,"object":…}.
func (w *watcher) event(ctx context.Context, value []byte) error {
	event := gjson.GetMany(view(value), "type", "object")
	// The value is in the decoder's buffer, which the next one overwrites: nothing of it may be sent on.
	kind, object := watch.EventType(strings.Clone(event[0].Str)), value[event[1].Index:event[1].Index+len(event[1].Raw)]
	switch kind {
	case watch.Added, watch.Modified, watch.Deleted:
		o, err := w.object(object)
		if err != nil {
			return &eventError{fmt.Errorf("reading a watch event: %w", err)}
		}
		w.send(ctx, kind, o)
	case watch.Bookmark:
		metadata := gjson.GetBytes(object, "metadata")
		version, err := ParseVersion(metadata.Get("resourceVersion").Str)
		if err != nil {
			return &eventError{fmt.Errorf("reading a bookmark: %w", err)}
		}
		bookmark := newMarker(version)
		if metadata.Get("annotations.k8s\\.io/initial-events-end").Str == "true" {
			bookmark.json = `{"metadata":{"annotations":{"` + metav1.InitialEventsAnnotationKey + `":"true"}}}`
			w.health.Up()
		}
		if w.send(ctx, watch.Bookmark, bookmark) {
			w.send(ctx, watch.Modified, newMarker(version))
		}
	case watch.Error:
		return &eventError{statusError(object)}
	default:
		return &eventError{fmt.Errorf("a watch event of the unknown type %q", kind)}
	}
	return nil
}

// statusError is the error that a watch tells.
func statusError(object []byte) error {
	status := &metav1.Status{}
	if err := json.Unmarshal(object, status); err != nil {
		return fmt.Errorf("reading a watch's error: %w", err)
	}
	return apierrors.FromObject(status)
}

// send reports false when the watch was stopped.
func (w *watcher) send(ctx context.Context, kind watch.EventType, object runtime.Object) bool {
	select {
	case w.result <- watch.Event{Type: kind, Object: object}:
		return true
	case <-ctx.Done():
		return false
	}
}

// asStatus is an error in the form in which a watch tells it; what broke off is a 500, upon which client-go lists
// or watches again.
func asStatus(err error) *metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		return &s
	}
	s := apierrors.NewInternalError(err).Status()
	return &s
}
