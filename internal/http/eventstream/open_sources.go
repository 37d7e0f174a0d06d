package eventstream

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/kubecast/kubecast/internal/cache"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// openSources authorizes and opens the sources of a stream, all of them at once. Problems that heal
// by retrying are returned as a refusal and not as an error. With either of them there are no
// sources.
//
// Of a stream of several, one that cannot be opened for now, or takes long, does not keep the others from beginning.
func (ss *session) openSources(ctx context.Context, req streamRequest) (refusal Outcome, err error) {
	ss.several = req.several
	ss.openings = req.openings
	slices.SortFunc(ss.openings, func(a, b opening) int { return cmp.Compare(a.name, b.name) }) // as ids have them
	ss.sources = make([]Source, len(ss.openings))
	if refusal, err = ss.openAll(ctx); refusal == GoOn && err == nil {
		err = ss.shareIDs()
	}
	if refusal != GoOn || err != nil {
		closeAll(ss.sources)
		ss.sources = nil
	}
	return refusal, err
}

// openAll fills in the sources, and something in the place of each that is not open.
func (ss *session) openAll(ctx context.Context) (refusal Outcome, err error) {
	gone := ctx.Done() // the client, who is noticed otherwise once the stream has begun
	results := make([]chan opened, len(ss.openings))
	abandon := make([]func(), len(ss.openings))
	done := make(chan int, len(ss.openings))
	for i, what := range ss.openings {
		results[i] = make(chan opened, 1)
		if ss.several { // it may outlive the request
			ctx = context.WithoutCancel(ctx)
		}
		opening, cancel := context.WithCancel(ctx)
		abandon[i] = cancel
		ss.hub.spawn(func() {
			defer context.AfterFunc(ss.hub.serving, cancel)()
			source, err := what.open(opening, ss.id)
			results[i] <- opened{source, err}
			done <- i
		})
	}
	var patience <-chan time.Time // nil: it does not end
	errs := make([]error, len(ss.openings))
	for left := len(ss.openings); left > 0; left-- {
		select {
		case i := <-done:
			now := <-results[i]
			results[i] = nil
			abandon[i]()
			if ss.sources[i], errs[i] = now.source, now.err; now.err == nil && ss.several && patience == nil {
				patience = time.After(beginWithin)
			}
			continue
		case <-patience:
		case <-gone:
			for _, cancel := range abandon {
				cancel()
			}
			gone = nil
			left++ // nothing has come of any
			continue
		}
		break
	}
	return ss.takeOpened(results, abandon, errs)
}

// takeOpened decides what becomes of a stream some of whose sources are open, some failed, and some are being opened.
func (ss *session) takeOpened(results []chan opened, abandon []func(), errs []error) (refusal Outcome, err error) {
	open, gone := 0, 0
	var why error
	for i, failed := range errs {
		code := 0
		if failed != nil {
			code = reply.To(failed).Code
		}
		switch heals := refusalOf(failed); {
		case failed == nil && results[i] == nil:
			open++
		case failed == nil:
			b := newBeginning(ss.openings[i], nil, cameFrom(ss.position, ss.openings[i].name, true))
			b.first, b.abandon = results[i], abandon[i]
			ss.sources[i] = b
			ss.pursue(b)
		case (heals == Unavailable || code == http.StatusInternalServerError) && ss.several:
			b := newBeginning(ss.openings[i], nil, cameFrom(ss.position, ss.openings[i].name, true))
			b.failed = failed
			ss.sources[i] = b
		case ss.several && ss.outlives(i, failed):
			b := newBeginning(ss.openings[i], nil, cameFrom(ss.position, ss.openings[i].name, true))
			b.failed, b.gone, b.wait = failed, true, tryAgain
			ss.sources[i] = b
			gone, why = gone+1, failed
		case heals != GoOn:
			refusal = heals
		case err == nil:
			err = failed // retrying does not heal it, so it matters more than a refusal
		}
	}
	switch {
	case err != nil || refusal != GoOn || open > 0:
	case gone == len(errs):
		err = why
	default:
		refusal = Unavailable
	}
	return refusal, err
}

// outlives reports whether the other sources of a stream begin although this one is not served.
// They do for a client that comes back with a position in it, since it was there; and if the
// versions of its kind are no numbers, which no client can know. Anything else may be a mistake, of
// which the client is told.
func (ss *session) outlives(i int, failed error) bool {
	switch reply.To(failed).Code {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return errors.Is(failed, cache.ErrVersions) || cameFrom(ss.position, ss.openings[i].name, true).Named
	}
	return false
}

// shareIDs tells the sources with long positions how many of them there may be.
func (ss *session) shareIDs() error {
	among := 0
	for _, source := range ss.sources {
		_, waits := source.(*beginning)
		if _, shares := source.(PositionBudgeted); shares || waits {
			among++
		}
	}
	for i, source := range ss.sources {
		switch s := source.(type) {
		case *beginning:
			s.among = among
		case PositionBudgeted:
			if err := s.SetPositionBudget(among); err != nil {
				return named(ss.openings[i].name, err)
			}
		}
	}
	return nil
}
