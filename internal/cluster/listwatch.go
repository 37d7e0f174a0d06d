package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kubecast/kubecast/internal/shards"
	"github.com/kubecast/kubecast/internal/tracing"
)

// Health is told the outcome of a ListWatch's requests: Up when a watch is proved to stand (see
// livenessGate), Down when a request failed or a watch broke off. A watch that ends when its time
// is up is neither. The calls come one after the other.
//
// Up does not come in the order of the watch's events: what was missed may still be on its way. So
// data counts as fresh only from the marker with the same number (Object.Proves) on, which comes in
// that order, and only if Down was not called since.
type Health interface {
	Up(watch int64)
	Down(err error)
}

// ListWatch lists and watches all objects of one kind, as the lister and watcher of an informer.
// Its objects are *Object. Between them it sends progress markers (see Object.IsMarker): one as the
// first event of each watch, one for each bookmark, and one once the watch is proved to stand and
// has delivered what was missed (see watcher.prove).
//
// A marker of version V says that all changes up to V were delivered before it. It is sent as a Modified event, so
// client-go's queue keeps it in order. No list contains it. So when a list replaces client-go's content, client-go
// takes the marker for deleted, and notifies that with a tombstone before it notifies any addition or update of the
// new list.
type ListWatch struct {
	// Held is what the objects' reader has of a name, or nil. A list of a million objects is read anew while all of them are
	// in memory, and most have not changed: those that are the same, byte by byte, become no others. If Held is nil, all do. It
	// is set before the first list.
	Held func(namespace, name string) *Object

	client      rest.Interface
	lists       rest.Interface
	kind        Kind
	shard       shards.Shard // of the kind's objects; the zero value: all
	cluster     string
	tracer      *tracing.Tracer
	health      Health
	resumeGuard resumeGuard
	pause       pause
	metadata    bool        // ask for objects without their contents
	fields      string      // a field selector: only the objects that match it are asked for
	inPages     atomic.Bool // read lists in pages: a whole one took too long
	listed      atomic.Bool // whether there was a list since the last watch began
	watches     atomic.Int64
	newest      atomic.Pointer[watcher]  // of the newest watch; nil before the first
	warnings    atomic.Pointer[[]string] // that came with the newest list; nil before the first
	form        atomic.Pointer[ListForm] // of the newest list that was read to its end; nil before the first
	silent      atomic.Bool              // whether the API server has been found to send no bookmarks of the kind
	lost        atomic.Bool              // whether Health was told Down, and no watch has been proved to have caught up since
}

var _ toolscache.ListerWatcherWithContext = (*ListWatch)(nil)

// IsWatchListSemanticsUnSupported keeps client-go from having lists streamed as watch events (WatchList). That takes
// both sides longer. It does not save memory in the API server either, which since 1.33 also encodes plain lists item
// by item.
func (lw *ListWatch) IsWatchListSemanticsUnSupported() bool { return true }

func (lw *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), options)
}

func (lw *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), options)
}

// ListWithContext reads a list, decoding it as it arrives.
//
// The first list must be the newest state, not "any" (version 0): what a gateway shows once it is ready must not lie
// behind what other replicas have shown. Since 1.31 the API server answers that from memory, too. Lists are asked for
// whole, which is fastest. But an API server ends a request after a minute. When that may have been why a list
// failed, the next ones are read in pages. If the API server is away, the list is asked for again (see repeat).
func (lw *ListWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return repeat(ctx, mayListLater, func() (runtime.Object, error) {
		ctx, span := lw.span(ctx, "upstream list")
		list, err := lw.listOnce(ctx, options)
		span.EndWith(err)
		return list, err
	})
}

// span begins the span of a request for the kind.
func (lw *ListWatch) span(ctx context.Context, name string) (context.Context, *tracing.Span) {
	ctx, span := lw.tracer.Start(ctx, name, trace.SpanKindClient)
	if span != nil {
		span.Set("kubecast.kind", lw.kind.String())
		span.Set("kubecast.cluster", lw.cluster)
	}
	return ctx, span
}

func (lw *ListWatch) listOnce(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
	switch {
	case options.Continue != "":
	case lw.inPages.Load():
		options.ResourceVersion, options.Limit = "", pageSize
	default:
		options.Limit = 0
	}
	began := time.Now()
	list, err := lw.list(ctx, options)
	if err != nil {
		if time.Since(began) > longForAList {
			lw.inPages.Store(true)
		}
		lw.fail(ctx, err)
		return nil, err
	}
	list.ResourceVersion = strconv.FormatUint(lw.resumeGuard.listed(list), 10)
	lw.listed.Store(true)
	if list.Continue == "" {
		lw.form.Store(&list.Form)
	}
	return list, nil
}

const (
	pageSize     = 500 // client-go's own
	longForAList = 30 * time.Second
)

func (lw *ListWatch) list(ctx context.Context, options metav1.ListOptions) (*ObjectList, error) {
	ctx, noted := noteAttempts(ctx)
	answered := lw.tellIfLate(ctx, noted)
	body, err := lw.get(ctx, options, "")
	answered()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	lw.resumeGuard.answered(noted.history())
	list, err := compactor{kind: lw.kind, held: lw.Held}.list(body)
	if err != nil {
		return nil, fmt.Errorf("reading the list of %s: %w", lw.kind, err)
	}
	for _, o := range list.Items {
		if err := lw.shard.Refuse(o.UID()); err != nil {
			return nil, fmt.Errorf("reading the list of %s: %w", lw.kind, err)
		}
	}
	return list, nil
}

