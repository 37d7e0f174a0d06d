package apitest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watch is an open watch.
type watch struct {
	kind      *kind
	after     uint64 // events up to here were sent
	next      int    // of the history, to be sent; -1: that is not known yet
	bookmarks int
	ending    ending
}

// ending is how a watch ends, once it has been sent what there was.
type ending int

const (
	endNone ending = iota
	endClean
	endWithin // after one more event
	endCut
	endExpired // without what there was
)

func (a *API) watch(w http.ResponseWriter, r *http.Request, k *kind) {
	query := r.URL.Query()
	this := &watch{kind: k, next: -1}
	this.after, _ = strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	var refused *metav1.Status
	a.change(func() {
		if refused = a.tooLarge(this.after); refused != nil {
			return
		}
		if this.after == 0 {
			this.after = a.version
		}
		if this.after < a.floor {
			this.ending = endExpired
		}
		this.bookmarks = a.bookmarks
		a.watches[this] = true
	})
	if refused != nil {
		refuse(w, refused)
		return
	}
	defer a.change(func() { delete(a.watches, this) })
	var timeUp, nearly <-chan time.Time
	if seconds, _ := strconv.Atoi(query.Get("timeoutSeconds")); seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		timeUp = timer.C
		if seconds > 2 && query.Get("allowWatchBookmarks") == "true" {
			timer := time.NewTimer(time.Duration(seconds-2) * time.Second)
			defer timer.Stop()
			nearly = timer.C
		}
	}
	reply(w, 200, "")
	for {
		lines, how, changed := a.pending(this)
		if err := a.send(r.Context(), w, lines); err != nil {
			return
		}
		switch how {
		case endClean, endExpired:
			return
		case endCut:
			panic(http.ErrAbortHandler) // the connection breaks, and the body has no end
		}
		select {
		case <-changed:
		case <-nearly:
			a.mu.Lock()
			if !a.mute {
				this.bookmarks--
			}
			a.mu.Unlock()
		case <-timeUp:
			return
		case <-r.Context().Done():
			return
		case <-a.closed:
			return
		}
	}
}

// send writes lines to a watch.
func (a *API) send(ctx context.Context, w http.ResponseWriter, lines string) error {
	a.mu.Lock()
	slow := a.slow
	a.mu.Unlock()
	parts := []string{lines}
	if slow > 0 {
		parts = slices.Collect(strings.Lines(lines))
	}
	for _, part := range parts {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
		_ = http.NewResponseController(w).Flush() // without a connection there is nothing to flush
		if slow == 0 {
			continue
		}
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return ctx.Err()
		case <-a.closed:
			return io.EOF
		}
	}
	return nil
}

// pending returns what a watch has not been sent yet, and how it ends then.
func (a *API) pending(w *watch) (lines string, how ending, changed chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.ending == endExpired {
		gone := failure(410)
		gone.Message = fmt.Sprintf("too old resource version: %d (%d)", w.after, a.floor)
		return line("ERROR", encode(gone)), endExpired, a.changed
	}
	if a.held[w.kind.name] && w.ending == endNone {
		return "", endNone, a.changed
	}
	var b strings.Builder
	if w.next < 0 {
		w.next, _ = slices.BinarySearchFunc(a.history, w.after+1, func(e event, version uint64) int { return int(int64(e.version - version)) })
	}
	for w.next < len(a.history) {
		e := a.history[w.next]
		w.next++
		if e.kind == w.kind {
			b.WriteString(line(e.what, e.json))
			if w.ending == endWithin {
				return b.String(), endClean, a.changed
			}
		}
	}
	w.after = max(w.after, a.version)
	if w.bookmarks != a.bookmarks && !a.within {
		w.bookmarks = a.bookmarks
		b.WriteString(line("BOOKMARK", fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"}}`, w.kind.Kind.Kind, w.kind.APIVersion(), a.version)))
	}
	if w.ending == endCut {
		b.WriteString(`{"type":"ADDED","obj`)
	}
	return b.String(), w.ending, a.changed
}

func line(what, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", what, object)
}
