package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubecast/kubecast/internal/backoff"
)

// watcher reads the events of one watch from its body.
type watcher struct {
	compactor
	lw           *ListWatch
	body         io.ReadCloser
	life         context.Context // ends with the watch
	cancel       context.CancelFunc
	result       chan watch.Event
	done         chan struct{}
	planned      time.Time // from when on its end counts as planned
	number       int64     // among the watches of its ListWatch; another one once a gateway that is asked has its own watch back
	events       int       // that have come, but what a gateway says of its own watch
	livenessGate livenessGate

	follows bool // one that was lost, of which something may have been missed
	quiet   *time.Timer

	mu     sync.Mutex // held while something is delivered, so that a marker comes behind all that it says was delivered before it
	passed uint64     // the version of what was delivered last; 0: nothing was
	last   time.Time  // when that was
	missed uint64     // nothing newer can have been missed; 0: that is not known
	proved bool       // a marker with the number was delivered
	stale  bool       // the gateway that is asked has lost its own watch; the watch's goroutine alone changes that
	over   bool       // nothing is delivered any more
}

// Stop implements watch.Interface. It waits until the watch's goroutine has ended.
func (w *watcher) Stop() {
	w.cancel()
	<-w.done
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

func (w *watcher) run(ctx context.Context, from *Object) {
	defer close(w.done)
	defer close(w.result)
	defer w.prove(ctx, true)
	defer w.body.Close()
	defer w.seekProof(ctx)()
	defer w.cancel()
	// A read that blocks ends with the request's context, since the transport then closes the body.
	if from != nil && !w.deliver(ctx, watch.Modified, from) {
		return
	}
	w.livenessGate.openAfter(shortWatch)
	dec := newDecoder(w.body)
	began := time.Now()
	w.quiet = time.AfterFunc(shortWatch, func() {
		if !w.follows { // else see seekProof
			w.prove(ctx, false)
		}
	})
	defer w.quiet.Stop()
	for {
		value, err := dec.ReadValue()
		w.quiet.Stop()
		if err == nil {
			err = w.event(ctx, value)
		}
		if err == nil {
			if w.hasCaughtUp() || time.Since(began) > provedWithin {
				w.prove(ctx, false)
			}
			w.quiet.Reset(shortWatch)
			continue
		}
		w.livenessGate.cancel()
		if err != io.EOF || time.Now().Before(w.planned) {
			w.lw.resumeGuard.interrupted()
		}
		w.lw.pause.lasted(time.Since(began))
		switch {
		case ctx.Err() != nil: // the watch was stopped
		case w.events == 0 && time.Since(began) < shortWatch:
			// client-go backs off from watches that end at once without an event. It would take the marker for an
			// event, so it gets an error.
			err = fmt.Errorf("the watch ended as soon as it began: %w", err)
			w.lw.down(err)
			if w.lw.resumeGuard.knowsHistory() && isInterruption(err) { // which is no reason to list
				w.lw.pause.begin()
				return
			}
			w.send(ctx, watch.Error, asStatus(err))
		case err == io.EOF: // the watch's time was up
		case isInterruption(err):
			// client-go goes on from the last event with another watch.
			w.lw.down(fmt.Errorf("the watch broke off: %w", err))
		case w.lw.resumeGuard.knowsHistory() && apierrors.IsTooManyRequests(err): // as where another gateway has listed anew
			w.lw.down(err)
			w.lw.pause.begin()
		default:
			w.lw.down(err)
			w.send(ctx, watch.Error, asStatus(err))
		}
		return
	}
}

// provedWithin is after how long any watch counts as caught up. It is for a watch that is never
// quiet, at a server that sends no bookmarks and does not say its newest version.
const provedWithin = time.Minute

// askAfter is how soon a watch that is not quiet has the API server asked what may have been
// missed, at the earliest. Most watches have been quiet by then.
const askAfter = 3 * shortWatch / 2

// seekProof finds out when everything is delivered that was missed, if a watch was lost before this
// one. The returned function waits for the end of that.
//
// A watch that is quiet may have delivered all, or its server or something on the way pauses. So
// the API server is asked, by a short watch on a way of its own, whether anything follows what was
// delivered. If the watch is not quiet soon, the kind's newest version is asked for: all that was
// missed is of that version or an older one. That is asked once for each watch, and not by all
// kinds at the same moment. A gateway that has lost its own watch is not asked: it cannot know.
func (w *watcher) seekProof(ctx context.Context) (wait func()) {
	var seeking sync.WaitGroup
	if w.follows {
		seeking.Go(func() {
			ask, known := time.Now().Add(askAfter+rand.N(shortWatch)), uint64(0)
			for end := time.Now().Add(provedWithin); time.Now().Before(end); {
				w.mu.Lock()
				passed, proved, stale, quiet := w.passed, w.proved, w.stale, time.Since(w.last)
				w.mu.Unlock()
				pause := max(shortWatch-quiet, shortWatch/10)
				switch {
				case proved || ctx.Err() != nil:
					return
				case stale: // the gateway says when it is over; see stands
					pause = shortWatch
				case quiet >= shortWatch && passed > 0 && passed >= known:
					if next, err := w.lw.next(ctx, passed); err == nil && next == 0 {
						w.prove(ctx, false)
						return
					} else if err == nil {
						known = next
						continue
					}
					pause = shortWatch
				case !ask.IsZero() && !time.Now().Before(ask):
					ask = time.Time{}
					w.askNewest(ctx, passed)
				}
				backoff.Pause(ctx, pause)
			}
			w.prove(ctx, false)
		})
	}
	return seeking.Wait
}

// askNewest asks for the kind's newest version.
func (w *watcher) askNewest(ctx context.Context, passed uint64) {
	newest, err := newestVersion(ctx, w.lw.client, w.lw.kind)
	if err != nil || newest < passed { // such a server's versions prove nothing
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missed = newest
}

// hasCaughtUp reports whether something was delivered that cannot have been missed. Of the very
// version that the API server told, more may be to come: several deletions are in one.
func (w *watcher) hasCaughtUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.missed > 0 && w.passed > w.missed
}

// deliver passes on an object, or a marker. It reports false if the watch was stopped.
func (w *watcher) deliver(ctx context.Context, kind watch.EventType, o *Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deliverLocked(ctx, kind, o)
}

// deliverLocked is deliver. The caller holds the lock.
func (w *watcher) deliverLocked(ctx context.Context, kind watch.EventType, o *Object) bool {
	if !w.send(ctx, kind, o) {
		return false
	}
	w.passed, w.last = o.Version(), time.Now()
	if o.IsMarker() && o.Proves() != 0 {
		w.proved = true
		w.lw.lost.Store(false)
	}
	return true
}

// prove delivers a marker that says that the watch stands, and has delivered what was missed, once.
// It has when it was quiet for a moment, or seekProof says so. If it is over, nothing is delivered
// any more.
func (w *watcher) prove(ctx context.Context, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = w.over || over
	if w.over || w.proved || w.passed == 0 {
		return
	}
	if w.livenessGate.open() {
		w.deliverLocked(ctx, watch.Modified, newProof(w.passed, w.number))
	}
}

// stands is called once the gateway that is asked has its own watch back, and has told what that had missed. It counts as a watch of
// its own, since the one that was lost counts no more.
func (w *watcher) stands(ctx context.Context) {
	if !w.stale {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale, w.number = false, w.lw.watches.Add(1)
	w.livenessGate.reset(w.lw.standing(w.number))
	w.livenessGate.open()
	if w.passed > 0 {
		w.deliverLocked(ctx, watch.Modified, newProof(w.passed, w.number))
	}
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
	if kind != StaleEvent && kind != LiveEvent {
		w.events++
	}
	switch kind {
	case watch.Added, watch.Modified, watch.Deleted:
		o, err := w.object(object)
		if err == nil {
			err = w.lw.shard.Refuse(o.UID())
		}
		if err != nil {
			return &eventError{fmt.Errorf("reading a watch event: %w", err)}
		}
		w.lw.resumeGuard.happened(kind, o)
		w.livenessGate.open()
		w.deliver(ctx, kind, o)
	case watch.Bookmark:
		version, err := ParseVersion(gjson.GetBytes(object, "metadata.resourceVersion").Str)
		if err != nil {
			return &eventError{fmt.Errorf("reading a bookmark: %w", err)}
		}
		w.lw.resumeGuard.passed(version)
		w.livenessGate.open()
		if w.deliver(ctx, watch.Bookmark, newMarker(version)) && !w.stale {
			w.deliver(ctx, watch.Modified, newProof(version, w.number))
		}
	case StaleEvent:
		w.mu.Lock()
		w.stale = true
		w.livenessGate.cancel()
		w.mu.Unlock()
		w.lw.down(fmt.Errorf("the gateway that is asked has lost its own watch: %s", gjson.GetBytes(object, "reason").Str))
	case LiveEvent:
		w.stands(ctx)
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
