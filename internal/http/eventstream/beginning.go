package eventstream

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/backoff"
	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/auditrecord"
	"github.com/kubecast/kubecast/internal/http/permission"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/stream"
	"github.com/kubecast/kubecast/internal/visibility"
)

const (
	// beginWithin is how long a stream waits for all of its sources before it begins with those
	// that are there, and tells that the others are stale. Most first lists take less, and nobody
	// is told anything of that.
	beginWithin = 500 * time.Millisecond
	// A source that cannot be begun is tried again so soon at first, then less and less often.
	tryAgain     = time.Second
	tryAgainLate = 30 * time.Second
	// lookAgain is how soon it is looked again why a first list is not there.
	lookAgain = time.Second
)

// opening is a source that is asked for.
type opening struct {
	name string // what the client calls it; "" if it is alone
	open Opener
}

// opened is what came of opening a source.
type opened struct {
	source Source
	err    error
}

// beginning is a Source that stands in the place of one that has not begun: it keeps the client's
// position in the event ids, and tells that the source is stale. A goroutine opens the source if it
// is not open, waits until it can be read, and has it find where the client goes on. Then the
// session puts the source itself in this place.
type beginning struct {
	opening
	source Source // nil: it is not open
	from   From   // where its client comes from; see From.in

	first   <-chan opened // what comes of opening it, which is under way since before the stream began; nil: it is not
	abandon func()        // ends that; nil: there is nothing to end
	among   int           // how many sources with long positions the stream may have; see PositionBudgeted

	since  time.Time     // when the wait began
	tellAt time.Time     // when the client is told of it
	failed error         // why the newest attempt failed; nil: none did
	gone   bool          // and will as long as the kind is not served
	wait   time.Duration // before the first attempt; 0: none
	reason string        // that the client was told; "": none
	looked time.Time     // when it was looked for that
	over   bool          // the source has taken its place

	mu     sync.Mutex
	opened Source    // by the goroutine
	found  attempt   // that has come to an end last
	ready  bool      // it can be read, and is looking where its client goes on
	asked  time.Time // when opened was asked for
	trying bool      // the goroutine runs
	closed bool
	stop   context.CancelFunc
}

// attempt is what came of trying to begin a source.
type attempt struct {
	made  bool
	epoch string  // in which the source has found where its client goes on
	err   error   // why it has not
	end   Outcome // trying again does not help
}

// errAway is why a source is begun again that had begun before.
var errAway = errors.New("it cannot be read any more")

// reasonGone is why a source is stale that is not served: the stream goes on with the others.
const reasonGone = "gone"

// prefixOf is what the names of a source's events begin with.
func prefixOf(name string) string {
	if name == "" {
		return ""
	}
	return name + "."
}

// newBeginning returns what stands for a source, which may be nil.
func newBeginning(what opening, source Source, from From) *beginning {
	return &beginning{opening: what, source: source, opened: source, from: from, since: time.Now()}
}

// start says that a goroutine is about to run, which stop ends. It is false if there is one, or is none to be any more.
func (b *beginning) start(stop context.CancelFunc) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trying || b.closed {
		return false
	}
	b.trying, b.stop = true, stop
	return true
}

// run tries to begin the source until that succeeds, or the context ends. It wakes the session when
// there is news. Once the source can be read, it may take so long to find where its client goes on.
func (b *beginning) run(ctx context.Context, id auth.Identity, within time.Duration, wake func()) {
	defer b.rest()
	if !backoff.Pause(ctx, b.wait) {
		return
	}
	for retry := backoff.New(max(tryAgain, b.wait), tryAgainLate); ; {
		a := b.try(ctx, id, within, wake)
		if ctx.Err() != nil {
			return
		}
		b.mu.Lock()
		b.found = a
		b.mu.Unlock()
		wake()
		if a.err == nil || a.end.ends() {
			return
		}
		if !retry.Wait(ctx) {
			return
		}
	}
}

// later is how long to wait after an attempt that comes after such a wait.
func later(wait time.Duration) time.Duration { return min(max(2*wait, tryAgain), tryAgainLate) }

func (b *beginning) try(ctx context.Context, id auth.Identity, within time.Duration, wake func()) attempt {
	source := b.opened // which only this goroutine sets
	if source == nil {
		began := time.Now()
		if b.first != nil {
			began = b.since
		}
		var err error
		if source, err = b.openShared(ctx, id); err != nil {
			return attempt{made: true, err: err, end: endOf(err)}
		}
		b.mu.Lock()
		b.opened, b.asked = source, began
		b.mu.Unlock()
		wake()
	}
	epoch, err := b.find(ctx, source, within)
	a := attempt{made: true, epoch: epoch, err: err}
	if errors.Is(err, cache.ErrNotServed) || errors.Is(err, cache.ErrVersions) {
		a.end = Gone
	}
	return a
}

// openShared opens the source for a stream that may have others with long positions.
func (b *beginning) openShared(ctx context.Context, id auth.Identity) (Source, error) {
	var now opened
	if b.first != nil {
		now, b.first = <-b.first, nil
	} else {
		now.source, now.err = b.open(ctx, id)
	}
	if budgeted, is := now.source.(PositionBudgeted); is && now.err == nil && b.among > 0 {
		if now.err = budgeted.SetPositionBudget(b.among); now.err != nil {
			now.source.Close()
		}
	}
	return now.source, now.err
}

