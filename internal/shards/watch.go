package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
	"golang.org/x/sync/semaphore"

	"github.com/kubecast/kubecast/internal/cores"
)

// heldBytes is how much may wait for the shard that is furthest behind. What would be more is not read yet, and waits at its core.
const heldBytes = 64 << 20

// event is one of a watch.
type event struct {
	kind    string
	version uint64 // of the object; 0 for what has none: ERROR, STALE and LIVE
	raw     []byte
}

// waits reports whether it is told only behind what others have told.
func (e event) waits() bool {
	return e.kind != "ERROR" && e.kind != "BOOKMARK" && e.kind != cores.Stale
}

type decoder struct{ values *jsontext.Decoder }

func newDecoder(r io.Reader) *decoder {
	return &decoder{jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true))}
}

// next reads an event; io.EOF says that the watch has ended in good order.
func (d *decoder) next() (event, error) {
	value, err := d.values.ReadValue()
	if err != nil {
		return event{}, err
	}
	of := gjson.GetManyBytes(value, "type", "object.metadata.resourceVersion")
	e := event{kind: of[0].Str, raw: bytes.Clone(value)}
	switch e.kind {
	case "ERROR", cores.Stale, cores.Live:
		return e, nil
	}
	if e.version, err = strconv.ParseUint(of[1].Str, 10, 64); err != nil {
		return e, fmt.Errorf("the version of a watch's event: %w", err)
	}
	return e, nil
}

// watch makes one watch of the shards'. Cancel ends the request's context.
func (t *merging) watch(r *http.Request, query url.Values, answers []*http.Response, cancel context.CancelFunc) (*http.Response, error) {
	from, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	if err != nil || from == 0 || query.Get("sendInitialEvents") != "" {
		giveUpOthers(answers)
		cancel()
		return unavailable(r, "a watch of several shards begins at the version of a list"), nil
	}
	reader, writer := io.Pipe()
	m := &merger{
		to: writer, bookmarked: from, brief: isBrief(query), queues: make([]queue, len(answers)),
		most: t.merge.held / int64(len(answers)), arrivals: make(chan arrival), done: make(chan struct{}),
	}
	for k, answered := range answers {
		reach := make(chan uint64, 1)
		m.queues[k] = queue{passed: from, complete: from, reach: reach, room: semaphore.NewWeighted(m.most)}
		m.reading.Go(func() { m.read(r.Context(), k, answered.Body) })
		m.reading.Go(func() { t.reach(r.Context(), answered.Request, reach, m.done) })
	}
	go func() {
		err := m.run()
		close(m.done)
		cancel()
		giveUpOthers(answers)
		m.reading.Wait()
		_ = writer.CloseWithError(err) // a nil error is io.EOF; it cannot fail
	}()
	return answer(r, answers[0], &ending{reader, cancel}, -1), nil
}

// isBrief reports whether a watch is a question: whether anything follows its version. The answer is a bookmark.
func isBrief(query url.Values) bool {
	seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
	return err == nil && seconds > 0 && seconds <= 5
}

// queue is what a shard has told that others have not come to yet.
type queue struct {
	events   []event
	passed   uint64 // nothing older is to come
	complete uint64 // nothing of this version is to come, nor older
	reach    chan uint64
	room     *semaphore.Weighted // for the bytes of events
	stale    bool                // its core has lost its own watch, and what it has told since that came back is not told to its end
}

type arrival struct {
	shard int
	event event
	err   error
}

// merger puts watches in order.
type merger struct {
	to         io.Writer
	told       uint64 // the version of what was told last
	bookmarked uint64 // of the newest bookmark
	brief      bool   // whether shards are asked how far they are although no event waits
	queues     []queue
	held       int   // events in the queues
	most       int64 // bytes of one shard that may wait. The shard that others wait for has none that wait, so it is always read.
	arrivals   chan arrival
	done       chan struct{}
	reading    sync.WaitGroup
}

// weight is what an event takes of its shard's room.
func (m *merger) weight(e event) int64 { return min(int64(len(e.raw)), m.most) }

func (m *merger) read(ctx context.Context, shard int, body io.Reader) {
	for dec := newDecoder(body); ; {
		e, err := dec.next()
		if err == nil && e.waits() && m.queues[shard].room.Acquire(ctx, m.weight(e)) != nil {
			return // nobody reads the merged watch any more
		}
		select {
		case m.arrivals <- arrival{shard, e, err}:
		case <-m.done:
			return
		}
		if err != nil {
			return
		}
	}
}

var errHeld = errors.New("the watch of a shard ended while events of others waited for it")

// run merges until a watch ends. It returns nil if that ended in good order, and all that had come was told.
func (m *merger) run() error {
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for {
		var a arrival
		select {
		case a = <-m.arrivals:
		case <-again.C:
			m.ask()
			continue
		}
		switch {
		case a.err == io.EOF && m.held == 0:
			return nil
		case a.err == io.EOF:
			return errHeld
		case a.err != nil:
			return a.err
		case a.event.kind == "ERROR":
			_, err := m.to.Write(append(a.event.raw, '\n'))
			return err
		}
		if err := m.take(a.shard, a.event); err != nil {
			return err
		}
		if err := m.tell(); err != nil {
			return err
		}
	}
}