// WatchWithContext begins a watch. If the API server is away or busy, it tries again until the watch is accepted (see
// repeat).
func (lw *ListWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	lw.pause.wait(ctx)
	return repeat(ctx, lw.mayWatchLater, func() (watch.Interface, error) {
		_, span := lw.span(ctx, "upstream watch") // until it is accepted; the watch itself is in no span
		w, err := lw.watchOnce(ctx, options)
		span.EndWith(err)
		return w, err
	})
}

func (lw *ListWatch) watchOnce(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	var from *Object
	if version, err := ParseVersion(options.ResourceVersion); err == nil {
		from = newMarker(version)
	}
	ctx, cancel := context.WithCancel(ctx)
	asking, noted := noteAttempts(ctx)
	stand := lw.tellIfLate(ctx, noted)
	body, err := lw.watch(asking, noted, options)
	stand()
	if err != nil {
		lw.resumeGuard.interrupted()
		if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			lw.resumeGuard.forgotten()
		}
		lw.fail(ctx, err)
		cancel()
		return nil, err
	}
	w := &watcher{
		compactor: compactor{kind: lw.kind},
		lw:        lw,
		body:      body,
		life:      ctx,
		cancel:    cancel,
		result:    make(chan watch.Event),
		done:      make(chan struct{}),
		planned:   time.Now().Add(watchTime(options)),
		number:    lw.watches.Add(1),
		follows:   lw.lost.Load(),
	}
	w.livenessGate.up = lw.standing(w.number)
	if lw.listed.Swap(false) && from != nil {
		w.livenessGate.open() // a watch from the version of a list just read can always be had
		from = newProof(from.version, w.number)
	}
	lw.newest.Store(w)
	go w.run(ctx, from)
	return w, nil
}

// standing tells Health that a watch stands.
func (lw *ListWatch) standing(number int64) func() {
	return func() { lw.health.Up(number) }
}

// lateAfter is how long the answer to a list, or the next watch, may take before Health is told that the API server
// does not answer, or what it answers.
const lateAfter = time.Second

var errLate = errors.New("the API server does not answer")

// tellIfLate reports a failure if the returned function is not called within lateAfter, and again when there is another
// reason. A watch that the API server ended in good order is no failure, but the next one may take long: client-go
// silently repeats a request while the answer is "try again later", as from an API server that shuts down, or has too
// much to do.
func (lw *ListWatch) tellIfLate(ctx context.Context, noted *attempts) (stop func()) {
	stands := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		tick := time.NewTicker(lateAfter)
		defer tick.Stop()
		for told := ""; ; {
			select {
			case <-stands:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := noted.late(lateAfter); err.Error() != told {
				told = err.Error()
				lw.fail(ctx, err)
			}
		}
	})
	return func() {
		close(stands)
		waiting.Wait() // so that its report does not come after what the caller does next
	}
}

func (lw *ListWatch) watch(ctx context.Context, noted *attempts, options metav1.ListOptions) (io.ReadCloser, error) {
	from, history, err := lw.resumeGuard.resume(ctx, lw, options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	options.ResourceVersion, options.Watch = from, true
	body, err := lw.get(ctx, options, history)
	if err != nil {
		return nil, err
	}
	switch now := noted.history(); {
	case history == "" && (lw.listed.Load() || lw.resumeGuard.shows(now)): // a list may show another part than a watch
		lw.resumeGuard.answered(now)
	case now == history:
		lw.resumeGuard.resumed()
	default:
		body.Close()
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("the watch of %s was interrupted at version %s, and now tells of another history", lw.kind, from))
	}
	return body, nil
}

func (lw *ListWatch) get(ctx context.Context, options metav1.ListOptions, history string) (io.ReadCloser, error) {
	client := lw.lists
	if options.Watch {
		client = lw.client
	}
	options.FieldSelector = lw.fields
	request := client.Get().AbsPath(lw.kind.Path()).VersionedParams(&options, metav1.ParameterCodec)
	switch {
	case lw.metadata && options.Watch:
		request.SetHeader("Accept", metadataOnly)
	case lw.metadata:
		request.SetHeader("Accept", metadataListOnly)
	}
	if options.Watch {
		request.SetHeader(RelistHeader, RelistEnds)
		request.SetHeader(FreshnessHeader, FreshnessTold)
	}
	if history != "" {
		request.SetHeader(HistoryHeader, history)
	}
	warnings := warnings{}
	body, err := request.WarningHandlerWithContext(&warnings).Stream(ctx)
	if err == nil && !options.Watch {
		lw.warnings.Store(&warnings.texts)
	}
	return body, err
}

// Form is how the API server lists the kind.
func (lw *ListWatch) Form() ListForm {
	if form := lw.form.Load(); form != nil {
		return *form
	}
	return ListForm{}
}

// Warnings are what the API server says to each request for the kind, such as that it is deprecated.
func (lw *ListWatch) Warnings() []string {
	if texts := lw.warnings.Load(); texts != nil {
		return *texts
	}
	return nil
}

// warnings collects the warnings of one answer.
type warnings struct{ texts []string }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext. 299 is the code of all
// that API servers send.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code == 299 && text != "" {
		w.texts = append(w.texts, text)
	}
}

// fail reports a failure, unless the request was cancelled by the gateway itself.
func (lw *ListWatch) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		lw.down(withStatus(err))
	}
}

// down reports a failure, of a request or of a watch.
func (lw *ListWatch) down(err error) {
	lw.lost.Store(true)
	lw.health.Down(err)
}