// find waits until the source can be read, and has it find where to go on. That may take long. If
// another history begins meanwhile, the client's position means something else, and the source
// looks again.
func (b *beginning) find(ctx context.Context, source Source, within time.Duration) (epoch string, err error) {
	if err := source.Ready(ctx); err != nil {
		return "", err
	}
	b.mu.Lock()
	b.ready = true
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	now, err := source.Epoch(ctx)
	for err == nil && epoch != now {
		epoch = now
		source.Find(ctx, b.from.in(epoch))
		now, err = source.Epoch(ctx)
	}
	return epoch, err
}

// endOf is what becomes of a source that is refused while its stream runs: GoOn says that it is tried again.
func endOf(err error) Outcome {
	switch code := reply.To(err).Code; {
	case code >= http.StatusInternalServerError:
		return GoOn
	case code == http.StatusTooManyRequests:
		return Limit
	case code == http.StatusForbidden:
		return endRevoked
	}
	return Gone
}

// rest ends the goroutine. If nobody else will close the source, it does.
func (b *beginning) rest() {
	b.mu.Lock()
	b.trying = false
	left := b.closed && b.opened != nil
	b.mu.Unlock()
	if b.abandon != nil {
		b.abandon()
	}
	if left {
		b.opened.Close()
	}
}

// look is what the goroutine has come to.
func (b *beginning) look() (opened Source, asked time.Time, found attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened, b.asked, b.found
}

// waits reports whether nothing has come of the first attempt yet.
func (b *beginning) waits() bool {
	_, _, found := b.look()
	return !found.made && b.failed == nil
}

// isGone reports whether the source will not be served for now, whatever is tried.
func (b *beginning) isGone() bool { return b.gone }

// isReady reports whether the source can be read, and only looks where its client goes on.
func (b *beginning) isReady() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready
}

// upstream is how the source is, as far as it says so.
func (b *beginning) upstream() cache.Upstream {
	if f, ok := b.source.(interface{ Upstream() cache.Upstream }); ok && b.failed == nil {
		up := f.Upstream()
		return cache.Upstream{Since: b.since, Err: up.Err}
	}
	return cache.Upstream{Since: b.since, Err: b.failed}
}

func (b *beginning) Name() string {
	if b.source != nil {
		return b.source.Name()
	}
	return b.name
}

func (b *beginning) Ready(context.Context) error { return cache.ErrNotSynced }

func (b *beginning) Epoch(context.Context) (string, error) { return "", cache.ErrNotSynced }

func (b *beginning) Find(context.Context, From) {}

func (b *beginning) Begin(Freshness) (claim stream.Claim, reset string) { return b.from.Claim, "" }

func (b *beginning) Read(_ context.Context, to Sink) ReadResult {
	b.tellWhy(to)
	return ReadResult{Claim: b.from.Claim, Due: b.due(), Behind: true}
}

// tellWhy tells the client why the source has not begun, if that has not begun for long. One that
// can be read is not stale, although it may take long to find what the client has missed.
func (b *beginning) tellWhy(to Sink) {
	if b.looked = time.Now(); b.looked.Before(b.tellAt) || b.over {
		return
	}
	up := b.upstream()
	if b.isReady() && up.Err == nil {
		return
	}
	reason := reply.UpstreamReason(up)
	if b.gone {
		reason = reasonGone
	}
	if reason != b.reason {
		b.reason = reason
		to.Emit(freshnessEvent(prefixOf(b.name), "stale", up.Since, reason), b.from.Claim)
	}
}

// told is what the client was told of it until now. The source itself tells the rest.
func (b *beginning) told() Freshness {
	b.over = true
	return Freshness{stale: b.reason != ""}
}

// due is when it is looked again what there is to tell of the wait.
func (b *beginning) due() time.Time {
	switch b.reason {
	case "":
		if b.looked.Before(b.tellAt) {
			return b.tellAt
		}
		return b.looked.Add(lookAgain)
	case reply.UpstreamReason(cache.Upstream{}): // it may fail, of which nobody wakes the session
		return b.looked.Add(lookAgain)
	}
	return time.Time{}
}

// Bookmark implements Source: nobody knows how far the client is.
func (b *beginning) Bookmark(Sink) {}

// Question implements Source. What is not open is not asked about: that is done when it is opened.
func (b *beginning) Question() permission.Question {
	if b.source == nil {
		return permission.Question{Key: "not open"}
	}
	return b.source.Question()
}

func (b *beginning) Permit(visible *visibility.Visibility) {
	if b.source != nil {
		b.source.Permit(visible)
	}
}

// AuditRead implements Source. There is none before the source is open.
func (b *beginning) AuditRead() auditrecord.Read {
	if b.source == nil {
		return auditrecord.Read{}
	}
	return b.source.AuditRead()
}

func (b *beginning) Close() {
	b.mu.Lock()
	b.closed = true
	left := !b.trying && b.opened != nil
	if b.stop != nil {
		b.stop()
	}
	b.mu.Unlock()
	if b.abandon != nil {
		b.abandon()
	}
	if left {
		b.opened.Close()
	}
}
