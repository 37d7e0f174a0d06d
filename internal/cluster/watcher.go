package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher reads the events of one watch from its body.
type watcher struct {
	compactor
	lw      *ListWatch
	body    io.ReadCloser
	cancel  context.CancelFunc
	result  chan watch.Event
	done    chan struct{}
	planned time.Time // from when on its end counts as planned
	number  int64     // among the watches of its ListWatch
	proof   proof

	passed uint64 // the version of what was delivered last; 0: nothing was
	quiet  *time.Timer

	mu     sync.Mutex
	proved bool // a marker with the number was delivered
	over   bool // nothing is delivered any more
}

// Stop implements watch.Interface. It waits until the watch's goroutine has ended.
func (w *watcher) Stop() {
	w.cancel()
	<-w.done
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

func (w *watcher) run(ctx context.Context, from *Object) {
	defer close(w.done)
	defer close(w.result)
	defer w.prove(ctx, true)
	defer w.body.Close()
	defer w.cancel()
	// A read that blocks ends with the request's context, since the transport then closes the body.
	if from != nil {
		if !w.send(ctx, watch.Modified, from) {
			return
		}
		w.pass(from.version)
		w.proved = from.Proves() != 0
	}
	w.proof.giveAfter(shortWatch)
	dec := newDecoder(w.body)
	began, events := time.Now(), 0
	w.quiet = time.AfterFunc(shortWatch, func() { w.prove(ctx, false) })
	defer w.quiet.Stop()
	for {
		value, err := dec.ReadValue()
		w.quiet.Stop()
		if err == nil {
			events++
			err = w.event(ctx, value)
		}
		if err == nil {
			if time.Since(began) > provedWithin {
				w.prove(ctx, false)
			}
			w.quiet.Reset(shortWatch)
			continue
		}
		w.proof.withhold()
		if err != io.EOF || time.Now().Before(w.planned) {
			w.lw.timeline.interrupted()
		}
		switch {
		case ctx.Err() != nil: // the watch was stopped
		case events == 0 && time.Since(began) < shortWatch:
			// client-go backs off from watches that end at once without an event. It would take the marker for an
			// event, so it gets an error.
			err = fmt.Errorf("the watch ended as soon as it began: %w", err)
			w.lw.health.Down(err)
			w.send(ctx, watch.Error, asStatus(err))
		case err == io.EOF: // the watch's time was up
		case isInterruption(err):
			// client-go goes on from the last event with another watch.
			w.lw.health.Down(fmt.Errorf("the watch broke off: %w", err))
		default:
			w.lw.health.Down(err)
			w.send(ctx, watch.Error, asStatus(err))
		}
		return
	}
}

// provedWithin is when a watch counts as caught up that is never quiet, and of a server that sends no bookmarks.
const provedWithin = time.Minute

func (w *watcher) pass(version uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passed = version
}

// prove delivers a marker that says that the watch stands, and has delivered what was missed, once. It has when it was quiet for a
// moment. If it is over, nothing is delivered any more.
func (w *watcher) prove(ctx context.Context, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = w.over || over
	if w.over || w.proved || w.passed == 0 {
		return
	}
	w.proof.give()
	w.proved = w.send(ctx, watch.Modified, newProof(w.passed, w.number))
}

// shortWatch is how long a watch without events must have lasted to be followed by another one at once. It is
// client-go's own limit.
const shortWatch = time.Second

// isInterruption distinguishes a broken connection (true) from a body that makes no sense (false).
func isInterruption(err error) bool {
	var syntax *jsontext.SyntacticError
	var event *eventError
	return errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &syntax) && !errors.As(err, &event)
}

// eventError is the error of an event that is valid JSON, but cannot be used.
type eventError struct{ err error }

func (e *eventError) Error() string { return e.err.Error() }
func (e *eventError) Unwrap() error { return e.err }

// event passes on one {"type":…,"object":…}.
func (w *watcher) event(ctx context.Context, value []byte) error {
	event := gjson.GetMany(view(value), "type", "object")
	// The value is in the decoder's buffer, which the next value overwrites: no part of it may be passed on uncopied.
	kind, object := watch.EventType(strings.Clone(event[0].Str)), value[event[1].Index:event[1].Index+len(event[1].Raw)]
	switch kind {
	case watch.Added, watch.Modified, watch.Deleted:
		o, err := w.object(object)
		if err != nil {
			return &eventError{fmt.Errorf("reading a watch event: %w", err)}
		}
		w.lw.timeline.happened(kind, o)
		w.proof.give()
		w.send(ctx, kind, o)
		w.pass(o.Version())
	case watch.Bookmark:
		version, err := ParseVersion(gjson.GetBytes(object, "metadata.resourceVersion").Str)
		if err != nil {
			return &eventError{fmt.Errorf("reading a bookmark: %w", err)}
		}
		w.lw.timeline.passed(version)
		w.proof.give()
		if w.send(ctx, watch.Bookmark, newMarker(version)) {
			w.pass(version)
			w.send(ctx, watch.Modified, newProof(version, w.number))
		}
	case watch.Error:
		return &eventError{statusError(object)}
	default:
		return &eventError{fmt.Errorf("a watch event of the unknown type %q", kind)}
	}
	return nil
}

// statusError turns the object of an ERROR event into an error.
func statusError(object []byte) error {
	status := &metav1.Status{}
	if err := json.Unmarshal(object, status); err != nil {
		return fmt.Errorf("reading a watch's error: %w", err)
	}
	return apierrors.FromObject(status)
}

// send passes an event on. It reports false if the watch was stopped.
func (w *watcher) send(ctx context.Context, kind watch.EventType, object runtime.Object) bool {
	select {
	case w.result <- watch.Event{Type: kind, Object: object}:
		return true
	case <-ctx.Done():
		return false
	}
}

// asStatus is an error in the form in which a watch passes it on. An error that is no API status becomes a 500, upon
// which client-go lists or watches again.
func asStatus(err error) *metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		return &s
	}
	s := apierrors.NewInternalError(err).Status()
	return &s
}