func (m *merger) take(shard int, e event) error {
	q := &m.queues[shard]
	switch e.kind {
	case "BOOKMARK":
		q.passed, q.complete = max(q.passed, e.version), max(q.complete, e.version)
		return nil
	case cores.Stale:
		q.events = slices.DeleteFunc(q.events, func(e event) bool {
			is := e.kind == cores.Live
			if is {
				m.held--
				q.room.Release(m.weight(e))
			}
			return is
		})
		was := m.isStale()
		if q.stale = true; was {
			return nil
		}
		_, err := m.to.Write(append(e.raw, '\n'))
		return err
	case cores.Live: // behind all that was missed
		e.version = q.passed
		q.events = append(q.events, e)
		m.held++
		return nil
	}
	if e.version < q.passed {
		return fmt.Errorf("shard %d told version %d behind %d", shard+1, e.version, q.passed)
	}
	q.passed, q.complete = e.version, max(q.complete, e.version-1)
	q.events = append(q.events, e)
	m.held++
	return nil
}

// isStale reports whether something of what shards have missed is not told yet.
func (m *merger) isStale() bool {
	return slices.ContainsFunc(m.queues, func(q queue) bool { return q.stale })
}

// ask asks the shards for which events wait whether they have come as far. Where it is asked how far all are, so are those that are behind
// without that.
func (m *merger) ask() {
	newest, complete := uint64(0), uint64(0)
	for _, q := range m.queues {
		if len(q.events) > 0 {
			newest = max(newest, q.passed)
		}
		if m.brief {
			complete = max(complete, q.complete)
		}
	}
	for _, q := range m.queues {
		if len(q.events) > 0 || q.passed >= newest && q.complete >= complete {
			continue
		}
		select { // what was not asked yet is asked no more
		case <-q.reach:
		default:
		}
		q.reach <- max(newest, complete) // which never waits: nobody else sends
	}
}

// tell tells what nothing older can come before, and then how far that is.
func (m *merger) tell() error {
	for {
		next, oldest := -1, uint64(0)
		for k, q := range m.queues {
			at := q.passed
			if len(q.events) > 0 {
				at = q.events[0].version
			}
			// Of two at one version, that which has an event goes first.
			if next < 0 || at < oldest || at == oldest && len(q.events) > 0 && len(m.queues[next].events) == 0 {
				next, oldest = k, at
			}
		}
		q := &m.queues[next]
		if len(q.events) == 0 {
			m.ask()
			return m.bookmark()
		}
		e := q.events[0]
		q.events = q.events[1:]
		m.held--
		q.room.Release(m.weight(e))
		if e.kind == cores.Live {
			was := m.isStale()
			if q.stale = false; !was || m.isStale() {
				continue
			}
		} else {
			m.told = e.version
		}
		if _, err := m.to.Write(append(e.raw, '\n')); err != nil {
			return err
		}
	}
}

// bookmark tells up to where everything was told, if that is news.
func (m *merger) bookmark() error {
	complete := m.queues[0].complete
	for _, q := range m.queues {
		at := q.complete
		if len(q.events) > 0 {
			at = min(at, q.events[0].version-1)
		}
		complete = min(complete, at)
	}
	if complete <= m.bookmarked || complete < m.told {
		return nil
	}
	m.bookmarked = complete
	_, err := fmt.Fprintf(m.to, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}`+"\n", complete)
	return err
}

const (
	// askAgain is how long an answer is waited for before a shard is asked once more.
	askAgain = 2 * time.Second
	// askEvery is the least time between two questions.
	askEvery = 100 * time.Millisecond
)

// reach asks the core that answers a watch to come as far as a version: a list that is not older has it ask its API server whether
// anything has happened until then, and its watch then has a bookmark. The answer itself says nothing of what the watch has told, and
// that of another core of the shard would say nothing at all.
func (t *merging) reach(ctx context.Context, watch *http.Request, versions <-chan uint64, done <-chan struct{}) {
	for {
		var version uint64
		select {
		case version = <-versions:
		case <-done:
			return
		}
		asked := watch.Clone(ctx)
		asked.URL.RawQuery = url.Values{"limit": {"1"}, "resourceVersion": {strconv.FormatUint(version, 10)}, "resourceVersionMatch": {"NotOlderThan"}}.Encode()
		asked.Header.Del(cores.HistoryHeader)
		if answered, err := t.base.RoundTrip(asked); err == nil { // else it is asked again
			_, _ = io.Copy(io.Discard, io.LimitReader(answered.Body, heldBytes))
			closeBody(answered)
		}
		select {
		case <-time.After(askEvery):
		case <-done:
			return
		}
	}
}
