package eventstream

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/reply"
)

// openStreams holds the streams that run.
type openStreams struct {
	mu       sync.Mutex
	sessions map[uint64]*session
	last     uint64 // the number that was given last
	taken    int    // whose connections were taken over from net/http, which does not count them any more
	closed   bool
	none     chan struct{} // closed when there are none; nil before there were any
}

func newOpenStreams() *openStreams {
	return &openStreams{sessions: map[uint64]*session{}}
}

// add gives a session its number. It reports false once openStreams is closed.
func (o *openStreams) add(ss *session) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	if len(o.sessions) == 0 {
		o.none = make(chan struct{})
	}
	o.last++
	ss.number = o.last
	o.sessions[ss.number] = ss
	if _, ss.taken = ss.out.to.(*conn.Direct); ss.taken {
		o.taken++
	}
	return true
}

func (o *openStreams) remove(ss *session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.sessions[ss.number]; !known {
		return
	}
	delete(o.sessions, ss.number)
	if ss.taken {
		o.taken--
	}
	if len(o.sessions) == 0 {
		close(o.none)
	}
}

// left records that the client of a stream has left, if the stream is still open.
func (o *openStreams) left(number uint64) {
	o.mu.Lock()
	ss := o.sessions[number]
	o.mu.Unlock()
	if ss != nil {
		ss.leave()
	}
}

// heard has the client of a stream be read, if the stream is still open: it may say that it leaves.
func (o *openStreams) heard(number uint64) {
	o.mu.Lock()
	ss := o.sessions[number]
	o.mu.Unlock()
	if ss != nil {
		ss.out.to.(*conn.Direct).Watch(ss.leave)
	}
}

func (o *openStreams) all() []*session {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.sessions))
}

// wake wakes all streams, so that they look whether there is something to do.
func (o *openStreams) wake() {
	for _, ss := range o.all() {
		ss.Wake()
	}
}

// cut ends all streams at once, and lets no more begin.
func (o *openStreams) cut() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	for _, ss := range o.all() {
		ss.leave()
		if taken, ok := ss.out.to.(*conn.Direct); ok {
			taken.Cut()
		}
	}
}

// wait returns when there are none, or when the context ends.
func (o *openStreams) wait(ctx context.Context) {
	for {
		o.mu.Lock()
		left, none := len(o.sessions), o.none
		o.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-none:
		case <-ctx.Done():
			return
		}
	}
}

// List answers a table of the streams that are open, the oldest first.
func (h *Hub) List(w http.ResponseWriter, _ *http.Request) {
	type row struct {
		began   time.Time
		path    string
		user    string
		watches int
	}
	sessions := h.open.all()
	rows := make([]row, 0, len(sessions))
	for _, ss := range sessions {
		rows = append(rows, row{ss.began, ss.path, ss.id.Username, len(ss.sources)}) // none of these ever changes
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.path, b.path)) })

	table := reply.NewTextTable(w, "AGE\tUSER\tWATCHES\tPATH")
	for _, r := range rows {
		table.Row("%s\t%q\t%d\t%q", time.Since(r.began).Round(time.Second), r.user, r.watches, r.path)
	}
	table.End()
}
