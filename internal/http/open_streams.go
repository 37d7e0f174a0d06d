package http

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// openStreams knows the streams that run, for people to look at.
type openStreams struct {
	mu       sync.Mutex
	sessions map[*session]struct{}
	removed  chan struct{} // holds a token when one has ended
}

func newOpenStreams() *openStreams {
	return &openStreams{sessions: map[*session]struct{}{}, removed: make(chan struct{}, 1)}
}

// wait returns when there are none, or when the context ends.
func (o *openStreams) wait(ctx context.Context) {
	for {
		o.mu.Lock()
		left := len(o.sessions)
		o.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-o.removed:
		case <-ctx.Done():
			return
		}
	}
}

func (o *openStreams) add(ss *session) (remove func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sessions[ss] = struct{}{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.sessions, ss)
		select {
		case o.removed <- struct{}{}:
		default:
		}
	}
}

// ServeHTTP lists the streams, the oldest first.
func (o *openStreams) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	type row struct {
		began   time.Time
		path    string
		user    string
		watches int
	}
	o.mu.Lock()
	rows := make([]row, 0, len(o.sessions))
	for ss := range o.sessions {
		rows = append(rows, row{ss.began, ss.path, ss.id.Username, len(ss.watches)}) // none of these ever changes
	}
	o.mu.Unlock()
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.path, b.path)) })

	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "AGE\tUSER\tWATCHES\tPATH")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%q\t%d\t%q\n", time.Since(r.began).Round(time.Second), r.user, r.watches, r.path)
	}
	_ = table.Flush() // a client that has gone is no error
}
