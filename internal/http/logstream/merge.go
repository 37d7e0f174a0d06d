package logstream

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/logs"
)

// item is a line, or what is told beside the lines: as the event of that type.
type item struct {
	Type      string     `json:"type"`
	Namespace string     `json:"namespace"`
	Pod       string     `json:"pod"`
	Container string     `json:"container"`
	Time      *time.Time `json:"time,omitempty"`
	Text      string     `json:"text"`
	Cut       bool       `json:"cut,omitempty"`
	Restart   *int       `json:"restart,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	ExitCode  *int64     `json:"exitCode,omitempty"`
	Message   string     `json:"message,omitempty"`

	sorted time.Time // by which it is among those of other containers
}

func (i *item) isLine() bool { return i.Type == "line" }

// size is about how many bytes it takes in an answer.
func (i *item) size() int {
	n := len(i.Text) + len(i.Message) + len(i.Namespace) + len(i.Pod) + len(i.Container) + 128
	for at := range len(i.Text) { // what JSON has in more bytes
		switch c := i.Text[at]; {
		case c < 0x20, c == '<', c == '>', c == '&':
			n += 5
		case c == '"', c == '\\':
			n++
		}
	}
	return n
}

// merge reads the logs of containers from their beginnings, by their times.
type merge struct {
	ctx      context.Context
	source   logs.Backend
	cluster  string
	all      []*reading
	begun    bool
	patience time.Duration
	read     int    // bytes
	first    string // the time of the first line
	complete bool   // all was read
	stopped  string // why not: "bytes", "time"
}

// reading is one container's log, run after run.
type reading struct {
	ctx  context.Context
	end  context.CancelFunc
	of   *container
	runs []containerRun
	scan *logs.Scan
	last time.Time // of the last line: where a clock has jumped back, lines stay in their order
	head *item     // nil: it is to be read, or there are no more
	over bool
}

func newMerge(ctx context.Context, source logs.Backend, cluster string, all []*container) *merge {
	m := &merge{ctx: ctx, source: source, cluster: cluster, patience: patience}
	for _, c := range all {
		ctx, end := context.WithCancel(ctx)
		m.all = append(m.all, &reading{ctx: ctx, end: end, of: c, runs: c.status.runs})
	}
	return m
}

func (m *merge) close() {
	for _, r := range m.all {
		if r.scan != nil {
			r.scan.Close()
		}
		r.end()
	}
}

// patience is how long the logs of several containers wait for one of them; half as long for each that was waited for in vain, but not less
// than leastPatience, in which a node answers that does.
const patience, leastPatience = 3 * time.Second, 100 * time.Millisecond

// begin opens all logs, beside each other: some nodes may not answer.
func (m *merge) begin() {
	var opened sync.WaitGroup
	for _, r := range m.all {
		opened.Go(func() { r.head = m.soon(r) })
	}
	opened.Wait()
	m.begun = true
}

// soon is the next item of one container; nil if there are no more. A log that keeps others waiting for too long is told
// as one that cannot be read.
func (m *merge) soon(r *reading) *item {
	if len(m.all) > 1 {
		defer time.AfterFunc(m.patience, r.end).Stop()
	}
	return m.ahead(r)
}

// next is the item that comes next; ok is false if there are no more, or no more may be read.
func (m *merge) next() (next *item, ok bool) {
	if !m.begun {
		m.begin()
	}
	var from *reading
	for _, r := range m.all {
		if r.head == nil && !r.over {
			if r.head = m.soon(r); r.ctx.Err() != nil {
				m.patience = max(m.patience/2, leastPatience)
			}
		}
		if m.ctx.Err() != nil {
			m.stopped = "time"
			return nil, false
		}
		if r.head != nil && (from == nil || r.head.sorted.Before(from.head.sorted)) {
			from = r
		}
	}
	if from == nil {
		m.complete = true
		return nil, false
	}
	if m.read > maxRead {
		m.stopped = "bytes"
		return nil, false
	}
	next, from.head = from.head, nil
	if next.isLine() {
		m.read += len(next.Text) + len(time.RFC3339Nano)
	}
	if m.first == "" && next.isLine() {
		m.first = next.Time.Format(time.RFC3339Nano)
	}
	return next, true
}

// ahead is the next item of one container; nil if there are no more.
func (m *merge) ahead(r *reading) *item {
	if len(r.runs) == 0 {
		r.over = true
		return nil
	}
	c := r.of
	now := r.runs[0]
	c.run = now.restart
	told := item{Namespace: c.namespace, Pod: c.pod, Container: c.name, sorted: r.last}
	if r.scan == nil {
		scan, err := logs.OpenScan(r.ctx, m.source, c.of(m.cluster), now.ended)
		if err != nil {
			r.leave()
			return told.missing(err)
		}
		r.scan = scan
		told.Type, told.Restart = "started", &now.restart
		return &told
	}
	line, err := r.scan.Next()
	if err == nil {
		if line.Time.After(r.last) {
			r.last = line.Time
		}
		told.Type, told.Time, told.Text, told.Cut, told.sorted = "line", &line.Time, line.Text, line.Cut, r.last
		return &told
	}
	r.scan.Close()
	r.leave()
	switch {
	case !errors.Is(err, io.EOF):
		return told.missing(err)
	case !now.ended:
		return m.ahead(r)
	}
	told.Type, told.Restart, told.Reason, told.ExitCode = "ended", &now.restart, now.reason, &now.exitCode
	return &told
}

// leave goes on to the next run; not where nobody waits for this container any more.
func (r *reading) leave() {
	r.scan, r.runs = nil, r.runs[1:]
	if r.ctx.Err() != nil {
		r.runs = nil
	}
}

// missing says that the rest of a run cannot be read, and what its node says of that.
func (i item) missing(err error) *item {
	i.Type, i.Reason = "reset", eventstream.Unavailable.String()
	var said *logs.NodeError
	switch {
	case errors.As(err, &said):
		i.Message = said.Words
	case errors.Is(err, logs.ErrGone):
		i.Reason = eventstream.ResetExpired
	}
	return &i
}
